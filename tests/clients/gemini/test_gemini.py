"""What is special about Gemini CLI: no cap, no turns, subagents without a name, trust, switches."""

from __future__ import annotations

import json

import pytest

from clients.conftest import only
from clients.model.script import Run, Say, Spawn

pytestmark = [pytest.mark.full, only("gemini")]
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
READY = '[gates.ready]\nrun = "test -e ready"\n'
LIMITED = "[limits]\nmax_blocks = {0}\nstuck_after = 0\n"


def faults(host):
    """Return the codes of what `notyet status` finds wrong."""
    said = json.loads(host.notyet("status", "gemini", "--json", PATH=host.path).stdout)
    found = [fault for part in (said, *said["hosts"]) for fault in part["faults"]]
    return {fault["code"] for fault in found if fault["level"] == "fault"}


@pytest.mark.rule("B1", "B4")
def test_tools_between_the_send_backs_buy_no_more_of_them(host):
    host.gates(LIMITED.format(3) + NEVER)
    host.install()
    script = [Say("a"), Run("echo 1 > x"), Say("b"), Run("echo 2 > x"), Say("c"), Say("d")]
    ran = host.run(script)
    assert (ran.code, ran.text) == (0, "d"), ran.err
    assert host.outcomes() == ["blocked", "blocked", "blocked", "capped"]
    assert host.tells_user(ran, "NOT PASSED: never still failing; 3 of 3 send-backs used")


@pytest.mark.rule("B4")
def test_a_stop_that_passes_refills_the_send_backs_of_a_session(host):
    host.gates(LIMITED.format(1) + READY)
    host.install()
    host.is_one_session = True
    host.run([Say("a"), Run("touch ready"), Say("b")])
    (host.project / "ready").unlink()
    host.run([Say("c"), Say("d")], args=host.RESUME)
    assert host.outcomes() == ["blocked", "passed", "blocked", "capped"]


@pytest.mark.rule("B1")
def test_a_subagent_and_its_parent_have_budgets_of_their_own(host):
    host.gates(LIMITED.format(1) + NEVER + 'for = "all"\n')
    host.install()
    ran = host.run(
        {
            "main": [Spawn("[actor: child] Do it."), Say("Done."), Say("Still done.")],
            "child": [Run("echo 1 > x"), Say("Mine."), Say("Mine is all there is.")],
        }
    )
    assert (ran.code, ran.text) == (0, "Still done."), ran.err
    assert host.outcomes() == ["blocked", "capped", "blocked", "capped"]
    assert any("Mine is all there is." in text for text in ran.model.asked()[-1].results)
    assert host.tells_user(ran, "subagent subagent: NOT PASSED: never failed")


@pytest.mark.rule("K15")
def test_a_gate_that_halts_lets_a_subagent_report_and_ends_the_turn_of_its_parent(host):
    halt = """'{"decision": "halt", "reason": "enough for today"}'"""
    host.gates(f'[gates.budget]\nrun = """echo {halt}"""\nfor = "all"\n')
    host.install()
    ran = host.run(
        {
            "main": [Spawn("[actor: child] Do it."), Say("Done.")],
            "child": [Say("Mine.")],
        }
    )
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.outcomes() == ["halted", "halted"]
    assert host.tells_user(ran, "enough for today")


@pytest.mark.rule("F13")
def test_a_start_has_words_for_the_agent_and_later_stops_know_what_changed(host):
    host.gates('[start]\ntell = true\n[gates.tests]\nrun = "test ! -e bad"\nwhen = "changed"\n')
    (host.project / "bad").write_text("of yesterday\n")
    host.install()
    ran = host.run([Say("It is a project.")])
    assert (ran.code, ran.text) == (0, "It is a project."), ran.err
    assert host.outcomes() == ["skipped"]
    assert host.stops()[0].why == "unchanged"
    (context,) = host.WIRE.contexts(ran.model.asked()[0])
    assert "tests" in context
    ran = host.run([Run("echo two > file.txt"), Say("Done!"), Run("rm bad"), Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.outcomes() == ["skipped", "blocked", "passed"]


def test_a_project_that_is_not_trusted_runs_no_hook_of_its_own(host):
    host.gates(NEVER)
    host.install("--project")
    host.ungated = {"main"}
    host.trusted.unlink()
    refused = host.run([Say("Done.")])
    assert (refused.code, refused.model.requests) == (55, [])
    ran = host.run([Say("Done.")], args=("--skip-trust",))
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.stops() == []
    assert faults(host) == {"folder-not-trusted"}


def test_a_project_is_gated_where_a_variable_trusts_it(host):
    host.gates(READY)
    host.install("--project")
    host.trusted.unlink()
    ran = host.run(
        [Say("Done!"), Run("touch ready"), Say("Done.")],
        GEMINI_CLI_TRUST_WORKSPACE="true",
        PATH=host.path,
    )
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.outcomes() == ["blocked", "passed"]


@pytest.mark.parametrize("switch", [{"enabled": False}, {"disabled": ["notyet"]}])
def test_hooks_that_are_switched_off_are_a_fault(host, switch):
    host.gates(NEVER)
    host.install()
    assert faults(host) == set()
    host.configure(hooksConfig=switch)
    host.ungated = {"main"}
    ran = host.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.stops() == []
    assert faults(host) == {"hooks-disabled"}


def test_a_project_is_not_gated_from_a_folder_below(host):
    host.gates(NEVER)
    host.install("--project")
    host.ungated = {"main"}
    below = host.project / "below"
    below.mkdir()
    line = ["sh", "-c", 'cd below && exec "$@"', "sh", *host.line("do it", (), "")]
    ran = host.run([Say("Done.")], line=line, PATH=host.path)
    assert (ran.code, ran.text) == (0, "Done."), ran.err
    assert host.stops() == []
