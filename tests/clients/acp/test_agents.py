"""What holds with every agent that speaks ACP, proven on its real program behind `notyet acp`."""

from __future__ import annotations

import threading

import pytest

from clients.acp.conftest import AGENTS
from clients.acp.editor import until_seen
from clients.acp.over_acp import HELD
from clients.model.script import Fail, Run, Say
from notyet.hosts.acp_agents import ACP_AGENTS

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
NEVER = '[limits]\nstuck_after = 0\n[gates.never]\nrun = "echo it is never right; exit 1"\n'
SLOW = '[gates.slow]\nrun = "touch asked; [ -e ready ] || sleep 1000"\n'
LEARNS = [Say("Done!"), Run("touch ready"), Say("Now it is.")]


def gated(agent, toml):
    agent.gates(toml)
    agent.trust()


@pytest.mark.rule("A11", "N2")
def test_an_agent_is_sent_back_in_the_same_session_until_its_gates_pass(agent):
    gated(agent, READY)
    with agent.serving(LEARNS) as (editor, model):
        assert editor.ask("do it")["stopReason"] == "end_turn"
    asked = model.asked()
    assert any("do it" in text for text in asked[1].texts)
    assert "Done!" in str(asked[1].raw)
    assert "FAILED ready (exit 1" in asked[1].last
    assert "Make it ready." in asked[1].last
    assert agent.outcomes() == ["blocked", "passed"]
    (session,) = {stop.session_id for stop in agent.stops()}
    assert session == editor.session
    assert {stop.host for stop in agent.stops()} == {agent.HOST}
    assert "notyet: sent back 1 of 3" in editor.titles()
    assert "notyet: passed after 1 send-back" in editor.titles()


@pytest.mark.full
@pytest.mark.rule("B1", "B3")
def test_an_agent_whose_gates_never_pass_is_let_go_at_the_limit_and_the_client_reads_it(agent):
    gated(agent, NEVER)
    with agent.serving([Say(f"Try {n}.") for n in range(3)], "--max-blocks", "2") as (editor, _):
        assert editor.ask("do it")["stopReason"] == "end_turn"
    assert agent.outcomes() == ["blocked", "blocked", "capped"]
    assert "NOT PASSED: never still failing" in editor.text()
    assert [title for title in editor.titles() if "passed" in title] == []


@pytest.mark.full
@pytest.mark.rule("C4")
def test_a_turn_that_is_cancelled_while_its_gate_runs_ends_at_once(agent):
    gated(agent, SLOW)
    with agent.serving([Say("Done!"), Say("Again.")]) as (editor, _):
        number = editor.prompt("do it")
        until_seen(editor, (agent.project / "asked").exists)
        editor.cancel()
        assert editor.end(number)["stopReason"] == "cancelled"
        (agent.project / "ready").touch()
        assert editor.ask("go on")["stopReason"] == "end_turn"
    assert agent.outcomes() == ["skipped", "passed"]


@pytest.mark.full
@pytest.mark.rule("C4")
def test_a_turn_that_is_cancelled_during_the_follow_up_ends_without_gates(agent):
    gated(agent, READY)
    is_over = threading.Event()
    held = Say(HELD, once=is_over.is_set)
    with agent.serving([Say("Done!"), held, Say("Again.")]) as (editor, model):
        number = editor.prompt("do it")
        until_seen(editor, lambda: len(model.asked()) > 1)
        editor.cancel()
        if agent.WAITS_FOR_MODEL:
            is_over.set()
        end = editor.end(number)
        is_over.set()
        assert end["stopReason"] == "cancelled"
        assert agent.outcomes() == ["blocked"]
        (agent.project / "ready").touch()
        assert editor.ask("go on")["stopReason"] == "end_turn"
    assert agent.outcomes() == ["overridden", "passed"]


@pytest.mark.full
@pytest.mark.rule("B12")
def test_an_agent_that_runs_its_own_hook_too_is_gated_once_by_the_proxy(agent):
    agent.gates(READY)
    agent.install()
    with agent.serving(LEARNS) as (editor, _):
        assert editor.ask("do it")["stopReason"] == "end_turn"
    assert [stop.outcome for stop in agent.decided()] == ["blocked", "passed"]
    assert {stop.session_id for stop in agent.decided()} == {editor.session}
    own = [stop for stop in agent.stops() if stop.session_id == editor.session]
    left = [stop for stop in own if stop.why == "supervised"]
    assert len(left) == (2 if agent.row.runs_hook else 0)


@pytest.mark.full
@pytest.mark.rule("C2")
def test_a_failed_call_of_the_model_is_not_gated_and_said_to_be_not_checked(agent):
    gated(agent, '[gates.asked]\nrun = "echo >> asked"\n')
    fails = [True]

    def step(_n, _request):
        return Fail(400) if fails[0] else Say("Done.")

    with agent.serving({"main": step}) as (editor, _):
        ends = [editor.ask("one")]
        fails[0] = False
        assert editor.ask("two")["stopReason"] == "end_turn"
        fails[0] = True
        ends.append(editor.ask("three"))
    are_hidden = [end.get("stopReason") == "end_turn" for end in ends]
    assert are_hidden == [agent.HIDES_FAILURES] * 2, ends
    skipped = [("skipped", "model-error")] if agent.HIDES_FAILURES else []
    passed = [("passed", "")]
    assert [(stop.outcome, stop.why) for stop in agent.stops()] == skipped + passed + skipped
    assert (agent.project / "asked").read_text() == "\n"
    assert editor.text().count("**notyet**: NOT CHECKED: the agent") == 2 * len(skipped)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_table_of_agents_names_the_newest_version_that_is_tried(agent):
    kind = AGENTS[agent]
    row = next(one for one in ACP_AGENTS if one.host == kind.world.HOST)
    tried = [(one.adapter or one.program).version for one in AGENTS.values()]
    assert row.tested in tried
    assert row.tested_on


def test_every_agent_of_the_table_is_tried_here():
    assert {kind.world.HOST for kind in AGENTS.values()} == {row.host for row in ACP_AGENTS}
