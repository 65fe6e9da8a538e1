"""Whatever becomes of a recorded payload, its host gets an answer that it knows.

Without a gate that applies it allows; with one that fails it may also be the host's one block.
"""

import json

import pytest

from hook_runs import ask, new_project
from notyet.hook.caller import find_caller
from notyet.hosts import host_named
from wire import VECTORS, vectors

PAYLOADS = VECTORS / "payloads"
ALL = sorted(str(path.relative_to(PAYLOADS)) for path in PAYLOADS.glob("*/*.json"))
WRONG = [None, True, 5, -1.5e308, "", "\ud800", [], ["x"], {}, {"a": {"b": [None]}}]
EVENTS = ["Nope", "stop ", "Stop\0", 7, [], None]
FAILING = '[gates.bad]\nrun = "exit 1"\nwhen = "always"\nfor = "all"\n'
HUGE = 2_000_000
DEEP = 3_000


def host_of(name):
    return host_named(name.split("/", maxsplit=1)[0])


def recorded(name):
    return json.loads((PAYLOADS / name).read_text(encoding="utf-8"))


def first_of_each(key):
    """Return the first recorded payload for each value of a key that is not None."""
    first = {}
    for name in ALL:
        first.setdefault(key(host_of(name), recorded(name)), name)
    first.pop(None, None)
    return list(first.values())


def kind_of(host, payload):
    return host.name, host.event_in(payload), frozenset(payload)


def blockable(host, payload):
    """Return the host and the event at which it can be blocked; None if it cannot."""
    event = host.event_in(payload)
    is_held = event in host.stops and host.holds.get(host.stops[event]) != "no"
    return (host.name, event) if is_held else None


FILES = first_of_each(kind_of)


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
    host = host_of(name)
    payload = recorded(name)
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
    payload = recorded(name)
    for what, content in mutated(payload, "hook_event_name"):
        reply = ask(content)
        assert reply.code == 0, what
        said = json.loads(reply.stdout) if reply.stdout else {}
        assert isinstance(said, dict), what
        assert said.get("decision") in {None, "allow"}, what
        assert "followup_message" not in said, what


def shape(code, said):
    """Return what makes an answer a block of its host: the exit code, the keys, the decision."""
    return code, frozenset(said), said.get("decision")


def blocks_of(host):
    """Return the shapes of the blocks that this host was measured to honour."""
    return {
        shape(vector["expect"].get("code", 0), vector["expect"]["stdout"] or {})
        for vector in vectors(host.name, "hosts.json")
        if vector["verdict"]["kind"] == "block"
    }


def caller(host, content):
    """Return the host that this now comes from: one that runs this host's settings, or itself."""
    try:
        payload = json.loads(content)
    except (ValueError, RecursionError):
        return host
    is_payload = isinstance(payload, dict)
    return host_named(find_caller(host.name, payload, {})[0]) if is_payload else host


@pytest.mark.rule("G5")
@pytest.mark.parametrize("name", first_of_each(blockable))
def test_with_a_failing_gate_it_is_allowed_or_blocked_in_the_words_of_its_host(
    name, tmp_path, monkeypatch
):
    project = new_project(tmp_path / "project", FAILING)
    monkeypatch.chdir(project)
    host = host_of(name)
    payload = recorded(name)
    payload |= {key: str(project) for key in host.fields["cwd"] if key in payload}
    if host.value(payload, "cwd") is None:
        monkeypatch.setenv(host.project_variable, str(project))
    session = str(host.value(payload, "session_id")).encode()
    event = next((key for key in host.fields["event"] if key in payload), host.fields["event"][0])
    unchanged = ask(payload, "--host", host.name)
    assert shape(unchanged.code, json.loads(unchanged.stdout or "{}")) in blocks_of(host)
    for number, (what, content) in enumerate(mutated(payload, event)):
        anew = content.replace(session, b"s%d" % number)  # else the limit of a session allows it
        reply = ask(anew, "--host", host.name)
        assert "internal error" not in reply.stderr, what
        said = json.loads(reply.stdout or "{}")
        answered = caller(host, anew)
        is_allowed = reply.code == 0 and said.keys() <= known_keys(answered)
        if not is_allowed and reply.stdout != answered.silence:
            assert shape(reply.code, said) in blocks_of(answered), (what, said)
