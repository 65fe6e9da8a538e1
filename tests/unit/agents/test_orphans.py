"""Ending the processes that a dead process of ours left behind, and nobody else."""

import os
import signal

import pytest

from commands import running, until
from notyet.agents import reopen
from notyet.run.agent_program import end_orphan
from notyet.run.proc import start_time
from notyet.run.spawn import MARK

pytestmark = pytest.mark.rule("K7", "E2")

DEAF = "trap '' INT TERM; echo $$ > child.part; mv child.part child; while :; do sleep 0.1; done"


@pytest.fixture
def left(tmp_path, impatient):
    """Starts a program as an agent is started; ends what the test left of it."""
    groups = []

    def start(script, mark="", folder="."):
        path = tmp_path / folder
        path.mkdir(exist_ok=True)
        argv = ["sh", "-c", f'cd "$0"; {script}', str(path)]
        environ = {"PATH": os.environ["PATH"], MARK: mark}
        pid = os.posix_spawn("/bin/sh", argv, environ, setsid=True)
        groups.append(pid)
        started = start_time(pid)
        assert until((path / "child").exists)
        return pid, started, int((path / "child").read_text())

    yield start
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
            os.waitpid(group, 0)
        except (ProcessLookupError, ChildProcessError):
            continue


def collect(pid):
    os.waitpid(pid, 0)


def test_it_is_over_when_the_whole_group_is_gone_and_not_only_its_leader(left, run):
    pid, started, child = left(f"sh -c '{quoted(DEAF)}' & wait")
    assert child != pid
    assert run(end_orphan(pid, started)) is True
    assert not running(child)
    assert not running(pid)


@pytest.mark.parametrize("mark", ["mine", "outer mine"])
def test_what_a_leader_that_is_gone_left_in_its_group_is_ended(mark, left, run):
    pid, started, child = left(f"sh -c '{quoted(DEAF)}' & while ! [ -e child ]; do :; done", mark)
    collect(pid)
    assert running(child)
    assert run(end_orphan(pid, started, "mine")) is True
    assert not running(child)


def test_a_leader_that_waits_to_be_collected_still_tells_whose_group_it_is(left, run):
    pid, started, child = left(f"sh -c '{quoted(DEAF)}' & while ! [ -e child ]; do :; done")
    assert until(lambda: not running(pid))
    assert run(end_orphan(pid, started)) is True
    assert not running(child)
    collect(pid)


@pytest.mark.parametrize("mark", ["", "other", "min", "mine"])
def test_a_group_that_only_has_the_same_number_is_left_alone(mark, left, run):
    theirs = "" if mark == "mine" else "mine"
    pid, _, child = left(f"sh -c '{quoted(DEAF)}' & while ! [ -e child ]; do :; done", theirs)
    collect(pid)
    assert run(end_orphan(pid, "1", mark)) is False
    assert running(child)


def test_another_process_with_its_number_is_left_alone(left, run):
    pid, started, _ = left(DEAF, "mine")
    assert run(end_orphan(pid, f"{started}0", "other")) is False
    assert run(end_orphan(pid, "", "mine")) is False
    assert running(pid)


@pytest.mark.parametrize("pid", [0, 1, -5, 2**40])
def test_a_pid_without_a_process_ends_nothing(pid, run):
    assert run(end_orphan(pid, "1", "mine")) is False


def test_a_reopened_session_ends_what_its_dead_agent_left(left, run, fake_claude):
    script = f"sh -c '{quoted(DEAF)}' & while ! [ -e child ]; do :; done"
    pid, started, child = left(script, "mine")
    collect(pid)
    ref = fake_claude().ref() | {"pid": pid, "started": started, "mark": "mine"}
    session = reopen(ref)
    assert session.ref() == ref
    run(session.abort())
    assert not running(child)
    assert session.ref()["pid"] == 0


def quoted(script):
    return script.replace("'", "'\\''")
