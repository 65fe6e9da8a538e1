"""Command gates in an embedded engine: mixed with functions, cut by a deadline, cancelled."""

import asyncio
import os
import time

import pytest

from notyet import Allow, Block, Command, Engine, Gate
from notyet.core.verdict import Problem
from support import both_ways, gate, run_async, run_sync, stop, wait_for


def command(name, script, **fields):
    return Gate(name=name, check=Command(script=script), **fields)


def within(seconds):
    """Both ways of checking with so many seconds to go."""

    def sync(engine):
        return engine.check_sync(stop(), within=seconds)

    def loop(engine):
        return asyncio.run(engine.check(stop(), within=seconds))

    return sync, loop


@both_ways
@pytest.mark.rule("E10")
def test_commands_and_functions_of_a_stage_are_asked_together(run, tmp_path):
    fifo = tmp_path / "meet"
    os.mkfifo(fifo)

    def meets(_event):  # opens only when the command writes, so neither can go first
        return Allow(note=fifo.read_text())

    decision = run(Engine([gate("f", meets), command("c", f"echo hello > {fifo}")]))
    assert [report.status for report in decision.reports] == ["allowed", "allowed"]
    assert decision.reports[0].answer.note == "hello\n"
    assert decision.reports[1].exit == "exit 0"


@both_ways
@pytest.mark.rule("E10", "A11")
def test_a_command_that_fails_sends_the_agent_back_with_its_output(run):
    decision = run(Engine([command("tests", "echo one failed; echo badly >&2; exit 3")]))
    assert isinstance(decision.verdict, Block)
    assert "FAILED tests (exit 3, " in decision.verdict.prompt
    assert "  one failed\n  badly\n" in decision.verdict.prompt
    assert decision.reports[0].output == "one failed\nbadly"


@pytest.mark.rule("E9")
@pytest.mark.parametrize("check", within(0.3))
def test_what_is_still_at_work_at_the_deadline_is_ended_and_never_blocks(check):
    gates = [
        command("slow", "sleep 60", if_broken="block"),
        gate("thread", lambda _: time.sleep(2), timeout=None, if_broken="block"),
        gate("timed", lambda _: time.sleep(2), timeout=60, if_broken="block"),
    ]
    started = time.monotonic()
    decision = check(Engine(gates))
    assert time.monotonic() - started < 20
    assert (decision.outcome, decision.verdict) == ("failed_open", Allow())
    assert [report.answer.kind for report in decision.reports] == ["deadline"] * 3


@pytest.mark.rule("E9", "A6")
def test_a_command_that_had_its_share_of_the_time_has_timed_out():
    gates = [command("slow", "sleep 60", if_broken="block"), command("ok", "true")]
    decision = Engine(gates).check_sync(stop(), within=2.5)
    assert decision.outcome == "blocked"
    assert decision.reports[0].answer.kind == "timeout"
    assert "all that its host allows: it hangs or is too slow" in decision.verdict.prompt


@pytest.mark.rule("E9", "A6")
def test_a_late_stage_that_the_deadline_cuts_never_blocks():
    gates = [
        command("first", "sleep 2.5", priority=1),
        command("late", "sleep 60", if_broken="block"),
    ]
    decision = Engine(gates).check_sync(stop(), within=3.5)
    assert decision.outcome == "failed_open"
    assert decision.reports[1].answer.kind == "deadline"


@pytest.mark.rule("E9")
@pytest.mark.parametrize("check", within(30))
def test_a_gate_whose_own_time_is_up_before_the_deadline_is_broken_as_ever(check):
    gates = [
        command("slow", "sleep 60", timeout=0.2, if_broken="block"),
        gate("thread", lambda _: time.sleep(2), timeout=0.2),
    ]
    decision = check(Engine(gates))
    assert [report.answer.kind for report in decision.reports] == ["timeout", "timeout"]
    assert decision.outcome == "blocked"


@pytest.mark.rule("E9")
@pytest.mark.parametrize("check", within(0))
def test_with_no_time_left_nothing_is_started(check, tmp_path):
    decision = check(Engine([command("c", f"touch {tmp_path}/ran")]))
    assert decision.reports[0].answer.kind == "deadline"
    assert not (tmp_path / "ran").exists()


@pytest.mark.rule("E2")
def test_cancelling_a_check_ends_its_commands(tmp_path):
    async def cancelled():
        script = f"echo $$ > {tmp_path}/pid; sleep 60"
        checking = asyncio.ensure_future(Engine([command("c", script)]).check(stop()))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        checking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await checking

    asyncio.run(cancelled())
    pid = (tmp_path / "pid").read_text().strip()
    wait_for(lambda: not os.path.exists(f"/proc/{pid}"))


@both_ways
@pytest.mark.rule("E7")
def test_a_command_runs_where_the_agent_works_unless_it_has_a_folder(run, tmp_path):
    (tmp_path / "there").mkdir()
    there = Command(argv=("pwd",), dir=str(tmp_path / "there"))
    gates = [command("here", "pwd; exit 1"), Gate(name="there", check=there)]
    decision = run(Engine(gates), stop(cwd=str(tmp_path)))
    assert [report.output for report in decision.reports] == [str(tmp_path), f"{tmp_path}/there"]


@both_ways
def test_a_long_output_of_a_failed_gate_is_kept_in_a_log(run, tmp_path):
    from notyet import Ledger

    engine = Engine([command("loud", "seq 1 5000; exit 1")], ledger=Ledger(tmp_path / "ledger.db"))
    (report,) = run(engine).reports
    assert report.log.startswith(str(tmp_path / "logs" / "stop-1-loud"))
    with open(report.log) as file:
        assert file.read().split("\n")[:5000] == [str(n) for n in range(1, 5001)]
    assert os.stat(report.log).st_mode & 0o777 == 0o600


def test_a_reader_that_fails_is_a_problem_of_the_gate(monkeypatch):
    from notyet.hosts.notyet import hooks as native

    monkeypatch.setattr(native, "read_reply", lambda *_: 1 / 0)
    for run in (run_sync, run_async):
        decision = run(Engine([command("c", "true", if_broken="block")]))
        assert decision.outcome == "failed_open"  # it is our fault
        (report,) = decision.reports
        assert report.answer == Problem("internal", "ZeroDivisionError: division by zero")


@both_ways
@pytest.mark.rule("A9")
def test_a_functions_answer_that_comes_too_late_is_dropped_while_a_command_goes_on(run):
    def late(_event):
        time.sleep(0.3)
        return Block("late")

    decision = run(Engine([gate("f", late, timeout=0.1), command("c", "sleep 0.6")]))
    assert [report.status for report in decision.reports][1] == "allowed"
    assert decision.reports[0].answer.kind == "timeout"


def test_a_length_of_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="not NaN"):
        Engine([gate("g", None)]).check_sync(stop(), within=float("nan"))


def test_output_that_cannot_be_kept_is_said_and_changes_nothing(tmp_path):
    from notyet import Ledger, LedgerError

    class Full(Ledger):
        def keep_output(self, begun, report):
            raise LedgerError(self.path, "full")

    said = []
    (tmp_path / "logs").write_text("in the way")
    for ledger in (Full(tmp_path / "a.db"), Ledger(tmp_path / "b.db")):
        engine = Engine([command("loud", "seq 1 5000; exit 1")], ledger=ledger, warn=said.append)
        assert engine.check_sync(stop()).outcome == "blocked"
        ledger.close()
    assert any("full (the whole output of loud was not kept)" in line for line in said)
    assert "the whole output of loud could not be kept" in said
