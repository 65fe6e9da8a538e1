"""What the tests of the dialects share: vectors, and how they are read."""

import base64
import json
from pathlib import Path

from notyet import Allow, Block, Halt
from notyet.core.gate import Command, Exit, Gate, Match
from notyet.core.verdict import Problem
from notyet.hosts.hook_answers import HookAnswer

VECTORS = Path(__file__).parent / "vectors"


def vectors(dialect, name):
    """Return the vectors of a file."""
    return json.loads((VECTORS / dialect / name).read_text(encoding="utf-8"))


def replies(dialect):
    """Return how hooks ended at a stop."""
    return [vector for vector in vectors(dialect, "replies.json") if "start" not in vector]


def starts(dialect):
    """Return how hooks ended at a start."""
    return [vector for vector in vectors(dialect, "replies.json") if "start" in vector]


def name_of(vector):
    return vector["id"]


def ended(fields):
    """Return the exit of a vector; what is no text stands there in base64."""
    fields = dict(fields)
    streams = {}
    for stream in ("stdout", "stderr"):
        coded = fields.pop(f"{stream}_base64", None)
        text = fields.pop(stream, "").encode()
        streams[stream] = text if coded is None else base64.b64decode(coded)
    return Exit(**fields, **streams)


def gate_of(speaks, vector):
    """Return the gate that a vector is about."""
    check = Command(script="run-it", speaks=speaks, options=vector.get("options", {}))
    return Gate(name="g", check=check, match=Match(events=vector.get("scope", "agent")), timeout=30)


def verdict_of(fields):
    """Return the verdict that a vector describes."""
    kinds = {"allow": Allow, "block": Block, "halt": Halt}
    return kinds[fields["kind"]](**{k: v for k, v in fields.items() if k != "kind"})


def check_reading(reading, expect):
    """Compare all that was read with a vector; of a problem only its kind."""
    expect = dict(expect)
    kind = expect.pop("answer")
    problem = expect.pop("problem", None)
    said = {k: expect.pop(k) for k in ("prompt", "reason", "note", "extend") if k in expect}
    if kind == "problem":
        assert reading.answer == Problem(problem, reading.answer.detail)
        assert reading.answer.detail.strip()
        assert len(reading.answer.detail) < 1000
        assert reading == HookAnswer(answer=reading.answer, **expect)
    else:
        assert reading == HookAnswer(answer=verdict_of({"kind": kind} | said), **expect)


def check_reply(reply, expect):
    """Compare a reply with a vector: one JSON object and no other byte, or nothing."""
    assert reply.code == expect.get("code", 0)
    assert reply.stderr == expect.get("stderr", "")
    if expect["stdout"] is None:
        assert reply.stdout == ""
    else:
        assert json.loads(reply.stdout) == expect["stdout"]
        assert reply.stdout.startswith("{")
        assert reply.stdout.endswith("}")
        assert reply.stdout.isascii()
        assert "\n" not in reply.stdout
