"""Commands over a connection that is there: refused, not answered, or too many for us."""

import os
import resource
import signal
import socket
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from commands import run, run_together, script
from notyet.core.record import replace
from notyet.run import linked_stage, ssh
from notyet.run.ssh import first, message, numbers
from remote_runs import nothing_is_left, there

pytestmark = pytest.mark.rule("M1", "M2")

SAID = {
    "nothing": b"",
    "a message that never ends": b"\xff\xff\xff\xff" + b"x" * 1000,
    "empty messages": bytes(16),
    "no": message(numbers(0x80000003, 0)),
    "good-bye": None,
}


@contextmanager
def holder(box, said):
    """Be somebody who listens where the holder of a connection does, and is none."""
    job = there(box, "true")
    folder = ssh.control_folder(os.environ)
    name = os.path.join(folder, ssh.socket_name(job.remote, 0, os.environ))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(name)
        server.listen(50)
        callers = []

        def answer():
            while True:
                try:
                    caller = server.accept()[0]
                except OSError:
                    return
                if said is None:
                    caller.close()
                    continue
                callers.append(caller)
                with suppress(OSError):  # one that only looks is gone
                    caller.sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        yield callers
        server.shutdown(socket.SHUT_RDWR)
        for caller in callers:
            caller.close()


@pytest.mark.parametrize("said", SAID)
def test_a_holder_that_is_none_is_gone_around(box, monkeypatch, said):
    monkeypatch.setattr(linked_stage, "_ANSWER", 0.3)
    with holder(box, SAID[said]):
        here, *others = run_together([script("exit 4"), *[there(box, "exit 3") for _ in range(3)]])
    assert here.code == 4
    assert [(one.code, one.problem) for one in others] == [(3, "")] * 3
    assert len(box.masters()) == 1  # one for all of them


@pytest.mark.rule("M3")
def test_a_connection_that_is_stuck_is_replaced_and_nothing_runs_twice(box, monkeypatch, tmp_path):
    monkeypatch.setattr(linked_stage, "_ANSWER", 0.3)
    assert run(there(box, "exit 3")).code == 3
    (pid,) = box.masters()
    os.kill(pid, signal.SIGSTOP)
    job = there(box, f"echo ran >> {tmp_path}/runs; exit 3", stdin=bytes(100_000))
    try:
        assert run(job).code == 3
    finally:
        os.kill(pid, signal.SIGCONT)
    assert len(box.masters()) == 2
    assert run(there(box, "exit 4")).code == 4  # the new one is found
    time.sleep(0.5)  # what the old one was asked for may reach it now
    assert nothing_is_left(box)
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_who_is_out_of_time_does_not_connect_anew(box, monkeypatch):
    monkeypatch.setattr(linked_stage, "_ANSWER", 50.0)
    with holder(box, b""):
        ended = run(there(box, "exit 3", timeout=0.3))
    assert (ended.timed_out, ended.code) == (True, None)
    assert not box.masters()


def test_with_few_descriptors_fewer_run_at_a_time(warm_box):
    def jobs():
        return [there(warm_box, "sleep 0.1; exit 3") for _ in range(20)]

    assert [one.code for one in run_together(jobs())] == [3] * 20  # all connections are there
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(map(int, os.listdir("/dev/fd"))) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        ended = run_together(jobs())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [(one.code, one.problem) for one in ended] == [(3, "")] * 20, ended


def test_one_that_cannot_be_understood_is_no_problem_of_the_others(warm_box, monkeypatch):
    def fail(*_):
        raise ValueError("too many digits")

    lost = replace(there(warm_box, "exit 0"), told=fail)
    ended = run_together([script("exit 1"), lost, there(warm_box, "exit 2")])
    assert [one.code for one in ended] == [1, None, 2]
    assert "too many digits" in ended[1].problem
    monkeypatch.setattr("notyet.run.output.Framed.add", fail)
    ended = run_together([script("exit 1"), there(warm_box, "exit 0", timeout=1.0)])
    assert ended[0].code == 1
    assert "too many digits" in ended[1].problem


def test_a_message_is_read_when_all_of_it_has_come():
    sent = message(numbers(1, 2)) + message() + message(numbers(3))
    assert first(sent[:3]) == (None, sent[:3])
    assert first(sent[:11]) == (None, sent[:11])
    values, rest = first(sent)
    assert (values, first(rest)[0]) == ([1, 2], [])
    assert first(first(rest)[1]) == ([3], b"")
