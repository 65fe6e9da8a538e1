"""Whatever becomes of a recorded payload, its host gets an answer that allows and that it knows."""

import json

import pytest

from hook_runs import ask
from notyet.hosts import host_named
from wire import VECTORS

PAYLOADS = VECTORS / "payloads"
FILES = sorted(str(path.relative_to(PAYLOADS)) for path in PAYLOADS.glob("*/*.json"))
WRONG = [None, True, 5, -1.5e308, "", "\ud800", [], ["x"], {}, {"a": {"b": [None]}}]
EVENTS = ["Nope", "stop ", "Stop\0", 7, [], None]
HUGE = 2_000_000
DEEP = 3_000


def mutated(payload, event):
    """Yield changed payloads as bytes, each with a name."""
    for at, key in enumerate(payload):
        yield f"without {key}", dumped({k: v for k, v in payload.items() if k != key})
        for value in (WRONG[at % len(WRONG)], WRONG[(at + 4) % len(WRONG)]):
            yield f"{key} = {value!r}", dumped(payload | {key: value})
    for value in EVENTS:
        yield f"event {value!r}", dumped(payload | {event: value})
    for value in WRONG:
        yield f"all {value!r}", dumped(dict.fromkeys(payload, value))
    whole = dumped(payload)
    yield "BOM", b"\xef\xbb\xbf" + whole
    yield "UTF-16", whole.decode().encode("utf-16")
    yield "cut", whole[: len(whole) // 2]
    yield "twice", whole + whole
    yield "in a list", b"[" + whole + b"]"
    yield "huge", dumped(payload | {"more": "x" * HUGE})
    yield "deep", whole[:-1] + b', "more": ' + b"[" * DEEP + b"]" * DEEP + b"}"
    yield "deeper", b'{"a":' * 100_000
    yield "not UTF-8", whole.replace(b":", b': "\xff", "x":', 1)


def dumped(value):
    return json.dumps(value).encode("utf-8", "surrogatepass")


def known_keys(host):
    """Return the keys that an allowing answer to a host may have."""
    return {host.note, *host.context} - {""}


@pytest.mark.rule("G5")
@pytest.mark.parametrize("name", FILES)
def test_a_mutated_payload_is_allowed_in_the_words_of_its_host(name):
    host = host_named(name.split("/", maxsplit=1)[0])
    payload = json.loads((PAYLOADS / name).read_text(encoding="utf-8"))
    event = next((key for key in host.fields["event"] if key in payload), host.fields["event"][0])
    for what, content in mutated(payload, event):
        reply = ask(content, "--host", host.name)
        assert reply.code == 0, what
        assert "internal error" not in reply.stderr, what
        if reply.stdout in {"", host.silence}:
            continue
        said = json.loads(reply.stdout)
        assert said.keys() <= known_keys(host), (what, said)
        reply.stdout.encode()


@pytest.mark.parametrize("name", FILES[::5])
def test_without_a_name_of_its_host_too(name):
    payload = json.loads((PAYLOADS / name).read_text(encoding="utf-8"))
    for what, content in mutated(payload, "hook_event_name"):
        reply = ask(content)
        assert reply.code == 0, what
        said = json.loads(reply.stdout) if reply.stdout else {}
        assert isinstance(said, dict), what
        assert said.get("decision") in {None, "allow"}, what
        assert "followup_message" not in said, what
