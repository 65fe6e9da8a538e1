"""A gate is running when the user, or somebody else, ends it."""

import os
import signal

import pytest

from clients.killed_hook import run_with_killed_hook
from clients.model.script import Say
from commands import pids_in, until

SLOW = """\
[gates.slow]
run = "test -e quick && exit 0; echo $$ > gate.pid.new; mv gate.pid.new gate.pid; sleep 50; exit 1"
"""
GONE = ("asking", "skipped")  # killed before it could say so; found out at the next stop


def gate_runs(codex):
    """Wait until the gate runs; return its process."""
    assert until(lambda: pids_in(codex.project), 30)
    return pids_in(codex.project)[0]


@pytest.mark.rule("C4")
@pytest.mark.parametrize("whole_group", [True, False])
def test_ctrl_c_during_a_gate_ends_it_all(codex, whole_group):
    codex.gates(SLOW)
    codex.install()
    with codex.start([Say("done")]) as running:
        gate_runs(codex)
        if whole_group:
            running.interrupt()
        else:
            os.kill(running.process.pid, signal.SIGINT)
        ran = running.wait()
    assert "turn interrupted" in ran.err
    assert len(ran.model.requests) == 1
    (stop,) = codex.stops()
    assert stop.outcome in GONE
    assert until(lambda: not codex.processes(), 10)


@pytest.mark.rule("C4", "B11")
def test_the_turn_after_an_interrupted_one_is_gated_as_usual(codex):
    codex.gates(SLOW)
    codex.install()
    script = [Say("one"), Say("two")]
    with codex.serving(script) as (server, thread, model):
        turn = server.begin(thread, "do it")
        gate = gate_runs(codex)
        server.ask("turn/interrupt", threadId=thread, turnId=turn)
        assert server.ended(turn)["status"] == "interrupted"
        assert until(lambda: not os.path.exists(f"/proc/{gate}"), 10)
        (codex.project / "quick").touch()
        again = server.begin(thread, "and now")
        assert server.ended(again)["status"] == "completed"
    assert model.said() == ["one", "two"]
    first, second = codex.stops()
    assert (first.outcome, second.outcome) == ("skipped", "passed")
    assert first.why in {"lost", "cancelled"}
    assert [stop.turn for stop in codex.stops()] == [1, 2]


@pytest.mark.rule("B3")
def test_a_hook_that_is_killed_lets_the_agent_go_and_leaves_no_gate(codex):
    ran = run_with_killed_hook(codex)
    assert (ran.code, ran.text) == (0, "Done.")
    assert "hook: Stop Failed" in ran.err
    assert not codex.processes()
    assert codex.outcomes() == ["asking"]
    codex.run([Say("again")], args=("resume", "--last"))
    assert [(stop.outcome, stop.why) for stop in codex.stops()] == [
        ("skipped", "lost"),
        ("passed", ""),
    ]
