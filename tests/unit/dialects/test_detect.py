"""Which host wrote a payload."""

import pytest

from notyet.dialects import HOSTS, command_face, dialect, function_face, host_face
from notyet.dialects.detect import detect
from wire import name_of, vectors


@pytest.mark.rule("G6")
@pytest.mark.parametrize("vector", vectors("payloads", "hosts.json"), ids=name_of)
def test_the_payload_tells_the_host(vector):
    assert detect(vector["payload"]) == vector["host"]


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_has_its_three_functions(host):
    face = host_face(host)
    assert all(callable(f) for f in (face.read_event, face.write_reply, face.write_context))


def test_every_dialect_has_the_faces_that_the_tables_promise():
    for name in ("notyet", "claude", "codex", "mux", "conclaude"):
        face = command_face(name)
        assert callable(face.write_event)
        assert callable(face.read_reply)
    for name in ("notyet", "openclaw"):
        assert callable(function_face(name).write_call)
    with pytest.raises(KeyError):
        dialect("nobody")
