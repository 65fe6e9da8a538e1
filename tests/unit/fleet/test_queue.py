"""Queues: the grammar of limits, lanes of the engine, and the room that a task needs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notyet.core.task import Room
from notyet.errors import Refused
from notyet.fleet.queue import Lane, Limit, Queue, queue_named

UNITS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
UNITS |= {"day": 86_400}
COUNTS = st.integers(min_value=1, max_value=10**6)


@given(
    rate=COUNTS, unit=st.sampled_from([*UNITS]), at_once=COUNTS, space=st.sampled_from(["", " "])
)
def test_a_limit_is_a_rate_and_a_number_at_once_in_any_order(rate, unit, at_once, space):
    texts = [f"{rate}{space}/{space}{unit}", f"{at_once} at once"]
    both = Limit(at_once=at_once, rate=rate, period=UNITS[unit])
    assert Limit.read(", ".join(texts)) == Limit.read(",".join(reversed(texts))) == both
    assert Limit.read(texts[0]) == Limit(rate=rate, period=UNITS[unit])
    assert Limit.read(texts[1]) == Limit(at_once=at_once)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "50",
            "50/",
            "/min",
            "-1/min",
            "1.5/min",
            "50/week",
            "50/mins",
            "50 / min at once",
        ),
        *(
            "0/min",
            "0 at once",
            "5/min, 0 at once",
            "20 at once 5/min",
            "5/min;2 at once",
            "5/min,",
        ),
        *("5/min, 6/min", "2 at once, 3 at once", "1\n/min\n2", "9" * 12 + "/min"),
    ],
)
def test_a_wrong_limit_is_refused_with_an_example(text):
    with pytest.raises(ValueError) as raised:
        Queue("agents", limits={"opus": text})
    assert str(raised.value) == f"invalid limit {text!r}; write for example: 50/min, 20 at once"


@given(st.text(max_size=20))
def test_any_text_is_a_limit_or_refused_in_one_sentence(text):
    try:
        limit = Limit.read(text)
    except ValueError:
        with pytest.raises(ValueError, match=re.escape(repr(text))):
            Limit.read(text)
    else:
        assert limit.rate or limit.at_once


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": ""}, "the name of a queue must be letters, digits, dots, dashes and underscores"),
        ({"name": "a:b"}, "not 'a:b'"),
        ({"name": "_dbos_x"}, "not '_dbos_x'"),
        ({"name": "a" * 64}, "the name of a queue must be"),
        ({"name": "a\n"}, "the name of a queue must be"),
        ({"name": None}, "the name of a queue must be"),
        ({"per_worker": 0}, "per_worker must be a whole number from 1 up, not 0"),
        ({"per_worker": "4"}, "per_worker must be a whole number from 1 up, not '4'"),
        ({"by": "user"}, 'by must be "model" or "", not \'user\''),
        ({"priority": 0}, "priority must be a whole number from 1 up, not 0"),
        ({"priority": 1.5}, "priority must be a whole number from 1 up, not 1.5"),
        ({"priority": 2**31}, "priority must be a whole number from 1 up"),
        ({"by": "", "limits": {"opus": "1/s"}}, 'limits of models need by="model"'),
        ({"limits": {"opus": 5}}, "invalid limit 5; write for example: 50/min, 20 at once"),
        ({"limits": {"op\0us": "1/s"}}, "a model's name must be text without control characters"),
    ],
)
def test_a_wrong_queue_is_refused_in_one_sentence(options, says):
    with pytest.raises(ValueError) as raised:
        Queue(**({"name": "agents"} | options))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_each_model_with_a_limit_has_a_lane_and_the_others_share_one():
    queue = Queue("agents", limits={"opus": "5/min, 2 at once", "*": "3 at once"})
    opus = Lane("agents:opus", Limit(at_once=2, rate=5), is_shared=False)
    assert queue.lanes() == [Lane("agents", Limit(at_once=3), is_shared=True), opus]
    assert queue.lane_of("opus") == ("agents:opus", "opus")
    assert queue.lane_of("gpt") == ("agents", "gpt")
    assert queue.lane_of("") == ("agents", "-")
    assert queue.lane_of("*") == ("agents", "*")
    assert queue.room_for("opus") == Room(at_once=2, rate=5, period=60.0, model="opus")
    assert queue.room_for("gpt") == Room(at_once=3, model="gpt")


def test_models_without_a_limit_share_a_lane_without_a_limit():
    queue = Queue("agents", limits={"opus": "1/s"})
    assert queue.lane_of("gpt") == ("agents", "gpt")
    assert queue.room_for("gpt") == Room(model="gpt")


def test_a_limit_of_the_whole_queue_counts_all_models_together():
    queue = Queue("agents", by="", limits={"*": "2 at once"})
    assert queue.lanes() == [Lane("agents", Limit(at_once=2), is_shared=False)]
    assert queue.lane_of("opus") == ("agents", "opus")
    assert queue.room_for("opus") == Room(at_once=2, model=None)


@given(
    per_worker=st.none() | COUNTS,
    models=st.dictionaries(st.sampled_from(["opus", "gpt", "*"]), st.just("2 at once, 7/h")),
    priority=COUNTS,
)
def test_a_queue_comes_back_from_the_ledger_as_it_was(per_worker, models, priority):
    queue = Queue("agents", per_worker=per_worker, limits=models, priority=priority)
    assert queue_named("agents", {"agents": queue.about()}) == queue


def test_a_queue_of_a_later_notyet_is_read_as_far_as_it_is_known():
    assert queue_named("a", {"a": {"name": "a", "colour": "red"}}) == Queue("a")
    with pytest.raises(Refused, match=r"queue 'a' cannot be read: invalid limit '5/moon'.*upgrade"):
        queue_named("a", {"a": {"name": "a", "limits": {"x": "5/moon"}}})


def test_an_unknown_queue_is_named_with_those_that_exist():
    with pytest.raises(Refused) as raised:
        queue_named("nightly", {"a": {}, "b": {}})
    assert str(raised.value) == (
        "there is no queue 'nightly' (there are: a, b); define it with: notyet tasks queue nightly"
    )
    with pytest.raises(Refused, match="none is defined yet"):
        queue_named("nightly", {})


def test_the_name_of_an_unknown_queue_is_shown_without_control_characters():
    with pytest.raises(Refused) as refused:
        queue_named("a\x1b[31m", {})
    assert "\x1b" not in str(refused.value)
