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

GREEN = b"\x1b[32m"


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
    assert b"where" not in terminal.seen
    (tmp_path / "go").touch()
    assert terminal.end() == 0
    # What was shown is gone, and the table stands in its place.
    assert terminal.seen.rpartition(b"\x1b[2K")[2].startswith(b"\x1b[1mgate\x1b[0m")
    assert b"passed: the agent may stop" in terminal.seen


def test_a_terminal_shows_colours(tmp_path):
    terminal = Terminal(new_project(tmp_path / "p", gate("true")))
    assert terminal.end() == 0
    assert GREEN + b"passed\x1b[0m" in terminal.seen


def test_somebody_who_minds_colours_sees_none(tmp_path):
    terminal = Terminal(new_project(tmp_path / "p", waiting_for(tmp_path / "go")), NO_COLOR="1")
    terminal.until(rb"  g +\d+ s")
    (tmp_path / "go").touch()
    assert terminal.end() == 0
    assert re.search(rb"\x1b\[[0-9;]*m", terminal.seen) is None


def test_a_terminal_that_cannot_move_shows_the_table_alone(tmp_path):
    terminal = Terminal(new_project(tmp_path / "p", gate("sleep 0.5")), TERM="dumb")
    assert terminal.end() == 0
    assert b"\x1b" not in terminal.seen
    assert terminal.seen.startswith(b"gate ")


def test_more_gates_than_lines_are_counted(tmp_path):
    names = [f"g{number}" for number in range(30)]
    text = "\n".join(
        waiting_for(tmp_path / "go").replace("[gates.g]", f"[gates.{name}]") for name in names
    )
    terminal = Terminal(new_project(tmp_path / "p", text))
    terminal.until(rb"\d+ of 30 done, \d+ more running")
    (tmp_path / "go").touch()
    assert terminal.end() == 0


def test_in_a_pipe_nothing_is_said_meanwhile_and_nothing_is_painted(tmp_path):
    folder = new_project(tmp_path / "p", gate("sleep 0.5"))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (0, b"")
    assert b"\x1b" not in out


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_whoever_ends_a_check_ends_its_gates(tmp_path, number, code):
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
def test_whoever_is_in_a_hurry_leaves_nothing_behind_either(tmp_path, number, code):
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


def test_a_signal_while_the_rest_is_swept_waits_until_that_is_done(tmp_path):
    script = f"""trap '' TERM; setsid sh -c 'trap "" TERM; echo $$ > {tmp_path}/a.pid
while :; do sleep 0.1; done' & while ! [ -s {tmp_path}/a.pid ]; do sleep 0.01; done"""
    folder = new_project(tmp_path / "p", gate(script))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert until(lambda: pids_in(tmp_path))
    while started.poll() is None and not parent_is(started.pid, pids_in(tmp_path)[0]):
        time.sleep(0.002)  # until the gate is over, and what it left is ours
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=60)
    assert started.returncode == 143
    assert until(lambda: not any(map(running, pids_in(tmp_path))))


def parent_is(pid, child):
    try:
        with open(f"/proc/{child}/stat") as file:
            return file.read().rpartition(")")[2].split()[1] == str(pid)
    except OSError:
        return False


def test_what_whoever_started_it_ignores_does_not_end_a_check(tmp_path):
    folder = new_project(tmp_path / "p", waiting_for(tmp_path / "go"))
    argv = ["/bin/sh", "-c", 'trap "" HUP; echo ready >&2; exec "$@"', "sh"]
    argv += [sys.executable, "-I", str(ENTRY), "check", "--json"]
    started = subprocess.Popen(
        argv,
        cwd=folder,
        env=clean_environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stderr.readline() == b"ready\n"
    assert until((tmp_path / "p" / "asked").exists)
    started.send_signal(signal.SIGHUP)
    (tmp_path / "go").touch()
    out, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (0, b"")
    assert b'"outcome": "passed"' in out


def test_a_terminal_that_is_closed_ends_it_with_the_code_of_that(tmp_path):
    terminal = Terminal(new_project(tmp_path / "p", waiting_for(tmp_path / "never")))
    terminal.until(rb"  g  ")
    os.close(terminal.fd)
    terminal.process.send_signal(signal.SIGHUP)  # as its kernel does for a session of its own
    assert terminal.process.wait(60) == 129


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


def test_a_reader_that_has_seen_enough_is_no_error(tmp_path):
    folder = new_project(tmp_path / "p", gate("true"))
    ours, theirs = os.pipe()
    os.close(ours)
    started = start(folder, stdout=theirs, stderr=subprocess.PIPE)
    os.close(theirs)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (141, b"")


def test_a_payload_comes_through_a_pipe(tmp_path):
    folder = new_project(tmp_path / "p", gate("exit 1"))
    started = start(
        folder,
        "--payload",
        "-",
        "--as",
        "claude",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = started.communicate(b"{", timeout=60)
    assert (started.returncode, out) == (2, b"")
    assert err.startswith(b"notyet check: <stdin>:1:2: invalid JSON: ")
