"""Hermes, whose hook comes only after edits, so that the contract of the others is not its own."""

import pytest

from clients.conftest import only
from clients.killed_hook import run_with_killed_hook
from clients.model.script import Fail, Run, Say
from clients.test_every_host import TOGETHER

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
LIMITED = "[limits]\nmax_blocks = 2\nstuck_after = 0\n"
pytestmark = pytest.mark.timeout(600)


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


@pytest.mark.full
@only("hermes")
@pytest.mark.rule("C4")
def test_an_error_of_the_model_is_no_stop_that_gates_are_run_for(host):
    host.gates('[gates.asked]\nrun = "touch asked; exit 1"\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run({"main": lambda n, _request: Fail(400) if n else Run("touch x")})
    assert host.shows_error(ran), ran.out
    assert not (host.project / "asked").exists()
    assert host.stops() == []


@pytest.mark.full
@only("hermes")
@pytest.mark.rule("B4")
def test_a_session_that_is_resumed_is_gated_as_the_same_session(host):
    host.gates("[limits]\nmax_blocks = 1\n" + READY)
    host.install()
    host.is_one_session = True
    for words, args in (("One", ()), ("Two", host.RESUME)):
        steps = [Run("touch x"), Say(f"{words}!"), Run("touch ready"), Say(f"{words}.")]
        ran = host.run(steps, args=args)
        assert (ran.code, ran.text) == (0, f"{words}."), ran.err
        (host.project / "ready").unlink()
    assert "One." in str(ran.model.asked()[0].raw)
    assert host.outcomes() == ["blocked", "passed"] * 2
    assert len({stop.session_id for stop in host.stops()}) == 1


@pytest.mark.full
@only("hermes")
@pytest.mark.rule("A9")
def test_two_sessions_in_one_project_are_counted_each_for_itself(host):
    host.gates(TOGETHER)
    host.install()
    with (
        host.start([Run("touch a"), Say("A: done!"), Say("A: done.")]) as one,
        host.start([Run("touch b"), Say("B: done!"), Say("B: done.")]) as two,
    ):
        first, second = one.wait(), two.wait()
    assert (first.text, second.text) == ("A: done.", "B: done.")
    assert sorted(host.outcomes()) == ["blocked", "blocked", "passed", "passed"]
    assert len({stop.session_id for stop in host.stops()}) == 2


@pytest.mark.full
@only("hermes")
@pytest.mark.rule("E9")
def test_a_gate_that_outlives_the_hosts_timeout_is_ended_and_the_agent_sent_back(host):
    host.gates('[gates.slow]\nrun = "sleep 1000"\ntimeout = "10m"\n')
    host.install("--timeout", "5s")
    ran = host.run([Run("touch x"), Say("Done!"), Say("BLOCKED: it is too slow.")])
    assert (ran.code, ran.text) == (0, "BLOCKED: it is too slow."), ran.err
    (prompt,) = host.WIRE.prompts(ran.model.asked()[2].news)
    assert "all that its host allows: it hangs or is too slow." in prompt
    assert host.outcomes()[0] == "blocked"
