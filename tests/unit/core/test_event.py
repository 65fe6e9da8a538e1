import pytest

from notyet import BackgroundTask, StopEvent, Usage
from notyet.core.event import child_key, private_copy
from support import stop, substop


def test_only_the_session_must_be_known():
    event = StopEvent(session_id="s")
    assert (event.scope, event.ending, event.stop_hook_active) == ("agent", "done", None)
    with pytest.raises(TypeError, match=r"missing .*session_id"):
        StopEvent()


@pytest.mark.parametrize(("field", "value"), [("scope", "main"), ("ending", "ok")])
def test_a_word_that_is_not_ours_is_refused_with_the_ones_that_are(field, value):
    with pytest.raises(ValueError, match=f"{field} is one of .* not '{value}'"):
        stop(**{field: value})


@pytest.mark.rule("A9")
def test_a_private_copy_shares_nothing_that_can_be_changed():
    event = stop(raw={"a": [1, {"b": 2}]}, result={"text": "x"})
    twin = private_copy(event)
    assert twin == event
    twin.raw["a"][1]["b"] = 99
    twin.result["text"] = "changed"
    twin.__dict__["cwd"] = "/elsewhere"
    assert event == stop(raw={"a": [1, {"b": 2}]}, result={"text": "x"})


def test_the_child_key_is_the_stopping_agents_own_session():
    assert child_key(stop()) == "s1"
    assert child_key(substop()) == "child-1"
    assert child_key(substop(parent_session_id=None)) == "a1"
    assert child_key(substop(parent_session_id=None, agent_id=None)) == "child-1"


def test_usage_and_background_tasks_are_records_too():
    assert Usage(input=1) == Usage(input=1)
    assert BackgroundTask(id="b", type="shell").status == "running"
