"""Recovery in each state that a dead supervisor can leave behind (K7, K18)."""

import pytest

from notyet import Allow, Block, Decision
from notyet.core.session import Turn
from notyet.core.task import Task
from notyet.ledger.outbox import Outbox
from notyet.ledger.task_rows import TELLING
from supervised import Agent, Dead, World, first_run
from support import gate

TASK = Task(id="t1", prompt="do it", label="lost", depth=1)
KEY, STEER = "key of t1", "k2"
BLOCK = Decision(verdict=Block("Run the tests."), outcome="blocked", why="tests")


def left(folder, state):
    """Leave a task behind in this state."""
    dead = Dead(folder)
    first = first_run("t1")
    dead.tasks.start(TASK, first, dead.owner, {"n": 1}, "s1", max_depth=5, max_children=5)
    for name in _STEPS[: _STEPS.index(state)]:
        _do(dead, first, name)
    dead.buried()


_STEPS = ("reserved", "dispatched", "settling", "gating", "steering", "sent", "accepted")


def _do(dead, first, name):
    """Take the step that leads out of a state."""
    owner = dead.owner
    if name == "reserved":
        assert dead.tasks.mark_sent(first, owner, "dispatched")
    elif name == "dispatched":
        assert dead.runs.finish(first.id, Turn(text="the report"), "done", owner)
    elif name == "settling":
        assert dead.runs.settle(first.id, owner, STEER)
    elif name == "gating":
        assert dead.runs.decide(first.id, owner, BLOCK, begun=None, ceiling=0, key=STEER)
    elif name == "steering":
        assert dead.runs.dispatch(STEER, owner)
    elif name == "sent":
        assert dead.runs.accept(STEER, owner)


def recovered(folder, agent, unfinished="continue", gates=()):
    """Recover what is left; return its result, what was delivered and the observers were told."""
    delivered, told = [], []

    async def deliver(announcement):
        delivered.append(announcement)

    with World(folder, reopen=lambda ref: agent, deliver=deliver, gates=gates) as world:
        world.engine.on("subagent_ended", lambda event, ctx: told.append(event.outcome))
        world.engine.on("subagent_start", lambda event, ctx: told.append("started"))
        (handle,) = world.do(world.supervisor.recover(unfinished))
        result = world.result(handle)
        world.until(lambda: world.view(handle).delivery == "delivered")
        rows = world.rows("SELECT key FROM outbox")
    assert rows == [("t1:1",)]
    assert [each.key for each in delivered] == ["t1:1"]
    assert len(told) == 1  # and never a second start
    return result


LOST = "died while the agent was at work; what it did is not known"
UNKNOWN = "died while sending a prompt; whether it arrived cannot be known"


@pytest.mark.rule("K7", "K18", "K14")
@pytest.mark.parametrize(
    ("state", "knows", "sent", "then"),
    [
        ("reserved", False, {KEY: "do it"}, (1, None)),
        ("reserved", None, {KEY: "do it"}, (1, None)),
        ("reserved", True, {}, (1, LOST)),  # a power cut may take the mark that it was sent
        ("dispatched", False, {KEY: "do it"}, (1, None)),
        ("dispatched", None, {}, (1, UNKNOWN)),
        ("dispatched", True, {}, (1, LOST)),
        ("steering", False, {STEER: "Run the tests."}, (2, None)),
        ("steering", None, {STEER: "Run the tests."}, (2, None)),
        ("steering", True, {}, (2, LOST)),
        ("sent", False, {STEER: "Run the tests."}, (2, None)),
        ("sent", None, {}, (1, UNKNOWN)),
        ("sent", True, {}, (2, LOST)),
        ("accepted", False, {}, (2, LOST)),
        ("accepted", None, {}, (2, LOST)),
        ("accepted", True, {}, (2, LOST)),
    ],
)
def test_a_prompt_is_sent_only_if_it_cannot_have_arrived(tmp_path, state, knows, sent, then):
    generation, error = then
    left(tmp_path, state)
    agent = Agent("tests pass", knows=knows)
    result = recovered(tmp_path, agent)
    assert dict(zip(agent.keys, agent.got, strict=True)) == sent
    assert (result.ending, result.generation) == ("interrupted" if error else "done", generation)
    assert (error or "") in (result.error or "")
    assert agent.aborts == 1  # what the dead supervisor left at work


@pytest.mark.rule("K7", "K19")
def test_the_answer_before_a_lost_run_is_kept_as_rejected(tmp_path):
    left(tmp_path, "sent")
    result = recovered(tmp_path, Agent(knows=True))
    assert (result.text, result.rejected) == ("", "the report")


@pytest.mark.rule("K7", "C2")
def test_an_ended_run_that_was_settling_meets_its_gates(tmp_path):
    left(tmp_path, "settling")
    asked = []
    agent = Agent()
    gates = [gate("g", asked.append, scopes=("subagent",))]
    result = recovered(tmp_path, agent, gates=gates)
    assert [event.last_message for event in asked] == ["the report"]
    assert (result.ending, result.outcome, result.text) == ("done", "passed", "the report")
    assert agent.got == []


