"""`notyet check` as a process: on a terminal, in a pipe, and when somebody ends it."""

import os
import pty
import re
import signal
import subprocess
import sys
import time

import pytest

from commands import pids_in, running, until
from hook_runs import ENTRY, clean_environ, gate, new_project


def start(folder, *argv, environ=None, **streams):
    return subprocess.Popen(
        [sys.executable, "-I", str(ENTRY), "check", *argv],
        cwd=folder,
        env=environ or clean_environ(TERM="xterm"),
        start_new_session=True,
        **streams,
    )


class Terminal:
    """A terminal on which somebody looks at a check."""

    def __init__(self, folder, *argv, **environ):
        ours, theirs = pty.openpty()
        self.fd = ours
        self.seen = b""
        self.process = start(
            folder,
            *argv,
            environ=clean_environ(**({"TERM": "xterm"} | environ)),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def read(self):
        try:
            block = os.read(self.fd, 65536)
        except OSError:  # as Linux says that the other end is closed
            block = b""
        self.seen += block
        return block

    def until(self, pattern):
        while not re.search(pattern, self.seen):
            assert self.read(), self.seen

    def end(self):
        while self.read():
            pass
        os.close(self.fd)
        return self.process.wait(60)


def waiting_for(path):
    return gate(f'touch asked; while ! [ -e "{path}" ]; do sleep 0.1; done')


def test_a_terminal_shows_a_line_per_gate_while_it_is_asked(tmp_path):
    text = waiting_for(tmp_path / "go") + '\n[gates.quick]\nrun = "true"\n'
    terminal = Terminal(new_project(tmp_path / "p", text))
    terminal.until(rb"  quick +\S+ s\S* +\x1b\[32mpassed")
    terminal.until(rb"  g +\x1b\[2m[1-9]\d* s")  # its seconds go on
    assert b"may stop" not in terminal.seen
    (tmp_path / "go").touch()
    assert terminal.end() == 0
    # What was shown is gone, and the results stand in its place.
    assert terminal.seen.rpartition(b"\x1b[2K")[2].startswith("  \x1b[32m✓ g\x1b[0m".encode())
    assert b"passed: the agent may stop" in terminal.seen


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_ending_a_check_ends_its_gates(tmp_path, number, code):
    script = f"echo $$ > {tmp_path}/a.pid; sleep 60 & echo $! > {tmp_path}/b.pid; wait"
    folder = new_project(tmp_path / "p", gate(script))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert until(lambda: len(pids_in(tmp_path)) == 2)
    started.send_signal(number)
    out, err = started.communicate(timeout=60)
    assert started.returncode == code
    assert out == b""
    assert b"Traceback" not in err
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


# What ends only when it is killed, in a session of its own, so that nobody but the sweep finds it.
STUBBORN = """trap '' TERM INT HUP
setsid sh -c 'trap "" TERM INT HUP; echo $$ > {0}/a.pid; while :; do sleep 0.1; done' &
echo $$ > {0}/b.pid; while :; do sleep 0.1; done"""


@pytest.mark.rule("E2")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_repeated_signals_leave_nothing_behind_either(tmp_path, number, code):
    folder = new_project(tmp_path / "p", gate(STUBBORN.format(tmp_path)))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert until(lambda: len(pids_in(tmp_path)) == 2)
    while started.poll() is None:
        started.send_signal(number)
        time.sleep(0.01)
    _, err = started.communicate(timeout=60)
    assert started.returncode == code
    assert b"Traceback" not in err
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def test_ctrl_c_on_a_terminal_wipes_what_was_shown(tmp_path):
    folder = new_project(tmp_path / "p", waiting_for(tmp_path / "never"))
    terminal = Terminal(folder)
    terminal.until(rb"  g  ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert terminal.seen.rpartition(b"\x1b[2K")[2].endswith(b"notyet: interrupted\r\n")


def test_what_a_gate_leaves_behind_is_swept(tmp_path):
    file = tmp_path / "a.pid"
    left = f"setsid sh -c 'echo $$ > {file}; sleep 60' &"
    wait = f"while ! [ -s {file} ]; do sleep 0.01; done"
    folder = new_project(tmp_path / "p", gate(f"{left} {wait}"))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.communicate(timeout=60)
    assert started.returncode == 0
    assert until(lambda: not any(map(running, pids_in(tmp_path))))
