"""The faces of dialects, and the tables that they are found through."""

import pytest

from notyet.core.event import StopEvent
from notyet.core.verdict import Allow
from notyet.hosts import (
    HOSTS,
    PATIENCE,
    SILENCE,
    Reply,
    command_face,
    function_face,
    host_named,
    start_face,
)
from notyet.hosts.faces import CommandFace, FunctionFace, StartFace


@pytest.mark.parametrize(
    ("face_of", "face", "names"),
    [
        (function_face, FunctionFace, ("notyet", "openclaw")),
        (command_face, CommandFace, ("notyet", "claude", "codex", "mux", "conclaude")),
        (start_face, StartFace, ("claude", "codex")),
    ],
)
def test_a_face_has_every_function_that_it_promises(face_of, face, names):
    promised = [name for name in vars(face) if not name.startswith("_")]
    assert len(promised) > 1
    for name in names:
        assert all(callable(getattr(face_of(name), function)) for function in promised), name
    with pytest.raises(KeyError):
        face_of("nobody")


def test_of_every_host_it_is_known_how_long_it_waits():
    assert PATIENCE.keys() == set(HOSTS)


@pytest.mark.parametrize("host", SILENCE)
def test_silence_is_what_a_host_is_answered_where_there_is_nothing_to_say(host):
    event = StopEvent(host=host)
    assert host_named(host).write_reply(Allow(), "", event, {}) == SILENCE[host]
    assert (SILENCE[host].stderr, SILENCE[host].code) == ("", 0)


def test_a_reply_is_what_it_says():
    reply = Reply(stdout="a", stderr="b", code=2)
    assert reply == Reply(stdout="a", stderr="b", code=2)
    assert reply != Reply(stdout="a")
    assert reply != "a"
    assert repr(reply) == "Reply(stdout='a', stderr='b', code=2)"
