"""What a command started is gone when we are done with it, and when we are killed (E2)."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import pids_in, python, run, run_together, running, script, until
from notyet.run import command_runner as command
from notyet.run import command_runner as started
from notyet.run import groups, process
from notyet.run.groups import Watchdog

pytestmark = pytest.mark.rule("E2")

PATHS = [path for path in sys.path if path]
# Each leaves something in the background that would run for long, and writes down its number.
LEFT = {
    "in the background": "(echo 0; exec sh -c 'echo $$ > a.pid; exec sleep 1000') &",
    "with its output elsewhere": "sh -c 'echo $$ > a.pid; exec sleep 1000' >/dev/null 2>&1 &",
    "by a double fork": "(sh -c 'echo $$ > a.pid; exec sleep 1000' &) &",
    "ignoring SIGTERM": "sh -c 'trap \"\" TERM; echo $$ > a.pid; while :; do sleep 0.1; done' &",
    "with nohup": "nohup sh -c 'echo $$ > a.pid; exec sleep 1000' &",
}
WAIT = "until [ -s a.pid ]; do sleep 0.01; done;"
# Gates of all sorts in a program of its own, which somebody then kills.
VICTIM = """
import sys
sys.path[:0] = sys.argv[2:]
from commands import run_together, script
texts = [
    "echo $$ > a.pid; exec sleep 1000",
    "setsid sh -c 'echo $$ > b.pid; exec sleep 1000' & wait",
    "trap '' TERM; echo $$ > c.pid; while :; do sleep 0.1; done",
    "(setsid sh -c 'trap \\"\\" TERM; echo $$ > d.pid; while :; do sleep 0.1; done' &) & wait",
    "sleep 0.01; echo $$ > e.pid; sleep 1000 | cat",
]
run_together([script(text, sys.argv[1]) for text in texts])
"""


@pytest.mark.parametrize("how", LEFT)
@pytest.mark.parametrize("then", ["exit 0", "kill -9 $$"])
def test_what_a_command_left_behind_is_gone_when_the_result_is_there(tmp_path, how, then):
    run(script(f"{LEFT[how]} {WAIT} {then}", tmp_path))
    (pid,) = pids_in(tmp_path)
    assert not running(pid)


def test_a_leftover_is_ended_while_another_command_goes_on(tmp_path):
    first = script(f"{LEFT['with its output elsewhere']} {WAIT}", tmp_path)
    is_zombie = "grep -q '^State:.*Z' /proc/$(cat a.pid)/status"  # not reaped by init yet
    gone = f"while kill -0 $(cat a.pid) && ! {is_zombie}; do sleep 0.01; done; echo gone"
    ended = run_together([first, script(f"{WAIT} {gone}", tmp_path, timeout=20)])
    assert ended[1].stdout == b"gone\n"


@pytest.mark.parametrize("how", LEFT)
def test_all_of_the_group_is_ended_when_the_time_is_over(tmp_path, how, clock):
    clock.hold_until(lambda: pids_in(tmp_path))
    ended = run(script(f"{LEFT[how]} {WAIT} sleep 1000", tmp_path, timeout=0.1))
    assert ended.timed_out
    (pid,) = pids_in(tmp_path)
    assert not running(pid)


def kill_itself(victim):
    victim.kill()


def kill_its_group(victim):
    os.killpg(victim.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_itself, kill_its_group])
def test_everything_is_ended_when_we_are_killed(tmp_path, kill):
    command = [sys.executable, "-c", VICTIM, str(tmp_path), *PATHS]
    with subprocess.Popen(command, start_new_session=True) as victim:
        assert until(lambda: len(pids_in(tmp_path)) == 5)
        assert all(map(running, pids_in(tmp_path)))
        kill(victim)
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def test_the_watchdog_keeps_no_pipe_open(tmp_path):
    leaked, other = os.pipe()
    command = [sys.executable, "-c", VICTIM, str(tmp_path), *PATHS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[leaked]) as victim:
        assert until(lambda: len(pids_in(tmp_path)) == 5)
        with open(f"/proc/{victim.pid}/task/{victim.pid}/children") as file:
            children = [Path("/proc", pid) for pid in file.read().split()]
        (watchdog,) = [c for c in children if b"notyet-watchdog" in (c / "cmdline").read_bytes()]
        held = {fd.name: str(fd.readlink()) for fd in (watchdog / "fd").iterdir()}
        victim.kill()
    os.close(leaked)
    os.close(other)
    assert held.pop("0").startswith("pipe:")
    assert held == {"1": os.devnull, "2": os.devnull}
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def test_three_hundred_runs_leave_no_descriptor_and_no_process():
    code = """
