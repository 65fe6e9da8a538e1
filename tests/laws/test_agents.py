"""Laws of reading agents: no line raises, and a good answer after garbage is the answer."""

import copy
import json
import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet.agents.formats import READERS
from notyet.agents.transcript_writer import Transcript
from notyet.agents.turn_builder import TurnBuilder
from notyet.hosts.known_programs import headless

VECTORS = os.path.join(os.path.dirname(__file__), "..", "vectors", "agents")
ANSWER = "This is the answer."
NASTY = st.sampled_from(
    [[], {}, ["x"], {"a": []}, math.inf, -math.inf, math.nan, 10**400, -1, True]
)
ODD = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["length", "Bash", "error_max_turns", "<synthetic>", "\ud83d", "\x00"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def lines_of(agent):
    found = []
    for name in sorted(os.listdir(os.path.join(VECTORS, agent))):
        with open(os.path.join(VECTORS, agent, name), encoding="utf-8") as file:
            found += [json.loads(line) for line in file if line.strip()]
    return found


LINES = {agent: lines_of(agent) for agent in headless()}


def claude_answer(text):
    message = {"id": "last", "content": [{"type": "text", "text": text}]}
    return [{"type": "assistant", "message": message}, {"type": "result", "result": text}]


ANSWERS = {
    "claude": claude_answer(ANSWER),
    "qwen": claude_answer(ANSWER),
    "codex": [
        {"type": "item.completed", "item": {"type": "agent_message", "text": ANSWER}},
        {"type": "turn.completed"},
    ],
    "gemini": [
        {"type": "message", "role": "assistant", "content": ANSWER},
        {"type": "result", "status": "success"},
    ],
    "opencode": [
        {"type": "text", "part": {"text": ANSWER}},
        {"type": "step_finish", "part": {"reason": "stop"}},
    ],
    "copilot": [
        {"type": "assistant.message", "data": {"content": ANSWER}},
        {"type": "result", "exitCode": 0},
    ],
    "cursor": [
        {"type": "assistant", "message": {"content": [{"type": "text", "text": ANSWER}]}},
        {"type": "result", "is_error": False},
    ],
    "droid": [
        {"type": "message", "role": "assistant", "id": "last", "text": ANSWER},
        {"type": "completion"},
    ],
    "goose": [
        {
            "type": "message",
            "message": {
                "id": "last",
                "role": "assistant",
                "content": [{"type": "text", "text": ANSWER}],
            },
        },
        {"type": "complete"},
    ],
    "kimi": [
        {"role": "assistant", "content": ANSWER},
        {"role": "meta", "type": "session.resume_hint", "session_id": "s"},
    ],
    "openhands": [
        {
            "kind": "MessageEvent",
            "source": "agent",
            "llm_message": {"content": [{"type": "text", "text": ANSWER}]},
        },
    ],
    "pi": [
        {"type": "turn_end", "message": {"content": [{"type": "text", "text": ANSWER}]}},
        {"type": "agent_end", "messages": [{"stopReason": "stop"}]},
    ],
    "vibe": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": ANSWER}],
            "outcome": {"type": "committed"},
        },
    ],
}


def places(value):
    """Yield every container in a line with each of its keys."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, inner in items:
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


@st.composite
def mutated(draw, agent):
    line = copy.deepcopy(draw(st.sampled_from(LINES[agent])))
    for _ in range(draw(st.integers(1, 8))):
        found = list(places(line))
        if not found:
            break
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        what = draw(st.sampled_from(["nasty", "nasty", "odd", "gone"]))
        if what == "gone" and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = copy.deepcopy(draw(NASTY if what == "nasty" else ODD))
    return line


@pytest.mark.parametrize("agent", headless())
@given(data=st.data())
def test_no_line_raises_and_a_good_answer_after_garbage_is_the_answer(agent, data):
    told = []
    builder = TurnBuilder(told.append, Transcript("/dev/null"), "k")
    for line in data.draw(st.lists(mutated(agent), max_size=4)):
        READERS[headless()[agent][1].output](line, builder)
    for line in copy.deepcopy(ANSWERS[agent]):
        READERS[headless()[agent][1].output](line, builder)
    builder.flush()
    turn = builder.turn(builder.spent(), 1.0)
    assert (turn.text, builder.is_finished) == (ANSWER, True)
    figures = (*vars(turn.usage).values(), turn.tool_calls, turn.turns)
    assert all(type(figure) is int and 0 <= figure < math.inf for figure in figures)
    assert json.dumps(list(turn.tools))
    assert {news.kind for news in told} <= {"accepted", "text", "tool", "error"}
