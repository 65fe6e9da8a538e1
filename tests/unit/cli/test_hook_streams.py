"""The streams and signals of a hook, seen from inside one process."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from commands import pids_in, running
from hook_runs import gate, in_bytes, new_project, payload, run_changed_hook, stops
from notyet import light
from notyet.hook import main as hook
from notyet.hook import process as hook_process
from notyet.hosts.host import Reply


class Streams:
    """Stands in for a host: its payload in a file, our answers in two others."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.saved = [os.dup(number) for number in range(3)]
        numbers = (*hook_process._ENDING, signal.SIGALRM)
        self.handlers = {number: signal.getsignal(number) for number in numbers}
        self.unraisablehook = sys.unraisablehook
        for number in (1, 2):
            descriptor = os.open(self.folder / str(number), os.O_WRONLY | os.O_CREAT)
            os.dup2(descriptor, number)
            os.close(descriptor)
        return self

    def __exit__(self, *_):
        for number, descriptor in enumerate(self.saved):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = self.unraisablehook

    def give(self, descriptor):
        os.dup2(descriptor, 0)
        os.close(descriptor)

    def say(self, content):
        (self.folder / "in").write_bytes(in_bytes(content))
        self.give(os.open(self.folder / "in", os.O_RDONLY))

    def heard(self):
        return (self.folder / "1").read_bytes(), (self.folder / "2").read_bytes()


@pytest.fixture
def streams(tmp_path):
    return Streams(tmp_path)


@pytest.mark.parametrize("number", hook_process._ENDING)
def test_a_second_signal_is_ignored_while_the_first_ends_the_process(streams, monkeypatch, number):
    ended = []
    monkeypatch.setattr(light, "kill", lambda _pid, number: ended.append(number))
    with streams:

        def answer():
            try:
                signal.raise_signal(number)
            finally:
                signal.raise_signal(number)

        assert hook_process.serve_host(answer, bool, ended.append) == 1
        assert ended == [number, number]  # recorded, and sent
        assert streams.heard() == (b"", b"notyet: ended by signal %d; NOT CHECKED\n" % number)


def test_a_signal_after_the_answer_does_not_cost_it(streams, monkeypatch):
    with streams:
        monkeypatch.setattr(hook_process, "_sweep", lambda: signal.raise_signal(signal.SIGTERM))
        assert hook_process.serve_host(lambda: Reply(stdout="said"), bool) == 0
        assert streams.heard()[0] == b"said\n"


def test_a_host_that_says_no_more_and_does_not_close_has_said_all(streams, monkeypatch):
    with streams:
        monkeypatch.setattr(hook_process, "_SILENCE", 0.2)
        reads, writes = os.pipe()
        streams.give(reads)
        os.write(writes, b"all of it")
        assert hook_process.read_stdin() == b"all of it"
        assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
        os.close(writes)


def test_pipes_that_do_not_wait_are_waited_for(streams):
    with streams:
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        streams.give(reads)
        threading.Timer(0.1, lambda: (os.write(writes, b"late"), os.close(writes))).start()
        assert hook_process.read_stdin() == b"late"
        reads, writes = os.pipe()
        os.set_blocking(writes, False)
        taken = []
        reader = threading.Timer(0.1, lambda: taken.append(_all_of(reads)))
        reader.start()
        hook_process._write(writes, "x" * 200_000)
        os.close(writes)
        reader.join(30)
        assert taken == [b"x" * 200_000 + b"\n"]


def _all_of(descriptor):
    with open(descriptor, "rb") as file:
        return file.read()


def test_the_module_is_run_as_a_program(tmp_path):
    home = os.path.dirname(os.path.dirname(os.path.dirname(hook.__file__)))
    done = subprocess.run(
        [sys.executable, "-m", "notyet", "hook"],
        input=b"",
        capture_output=True,
        env=os.environ | {"PYTHONPATH": home},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"notyet: no event on stdin\n"


# A signal comes while Python is in a callback, out of which nothing can be raised.
LOSES = """
import os, sys, signal
from notyet.engine import stop as deadline # among what is loaded anyway
class Lock:
    def __del__(self):
        signal.raise_signal(signal.{number})
        len("so that the handler is called in here")
from notyet.run import command_runner as command
ask = command.run_processes
def asking(*given, **named):
    Lock()
    return ask(*given, **named)
command.run_processes = asking
from notyet.run import gate_command as question
question.run_processes = asking
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_that_comes_where_nothing_can_be_raised_ends_the_hook_all_the_same(
    tmp_path, number
):
    project = new_project(tmp_path / "p", gate("echo $$ > a.pid; sleep 50"))
    done = run_changed_hook(payload("claude", project), LOSES.format(number=number))
    number = signal.Signals[number]
    said = b"notyet: ended by signal %d; NOT CHECKED\n" % number
    assert (done.returncode, done.stdout, done.stderr) == (-number, b"", said)
    assert stops() == [("skipped", "cancelled")]
    assert not any(map(running, pids_in(project)))