import os, sys
sys.path[:0] = sys.argv[1:]
from commands import ENVIRON, program, run_together, script
jobs = [
    script("cat >/dev/null; exit 3", stdin=b"x"),
    script("exit 0", "/"),
    program("no-such-program"),
    program("true", "x" * 3_000_000),
]
before = sorted(os.listdir("/dev/fd"))
for _ in range(300):
    assert [ended.code for ended in run_together(jobs)] == [3, 0, None, None]
assert sorted(os.listdir("/dev/fd")) == before
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("clean")
"""
    ended = run(python(code, *PATHS, timeout=50))
    assert (ended.stdout, ended.stderr) == (b"clean\n", b"")


def test_it_goes_on_without_a_watchdog(monkeypatch):
    monkeypatch.setattr("notyet.run.groups.SH", "/no/such/shell")
    assert run(script("exit 3")).code == 3


def test_no_group_is_forgotten_where_there_is_no_proc(tmp_path, monkeypatch):
    def no_proc(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr("notyet.run.proc.read", no_proc)
    run(script(f"{LEFT['ignoring SIGTERM']} {WAIT}", tmp_path))
    (pid,) = pids_in(tmp_path)
    assert until(lambda: not running(pid))


@pytest.mark.parametrize("wait", ["waitid", "waitpid"])
def test_an_exit_code_that_was_collected_elsewhere_is_a_problem(monkeypatch, wait):
    if wait == "waitpid":
        monkeypatch.delattr(os, "waitid")
    monkeypatch.delattr(os, "pidfd_open")
    launch = process.launch

    def launch_and_take(*args):
        pid = launch(*args)
        os.waitpid(pid, 0)
        return pid

    monkeypatch.setattr(process, "launch", launch_and_take)
    ended = run(script("echo said; exit 3"))
    assert (ended.code, ended.stdout) == (None, b"said\n")
    assert "its exit code was lost" in ended.problem


def test_a_command_that_cannot_be_ended_does_not_hold_us_up(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(started, "_GIVE_UP", 0.1)
    clock.hold_until((tmp_path / "there").exists)
    monkeypatch.setattr(process, "send", lambda target, number: None)  # as if it were root's
    before = time.monotonic()
    ended = run(script("echo $$; touch there; exec sleep 1000", tmp_path, timeout=0.2))
    pid = int(ended.stdout)
    assert ended.timed_out
    assert running(pid)
    assert time.monotonic() - before < 15
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_stopped_or_killed_watchdog_is_no_problem(monkeypatch):
    class Killed(Watchdog):
        def watch(self, groups):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            super().watch(groups)

    monkeypatch.setattr(command, "Watchdog", Killed)
    assert run(script("exit 3")).code == 3


@pytest.mark.parametrize("then", ["exit 0", "kill -9 $$", "sleep 1000"])
def test_a_group_is_signalled_before_its_leader_is_collected(tmp_path, clock, monkeypatch, then):
    told = []
    real = process.send

    def send(target, number):
        # Until it is collected, nobody else can get the number of its leader.
        told.append(os.waitid(os.P_PID, -target, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        real(target, number)

    def reap(pid):
        assert told
        collected.append(pid)
        return groups.reap(pid)

    collected = []
    monkeypatch.setattr(process, "send", send)  # which finds no child if that was collected
    monkeypatch.setattr(command, "reap", reap)
    clock.hold_until(lambda: pids_in(tmp_path))
    run(script(f"{LEFT['in the background']} {WAIT} {then}", tmp_path, timeout=0.5))
    assert collected
