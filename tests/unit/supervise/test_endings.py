"""Every ending of a supervised agent: who is asked, and who is told."""

import pytest

from notyet import Block, Command, Gate, Match
from notyet.core.session import Turn
from supervised import Agent, Asking, World
from support import gate

FAILED = Turn(text="", stop_reason="error", error="boom")
OBSERVED = ("stop", "subagent_stop", "subagent_ended")


def watched(world):
    """Register handlers that write down what they are asked and told, in order."""
    log = []
    for name in ("subagent_stopping", "stopping", *OBSERVED):
        world.engine.on(name, lambda event, ctx, name=name: log.append((name, event)))
    return log


def names(log):
    return [name for name, _ in log]


@pytest.mark.rule("C1", "K1")
def test_done_asks_the_gates_then_tells_the_observers_and_then_announces(tmp_path):
    order = []

    async def deliver(announcement):
        order.append("announced")

    with World(tmp_path, deliver=deliver) as world:
        log = watched(world)
        world.engine.on("subagent_ended", lambda event, ctx: order.append("told"))
        result = world.spawned(Agent("all done"))
        world.until(lambda: "announced" in order)
    assert names(log) == ["subagent_stopping", "subagent_stop", "subagent_ended"]
    assert order == ["told", "announced"]
    assert (result.ending, result.outcome, result.text) == ("done", "passed", "all done")


@pytest.mark.rule("C2")
@pytest.mark.parametrize("ending", ["error", "timeout"])
def test_an_error_and_a_timeout_ask_plugin_handlers_with_outcome_and_error(tmp_path, ending):
    def never(speaks):
        check = Command(script="echo no >&2; exit 2", speaks=speaks)
        return Gate(name=speaks, check=check, match=Match(events=("subagent",)))

    native = gate("native", Block("not after an error"), scopes=("subagent",))
    others = [never("claude"), never("codex"), never("mux"), never("conclaude"), native]
    with World(tmp_path, gates=others) as world:
        log = watched(world)
        agent = Agent(FAILED if ending == "error" else Agent.WAIT)
        result = world.spawned(agent, timeout=0.05 if ending == "timeout" else None)
    assert names(log) == ["subagent_stopping", "subagent_stop", "subagent_ended"]
    asked = log[0][1]
    assert asked.outcome == ending
    assert asked.error == ("boom" if ending == "error" else "no end after 0.05 s")
    assert asked.reason == "subagent-error"
    assert log[2][1].outcome == ending
    assert (result.ending, result.outcome) == (ending, "passed")
    assert len(agent.got) == 1


@pytest.mark.rule("K4")
@pytest.mark.parametrize("recovers", [False, True])
def test_an_agent_that_did_not_end_in_time_is_reported_with_its_last_error(world, recovers):
    async def in_trouble(_prompt):
        agent.news("error", text="Reconnecting... 1/5")
        agent.news("error", text="waiting for network")
        if recovers:
            agent.news("text", text="I go on.")
        return Agent.WAIT

    agent = Agent(in_trouble)
    result = world.spawned(agent, timeout=0.05)
    cause = "" if recovers else "; its last error: waiting for network"
    assert result.error == f"no end after 0.05 s{cause}"
    assert [p.text for p in world.progress if p.kind == "error"][-1] == "waiting for network"


@pytest.mark.rule("C2")
def test_a_plugin_can_redirect_an_agent_that_timed_out_with_a_shorter_task(world):
    world.engine.on(
        "subagent_stopping",
        lambda event, ctx: (
            {"allow": False, "prompt": "Only the first file."}
            if event.outcome == "timeout"
            else None
        ),
    )
    agent = Agent(Agent.WAIT, "the first file is done")
    result = world.spawned(agent, timeout=0.5)
    assert agent.got == ["do it", "Only the first file."]
    assert (result.ending, result.text, result.steers) == ("done", "the first file is done", 1)


@pytest.mark.rule("C2")
def test_a_native_gate_is_asked_after_an_error_where_its_endings_say_so(tmp_path):
    asked = []
    wants = Match(events=("subagent",), endings=("done", "error"))
    with World(tmp_path, gates=[gate("g", asked.append, match=wants)]) as world:
        world.spawned(Agent(FAILED))
    assert [(event.ending, event.error) for event in asked] == [("error", "boom")]