@pytest.mark.rule("K7")
@pytest.mark.parametrize("state", ["settling", "gating"])
def test_a_gate_that_blocks_after_a_crash_sends_the_agent_back_once(tmp_path, state):
    left(tmp_path, state)
    agent = Agent("the second report")
    blocks = gate("g", lambda e: Block("more") if not e.block_count else None, scopes=("subagent",))
    result = recovered(tmp_path, agent, gates=[blocks])
    assert len(agent.got) == 1
    assert (result.text, result.generation, result.steers) == ("the second report", 2, 1)


@pytest.mark.rule("K7", "K8", "K10")
def test_an_unreported_result_is_reported_and_delivered(tmp_path):
    left(tmp_path, "gating")
    dead = Dead(tmp_path)
    dead.ledger.connection.write(lambda db: db.execute("UPDATE tasks SET owner = ?", (dead.owner,)))
    passed = Decision(verdict=Allow(), outcome="passed")
    assert dead.runs.decide("t1.1", dead.owner, passed, begun=None, ceiling=0, key="x")
    dead.buried()
    agent = Agent()
    result = recovered(tmp_path, agent)
    assert (result.ending, result.outcome, result.text) == ("done", "passed", "the report")
    assert agent.got == []


@pytest.mark.rule("K7", "K10")
def test_observers_that_were_told_before_the_crash_are_not_told_again(tmp_path):
    told, delivered = [], []

    async def broken(announcement):
        raise OSError("busy")

    async def deliver(announcement):
        delivered.append(announcement.key)

    with World(tmp_path, deliver=broken, first_retry=60.0) as world:
        world.engine.on("subagent_ended", lambda event, ctx: told.append("first"))
        handle = world.spawn(Agent("done"))
        world.until(lambda: world.view(handle).attempts)
    with World(tmp_path, deliver=deliver) as world:
        world.engine.on("subagent_ended", lambda event, ctx: told.append("second"))
        world.do(world.supervisor.recover())
        world.until(lambda: world.view(handle).delivery == "delivered")
    assert (told, delivered) == (["first"], [f"{handle.task_id}:1"])


@pytest.mark.rule("K7", "K18")
@pytest.mark.parametrize("state", _STEPS)
def test_recovery_can_end_what_is_unfinished_instead_of_going_on(tmp_path, state):
    left(tmp_path, state)
    asked = []
    agent = Agent(knows=False)
    gates = [gate("g", asked.append, scopes=("subagent",))]
    result = recovered(tmp_path, agent, "end", gates)
    assert (result.ending, agent.got, asked) == ("interrupted", [], [])
    report = "the report" if state in {"settling", "gating", "steering", "sent"} else ""
    assert result.text == report


@pytest.mark.rule("K7", "K18")
@pytest.mark.parametrize("state", ["reserved", "settling", "steering"])
def test_a_session_that_cannot_be_reopened_ends_its_task_in_words(tmp_path, state):
    left(tmp_path, state)

    def reopen(ref):
        raise OSError("no such agent")

    with World(tmp_path, reopen=reopen) as world:
        (handle,) = world.do(world.supervisor.recover())
        result = world.result(handle)
    said = (result.error or "") + (result.stop_reason or "")
    if state == "settling":
        assert (result.ending, result.text) == ("done", "the report")
    else:
        assert "its session cannot be reopened" in said
    assert any("t1 cannot be reopened: " in each for each in world.warnings)


def test_recovery_knows_two_ways_to_treat_what_is_unfinished(world):
    with pytest.raises(ValueError, match="unfinished must be 'continue' or 'end', not 'maybe'"):
        world.do(world.supervisor.recover("maybe"))


@pytest.mark.rule("K7", "K10")
def test_observers_that_may_have_been_notified_are_not_notified_again_and_this_is_listed(tmp_path):
    left(tmp_path, "gating")
    dead = Dead(tmp_path)
    dead.tasks.claim(dead.owner)
    passed = Decision(verdict=Allow(), outcome="passed")
    assert dead.runs.decide("t1.1", dead.owner, passed, begun=None, ceiling=0, key="k")
    Outbox(dead.ledger.connection).take("t1", dead.owner, TELLING, is_leased=False)
    dead.buried()
    told = []
    with World(tmp_path, reopen=lambda ref: Agent()) as world:
        world.engine.on("subagent_ended", lambda event, ctx: told.append(event))
        (handle,) = world.do(world.supervisor.recover())
        assert world.result(handle).text == "the report"
        view = world.view(handle)
    assert told == []
    assert (view.maybe_unnotified, view.delivery) == (True, "delivered")
    assert any("may not have been notified" in said for said in world.warnings)
