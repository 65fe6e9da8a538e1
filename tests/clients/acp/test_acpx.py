"""A real client, acpx, with an agent behind `notyet acp`: what its user sees."""

from __future__ import annotations

import pytest

from clients.acp.test_agents import LEARNS, NEVER, READY, gated
from clients.conftest import program_or_skip
from clients.model.script import Say
from clients.programs import ACPX, node_of

with_goose = pytest.mark.parametrize("agent", ["goose-acp"], indirect=True)


def line(agent, proxy="notyet acp"):
    """Return what starts acpx for one prompt."""
    program = program_or_skip(ACPX)
    command = f"{proxy} -- {' '.join(agent.row.command.split())}"
    options = ("--cwd", str(agent.project), "--approve-all", "--agent", command)
    return [str(node_of(ACPX) / "node"), str(program), *options, "exec", "do it"]


@with_goose
@pytest.mark.rule("A11", "N3")
def test_its_user_sees_the_send_back_and_the_pass(agent):
    gated(agent, READY)
    ran = agent.run(LEARNS, line=line(agent))
    assert ran.code == 0, ran.err
    assert agent.outcomes() == ["blocked", "passed"]
    shown = [one for one in ran.out.splitlines() if "notyet" in one or one.startswith("[done]")]
    assert "[tool] notyet: sent back 1 of 3 (failed)" in shown
    assert "[tool] notyet: passed after 1 send-back (completed)" in shown
    assert shown[-1] == "[done] end_turn"
    assert ran.out.index("Done!") < ran.out.index("sent back") < ran.out.index("Now it is.")


@with_goose
@pytest.mark.full
@pytest.mark.rule("B1", "N3")
def test_its_user_reads_that_the_agent_did_not_pass(agent):
    gated(agent, NEVER)
    script = [Say(f"Try {n}.") for n in range(3)]
    ran = agent.run(script, line=line(agent, "notyet acp --max-blocks 2"))
    assert ran.code == 0, ran.err
    assert agent.outcomes() == ["blocked", "blocked", "capped"]
    last = [one for one in ran.out.splitlines() if one.strip()][-2:]
    assert "NOT PASSED: never still failing" in last[0]
    assert last[1] == "[done] end_turn"
