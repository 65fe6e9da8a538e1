"""`notyet check` as a process: on a terminal, in a pipe, and when somebody ends it."""

import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

from commands import pids_in, running, until
from hook_runs import ENTRY, clean_environ, gate, new_project
from with_runs import Terminal, command_line


def start(folder, *argv, environ=None, **streams):
    return subprocess.Popen(
        [sys.executable, "-I", str(ENTRY), "check", *argv],
        cwd=folder,
        env=environ or clean_environ(TERM="xterm"),
        start_new_session=True,
        **streams,
    )


def at_terminal(folder, *argv, **options):
    return Terminal(folder, *command_line("check", *argv), **options)


def waiting_for(path):
    return gate(f'touch asked; while ! [ -e "{path}" ]; do sleep 0.1; done')


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_shows_what_each_gate_does_while_it_is_asked(tmp_path, columns):
    """Its seconds and its last line; the gate of the next stage waits."""
    text = f"""
[gates.quick]
run = "echo 12 passed"
[gates.slow]
run = "echo begun; printf 'half a line'; while ! [ -e {tmp_path}/go ]; do sleep 0.1; done"
[gates.late]
run = "true"
priority = -1
"""
    folder = new_project(tmp_path / "p", text)
    with at_terminal(folder, columns=columns, NO_COLOR="1") as terminal:
        seen = terminal.until(r"half a line")
        assert re.search(
            r"\A  ✓ quick +\d\.\d s  12 passed\n"
            r"  [⠋⠙⠹⠸⠼⠴⠦⠧] slow +\d+\.\d s  half a line\n"
            r"  · late +waiting\n"
            r"  1 of 3 done  ━+─+\Z",
            seen,
        ), seen
        assert max(map(len, seen.splitlines())) < columns
        (tmp_path / "go").touch()
        assert terminal.wait() == 0
        # What was shown is gone, and the results stand in its place.
        assert terminal.screen.startswith("  ✓ quick  ")
        assert "waiting" not in terminal.screen
        assert "done" not in terminal.screen
        assert "passed: the agent may stop" in terminal.screen


def test_no_output_of_a_gate_breaks_the_screen(tmp_path):
    """Neither much of it, nor escapes, half letters and bars that paint over themselves."""
    hostile = r"\033[2J\033[31m\377\033]0;title\007 50%%\r \346\270\254\350\251\246 60%%\r\346\270"
    script = f"yes | head -c 30000000; printf '{hostile}'; "
    script += f"while ! [ -e {tmp_path}/go ]; do sleep 0.1; done"
    folder = new_project(tmp_path / "p", gate(script))
    with at_terminal(folder, NO_COLOR="1") as terminal:
        assert re.fullmatch(r"  \S g +\d+\.\d s  測試 60%", terminal.until("60%"))
        (tmp_path / "go").touch()
        assert terminal.wait() == 0
        assert "60%" not in terminal.screen


@pytest.mark.parametrize(
    ("environ", "is_shown", "has_colours"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, True),
    ],
)
def test_variables_choose_colours_and_a_dumb_terminal_shows_results_alone(
    tmp_path, environ, is_shown, has_colours
):
    folder = new_project(tmp_path / "p", gate("sleep 0.5"))
    with at_terminal(folder, **environ) as terminal:
        assert terminal.wait() == 0
    assert ("\x1b[J" in terminal.seen) is is_shown
    assert ("\x1b[32m" in terminal.seen) is has_colours


def test_a_locale_without_our_signs_gets_others(tmp_path):
    folder = new_project(
        tmp_path / "p", waiting_for(tmp_path / "go") + '\n[gates.quick]\nrun = "true"\n'
    )
    plain = {"PYTHONIOENCODING": "ascii", "NO_COLOR": "1"}
    with at_terminal(folder, **plain) as terminal:
        terminal.until(r"  1 of 2 done  =+-+")
        assert re.search(r"  [-|/\\] g .*\n  \+ quick ", terminal.screen), terminal.screen
        (tmp_path / "go").touch()
        assert terminal.wait() == 0
    assert terminal.seen.isascii()


def test_a_check_that_is_suspended_leaves_the_screen_to_the_shell(tmp_path):
    folder = new_project(tmp_path / "p", waiting_for(tmp_path / "go"))
    line = shlex.join(command_line("check"))
    with Terminal(
        folder, "/bin/bash", "--norc", "--noediting", "-i", columns=200, PS1="$ "
    ) as terminal:
        terminal.press(f"{line}\n".encode())
        terminal.until(r"  \S g +\d")
        terminal.press(b"\x1a")
        assert not re.search(r"  \S g +\d", terminal.until("Stopped"))
        terminal.press(b"fg\n")
        terminal.until(r"Stopped(.*\n)+.*fg\n.*\n  \S g +\d")
        terminal.press(b"\x1a")
        terminal.until(r"(?s)Stopped.*Stopped")
        terminal.press(b"bg\necho its $((6 * 7))\n")
        terminal.until("its 42")
        (tmp_path / "go").touch()
        seen = terminal.until("the agent may stop")
        assert not re.search(r"  \S g +\d+\.\d s.*(?s:.*)  \S g ", seen)
        terminal.press(b"exit\n")
        terminal.wait()


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
    with at_terminal(folder) as terminal:
        terminal.until(r"  \S g  ")
        terminal.press(b"\x03")
        assert terminal.wait() == 130
        assert terminal.screen == "notyet: interrupted"


def test_what_a_gate_leaves_behind_is_swept(tmp_path):
    file = tmp_path / "a.pid"
    left = f"setsid sh -c 'echo $$ > {file}; sleep 60' &"
    wait = f"while ! [ -s {file} ]; do sleep 0.01; done"
    folder = new_project(tmp_path / "p", gate(f"{left} {wait}"))
    started = start(folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    started.communicate(timeout=60)
    assert started.returncode == 0
    assert until(lambda: not any(map(running, pids_in(tmp_path))))
