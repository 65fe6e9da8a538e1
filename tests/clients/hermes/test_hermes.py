"""Hermes, whose hook comes only after edits, so that the contract of the others is not its own."""

import pytest

from clients.conftest import only
from clients.killed_hook import run_with_killed_hook
from clients.model.script import Run, Say

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
LIMITED = "[limits]\nmax_blocks = 2\nstuck_after = 0\n"
pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]


@only("hermes")
@pytest.mark.rule("A11", "N2")
def test_an_agent_that_edited_is_sent_back_until_its_gates_pass(host):
    host.gates(READY)
    host.install()
    ran = host.run([Run("touch x"), Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]
    (prompt,) = host.WIRE.prompts(ran.model.asked()[2].news)
    assert "Make it ready." in prompt


@only("hermes")
@pytest.mark.rule("B1", "B3")
def test_an_agent_whose_gates_never_pass_delivers_its_answer_at_our_limit(host):
    host.gates(LIMITED + NEVER)
    host.install()
    ran = host.run([Run("touch x"), *(Say(f"Try {n}.") for n in range(3))])
    assert (ran.code, ran.text) == (0, "Try 2."), ran.err
    assert host.outcomes() == ["blocked", "blocked", "capped"]


@only("hermes")
def test_nothing_is_left_in_its_settings_and_no_stop_without_edits_is_gated(host):
    settings = host.home / ".hermes" / "config.yaml"
    before = settings.read_bytes()
    host.gates(NEVER)
    host.install()
    assert settings.read_bytes() != before
    host.ungated = {"main"}
    assert host.run([Say("Hello.")]).text == "Hello."
    assert host.stops() == []
    assert host.notyet("status", "hermes").returncode == 0  # --accept-hooks was consent
    host.uninstall()
    assert settings.read_bytes() == before
    assert host.run([Run("touch x"), Say("Done.")]).text == "Done."
    assert host.stops() == []


@only("hermes")
@pytest.mark.rule("E2", "B11")
def test_a_hook_that_crashes_lets_the_agent_go(host):
    crashed = run_with_killed_hook(host, Run("touch x"))
    assert (crashed.code, crashed.text) == (0, "Done."), crashed.err
    assert host.outcomes() == ["asking"]