@pytest.mark.rule("C3", "K15")
@pytest.mark.parametrize(("verb", "ending"), [("kill", "killed"), ("reset", "reset")])
def test_killed_and_reset_run_no_gate_and_notify_observers(world, verb, ending):
    log = watched(world)
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)
    assert world.do(getattr(world.supervisor, verb)(handle)) is True
    result = world.result(handle)
    assert names(log) == ["subagent_stop", "subagent_ended"]
    assert log[1][1].outcome == ending
    assert log[1][1].reason == {"killed": "subagent-killed", "reset": "session-reset"}[ending]
    assert (result.ending, result.outcome) == (ending, "skipped")
    assert agent.aborts == 1
    assert world.do(getattr(world.supervisor, verb)(handle)) is False


@pytest.mark.rule("C4", "K6")
def test_an_interrupt_while_a_gate_runs_cancels_it_and_its_answer_is_dropped(tmp_path):
    asking = Asking(Block("go on"))
    with World(tmp_path, gates=[gate("g", asking)]) as world:
        log = watched(world)
        agent = Agent("done")
        handle = world.launch(agent)
        world.until(lambda: asking.asked)
        assert world.do(world.supervisor.interrupt(handle)) is True
        result = world.result(handle)
        world.until(lambda: asking.cancelled)
        assert world.rows("SELECT outcome, why FROM stops") == [("skipped", "cancelled")]
    assert (result.ending, result.outcome, result.text) == ("interrupted", "skipped", "done")
    assert names(log) == ["stop"]
    assert agent.got == ["do it"]


@pytest.mark.rule("C4")
def test_an_agent_that_its_user_stopped_inside_meets_no_gate(tmp_path):
    with World(tmp_path, gates=[gate("g", Block("go on"))]) as world:
        log = watched(world)
        agent = Agent(Turn(text="half", stop_reason="cancelled"))
        result = world.ran(agent)
    assert (result.ending, result.text, agent.got) == ("interrupted", "half", ["do it"])
    assert names(log) == ["stop"]


@pytest.mark.rule("C5", "K1")
def test_a_redirected_run_is_no_ending_and_observers_hear_of_the_last_one_only(world):
    log = watched(world)
    decisions = []
    world.engine.on("decision", lambda event, decision: decisions.append(decision.outcome))
    world.block(2)
    result = world.spawned(Agent("one", "two", "three"))
    assert names(log).count("subagent_ended") == names(log).count("subagent_stop") == 1
    told = dict(log)
    assert told["subagent_ended"].runId == result.run_id == f"{result.task_id}.3"
    assert told["subagent_stop"].result.text == "three"
    assert decisions == ["blocked", "blocked", "passed"]


@pytest.mark.rule("C6", "K16")
def test_a_run_that_a_person_redirects_meets_no_gate_and_is_no_ending(world):
    log = watched(world)
    agent = Agent(Agent.WAIT, "the other way")
    handle = world.spawn(agent)
    world.at_work(agent)
    world.do(world.supervisor.steer(handle, "Try the other way."))
    result = world.result(handle)
    assert names(log) == ["subagent_stopping", "subagent_stop", "subagent_ended"]
    assert log[0][1].lastAssistantMessage == "the other way"
    assert (result.generation, result.steers) == (2, 0)


@pytest.mark.rule("C6", "K16")
def test_the_late_end_of_a_steered_run_runs_no_gate(world):
    log = watched(world)
    agent = Agent(Agent.WAIT, Agent.WAIT)
    handle = world.spawn(agent)
    world.at_work(agent)

    async def both():
        await world.supervisor.steer(handle, "Try the other way.")
        return await world.supervisor.finish(f"{handle.task_id}.1", Turn(text="late"))

    assert world.do(both()) is False
    world.until(lambda: len(agent.got) == 2 and agent.waiting.is_set())
    assert log == []
    agent.come_back(Turn(text="in time"))
    assert world.result(handle).text == "in time"


