import pytest

from notyet import BackgroundTask, StopEvent, Usage
from notyet.core.event import child_key, private_copy
from support import stop, substop


def test_nothing_must_be_known():
    event = StopEvent()
    assert (event.scope, event.ending, event.stop_hook_active) == ("agent", "done", None)
    assert event.session_id == ""


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("session_id", None, "session_id is text, not NoneType"),
        ("turn_id", 7, "turn_id is text or None, not int"),
        ("last_message", [{"type": "text"}], "last_message is text or None, not list"),
        ("cwd", 123, "cwd is text, not int"),
        ("host_cap", None, "host_cap is a whole number, not NoneType"),
        ("usage", {"input": 1}, "usage is a Usage or None, not dict"),
        ("tools_used", "bash", "tools_used is a tuple, not str"),
        ("tools_used", [1], "tools_used must contain only str"),
        ("background_tasks", [{"id": "x"}], "background_tasks must contain only BackgroundTask"),
        ("stop_hook_active", "false", "stop_hook_active is a truth value or None, not str"),
        ("duration_ms", "1", "duration_ms is a number or None, not str"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_at_once(field, value, words):
    with pytest.raises(TypeError, match=words):
        stop(**{field: value})


def test_tokens_are_counted_in_whole_numbers():
    with pytest.raises(TypeError, match="input is a whole number, not NoneType"):
        Usage(input=None)


def test_lists_become_tuples():
    assert stop(tools_used=["bash"]).tools_used == ("bash",)


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


class Uncopyable:
    def __deepcopy__(self, memo):
        raise RuntimeError("no")


def test_a_private_copy_copes_with_anything_that_can_be_a_result():
    cycle = {}
    cycle["self"] = cycle
    assert private_copy(stop(result=cycle)).result["self"]["self"] is not cycle
    odd = Uncopyable()
    assert private_copy(stop(result=odd)).result is odd
    sets = stop(result={"set": {1}, "tuple": ([1],)})
    private_copy(sets).result["set"].add(2)
    private_copy(sets).result["tuple"][0].append(2)
    assert sets.result == {"set": {1}, "tuple": ([1],)}


def test_the_child_key_is_the_stopping_agents_own_session():
    assert child_key(stop()) == "s1"
    assert child_key(substop()) == "child-1"
    assert child_key(substop(parent_session_id=None)) == "a1"
    assert child_key(substop(parent_session_id=None, agent_id=None)) == "child-1"


def test_usage_and_background_tasks_are_records_too():
    assert Usage(input=1) == Usage(input=1)
    assert BackgroundTask(id="b", type="shell").status == "running"
