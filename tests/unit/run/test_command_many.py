"""More commands than can run at once get their turns; an interrupted run leaves nothing."""

import os
import sys
import time

import pytest

from commands import pids_in, python, run, run_together, running, script, until
from notyet.core.verdict import Allow
from notyet.hosts.hook_answers import HookAnswer
from notyet.run import command_runner as command
from notyet.run import gate_command
from notyet.run.gate_command import GateCommand, run_commands

pytestmark = pytest.mark.rule("E2", "E9")


def question(job):
    return GateCommand(name="g", job=job, read=lambda _: HookAnswer(answer=Allow()))


def test_no_more_than_the_width_run_at_a_time_and_all_have_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_WIDTH", 3)
    text = "touch here-$$; ls | grep -c here-; sleep 0.02; rm here-$$; exit 7"
    ended = run_together([script(text, tmp_path)] * 20)
    assert [one.code for one in ended] == [7] * 20
    assert max(int(one.stdout) for one in ended) <= 3


def test_the_deadline_is_the_same_for_all_also_for_those_that_still_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_WIDTH", 1)
    texts = ["exec sleep 1000", "touch ran"]
    started = time.monotonic()
    asked = [question(script(text, tmp_path, timeout=600)) for text in texts]
    reports = run_commands(asked, started + 0.3)
    assert time.monotonic() - started < 15
    assert [report.answer.kind for report in reports] == ["deadline"] * 2
    assert not (tmp_path / "ran").exists()


def test_nothing_more_is_started_once_it_is_cancelled(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_WIDTH", 1)
    heard, tells = os.pipe()
    first = script(f"echo $$ > a.pid; echo x > /dev/fd/{tells}; exec sleep 1000", tmp_path)
    os.set_inheritable(tells, True)
    jobs = [script("touch ran", tmp_path)] * 2
    monkeypatch.setattr(command, "inheritable_fds", list)  # so that the command has the pipe
    ended = run_together([first, *jobs], cancel=heard)
    os.close(heard)
    os.close(tells)
    assert [one.cancelled for one in ended] == [True] * 3
    assert not (tmp_path / "ran").exists()
    assert not any(map(running, pids_in(tmp_path)))


@pytest.mark.parametrize("most", [26, 40])
def test_with_few_descriptors_all_run_a_few_at_a_time(most):
    code = f"""
import os, resource, sys
sys.path[:0] = sys.argv[1:]
from commands import run_together, script
resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))
before = sorted(os.listdir("/dev/fd"))
ended = run_together([script("ulimit -n; exit 7")] * 60)
assert sorted(os.listdir("/dev/fd")) == before
print({{(one.code, one.problem, one.stdout) for one in ended}})
"""
    ended = run(python(code, *(path for path in sys.path if path), timeout=50))
    assert (ended.stdout.decode(), ended.stderr) == (f"{{(7, '', b'{most}\\n')}}\n", b"")


def test_leftovers_that_hold_descriptors_are_waited_for():
    code = """
import resource, sys
sys.path[:0] = sys.argv[1:]
from commands import run_together, script
resource.setrlimit(resource.RLIMIT_NOFILE, (14, 14))
left = script("(trap '' TERM; while :; do sleep 0.1; done) & exit 7")
print({(one.code, one.problem) for _ in range(5) for one in run_together([left] * 4)})
"""
    ended = run(python(code, *(path for path in sys.path if path), timeout=50))
    assert (ended.stdout, ended.stderr) == (b"{(7, '')}\n", b"")


def test_an_interruption_right_after_a_start_ends_what_was_started(tmp_path, monkeypatch):
    def interrupted(*_):
        assert until(lambda: pids_in(tmp_path))
        raise KeyboardInterrupt

    monkeypatch.setattr(command.CommandRunner, "_listen_to", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(script("echo $$ > a.pid; exec sleep 1000", tmp_path))
    assert time.monotonic() - started < 15
    assert not any(map(running, pids_in(tmp_path)))


def test_a_bug_in_the_loop_still_ends_everything(tmp_path, monkeypatch):
    def bug(*_):
        raise RuntimeError("a bug")

    monkeypatch.setattr(command.CommandRunner, "_read", bug)
    before = sorted(os.listdir("/dev/fd"))
    with pytest.raises(RuntimeError, match="a bug"):
        run(script("echo $$ > a.pid; echo x; trap '' TERM; while :; do sleep 0.1; done", tmp_path))
    (pid,) = pids_in(tmp_path)
    assert not running(pid)
    assert sorted(os.listdir("/dev/fd")) == before


KILLED_AT_ONCE = """
import os, sys
sys.path[:0] = sys.argv[2:]
from commands import run_together, script
from notyet.run import process
launch = process.launch
def launch_and_die(*args):
    launch(*args)
    while not os.path.exists(sys.argv[1] + "/a.pid"):
        pass
    os.kill(os.getpid(), 9)
process.launch = launch_and_die
run_together([script("echo $$ > a.pid; exec sleep 1000", sys.argv[1])])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a mark is found in /proc only")
def test_a_command_ends_also_when_we_are_killed_right_after_its_start(tmp_path):
    paths = (path for path in sys.path if path)
    ended = run(python(KILLED_AT_ONCE, str(tmp_path), *paths, timeout=30))
    assert ended.signal == 9
    assert until(lambda: pids_in(tmp_path) and not any(map(running, pids_in(tmp_path))))


def test_so_many_run_at_a_time_and_waiting_costs_no_time(tmp_path):
    text = "touch here-$$; ls | grep -c here-; sleep 0.3; rm here-$$"
    asked = [question(script(text, tmp_path, timeout=30)) for _ in range(6)]
    reports = run_commands(asked, None, jobs=2)
    assert [report.status for report in reports] == ["allowed"] * 6
    assert max(int(report.output) for report in reports) <= 2
    asked = [question(script("echo $$", tmp_path, timeout=600)) for _ in range(3)]
    assert all(report.output for report in run_commands(asked, None, jobs=1))


def test_by_default_as_many_run_as_there_are_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(gate_command, "cores", lambda: 1)
    text = "touch here-$$; ls | grep -c here-; sleep 0.05; rm here-$$"
    reports = run_commands([question(script(text, tmp_path)) for _ in range(4)], None)
    assert [report.output for report in reports] == ["1"] * 4


def test_cores_are_those_that_this_process_may_use(monkeypatch):
    assert gate_command.cores() == len(os.sched_getaffinity(0))
    monkeypatch.delattr(gate_command.light, "sched_getaffinity")
    assert gate_command.cores() == os.cpu_count()