@pytest.mark.rule("C7", "K14")
def test_an_internal_subagent_has_no_gates_and_no_observers(tmp_path):
    blocking = gate("g", Block("go on"), scopes=("agent", "subagent"))
    with World(tmp_path, gates=[blocking]) as world:
        log = watched(world)
        for name in ("session_start", "subagent_start", "decision"):
            world.engine.on(name, lambda event, ctx, name=name: log.append((name, event)))
        agent = Agent("compacted")
        result = world.spawned(agent, internal=True, agent_type="compact")
        assert world.rows("SELECT count(*) FROM stops") == [(0,)]
    assert log == []
    assert (result.outcome, result.stop_reason, result.text) == ("skipped", "internal", "compacted")
    assert agent.got == ["do it"]


@pytest.mark.rule("C8")
def test_each_kind_of_agent_has_its_own_gates_starts_and_observers(world):
    log = watched(world)
    for name in ("session_start", "subagent_start"):
        world.engine.on(name, lambda event, ctx, name=name: log.append((name, event)))
    world.ran(Agent("done"))
    assert names(log) == ["session_start", "stopping", "stop"]
    log.clear()
    world.spawned(Agent("done", id="s2"))
    assert names(log) == ["subagent_start", "subagent_stopping", "subagent_stop", "subagent_ended"]


@pytest.mark.rule("C9", "K6", "B5")
def test_a_users_message_while_a_gate_runs_is_sent_and_the_block_is_dropped(tmp_path):
    asking = Asking(Block("go on"))
    with World(tmp_path, gates=[gate("g", asking)]) as world:
        agent = Agent("done", "and the readme too")
        handle = world.launch(agent)
        world.until(lambda: asking.asked)
        world.do(world.supervisor.say(handle, "Mind the readme."))
        world.until(lambda: asking.asked == 2)
        assert asking.cancelled == 1
        asking.answer = None
        asking.open.set()
        result = world.result(handle)
        assert world.rows("SELECT outcome, why FROM stops ORDER BY id") == [
            ("skipped", "cancelled"),
            ("passed", ""),
        ]
    assert agent.got == ["do it", "Mind the readme."]
    assert (result.text, result.steers, result.unsent) == ("and the readme too", 0, ())


@pytest.mark.rule("C9")
def test_messages_that_come_while_the_agent_works_are_sent_together_before_the_gates(world):
    log = watched(world)
    agent = Agent(Agent.WAIT, "all three")
    handle = world.launch(agent)
    world.at_work(agent)
    world.do(world.supervisor.say(handle, "And this."))
    world.do(world.supervisor.say(handle, "And that."))
    agent.come_back(Turn(text="the first"))
    assert world.result(handle).text == "all three"
    assert agent.got == ["do it", "And this.\n\nAnd that."]
    assert names(log) == ["stopping", "stop"]


@pytest.mark.rule("C9", "C4")
def test_an_interrupt_keeps_unsent_messages_of_the_user(world):
    agent = Agent(Agent.WAIT)
    handle = world.launch(agent)
    world.at_work(agent)
    world.do(world.supervisor.say(handle, "One more thing."))
    world.do(world.supervisor.interrupt(handle))
    result = world.result(handle)
    assert (result.ending, result.unsent) == ("interrupted", ("One more thing.",))
    assert agent.got == ["do it"]


@pytest.mark.rule("C9", "K16")
def test_a_steer_by_hand_clears_what_machines_said_and_keeps_what_the_user_said(tmp_path):
    parent = Agent(Agent.WAIT, "other way", "read it", id="p")
    with World(tmp_path) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        above = world.launch(parent)
        world.at_work(parent)
        child = world.spawn(Agent("the report", id="c"), parent=above)
        world.until(lambda: world.view(child).delivery == "delivered")
        world.do(world.supervisor.say(above, "Be brief."))
        world.do(world.supervisor.steer(above, "The other way."))
        world.result(above)
    assert parent.got == ["do it", "The other way.", "Be brief."]


@pytest.mark.rule("C1")
@pytest.mark.parametrize("reason", ["max_tokens", "max_turns", "refusal"])
def test_an_agent_that_ran_into_a_limit_of_its_own_is_done_and_the_gates_are_told_why(
    world, reason
):
    log = watched(world)
    world.spawned(Agent(Turn(text="so far", stop_reason=reason)))
    assert (log[0][1].outcome, log[0][1].reason) == ("ok", reason)
