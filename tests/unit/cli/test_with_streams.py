"""Readers of `notyet`'s output that are slow, gone, full, or were never there."""

import os
import shlex
import signal
import subprocess
import threading

import pytest

from commands import running, until
from hook_runs import clean_environ
from notyet.cli import progress as writer
from notyet.cli.progress import Writer
from with_runs import (
    LEARNS,
    agent_pid,
    command_line,
    listed,
    project,
)

WORDS = ", ".join(f'{{ say = "line {n} {"y" * 90}" }}' for n in range(2000))
TALKS = (
    f'[[turn]]\nsteps = [{WORDS}, {{ tool = "bash", run = "echo $$ > agent.pid; sleep 1000" }}]\n'
)
WITH = shlex.join(command_line("with", "scripted:agent.toml", "Go."))


def bash(folder, script):
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_environ(),
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_unread_stderr_delays_nothing(tmp_path, number, code):
    folder = project(tmp_path / "p", TALKS)
    process = subprocess.Popen(
        command_line("with", "scripted:agent.toml", "Go."),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=clean_environ(),
    )
    try:
        agent = agent_pid(folder)
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert until(lambda: not running(agent))
    finally:
        process.kill()
        process.communicate()


def test_lines_that_no_reader_took_are_counted(monkeypatch):
    monkeypatch.setattr(writer, "_MAX_WAITING", 5)
    ours, theirs = os.pipe()
    with open(theirs, "w") as stream, open(ours) as reader:
        slow = Writer(stream)
        slow.write("x" * 200_000)  # more than a pipe takes
        assert until(slow._items.empty)
        for n in range(9):
            slow.write(f"line {n}")
        slow.flush(0.05)  # does not wait for ever
        seen = []
        thread = threading.Thread(target=lambda: seen.extend(reader))
        thread.start()
        slow.flush(20)
        slow.write("the last")
        slow.flush(20)
        stream.close()
        thread.join()
    assert seen[1:] == [
        *(f"line {n}\n" for n in range(5)),
        "  ... 4 lines not shown: the reader was too slow\n",
        "the last\n",
    ]


REDIRECTED = [
    ("2>&-", 0, "Now it is.\n", ""),
    (">&-", 0, "", None),
    ("<&- >&- 2>&-", 0, "", ""),
    (">/dev/full", 1, "", None),
    ("2>/dev/full", 0, "Now it is.\n", ""),
]


@pytest.mark.parametrize("how", REDIRECTED, ids=lambda how: how[0])
def test_closed_and_full_streams_cost_no_more_than_what_goes_there(tmp_path, how):
    redirected, code, out, err = how
    folder = project(tmp_path / "p", LEARNS)
    done = bash(folder, f"({WITH} {redirected}); echo $? > code")
    assert (folder / "code").read_text() == f"{code}\n"
    assert done.stdout == out
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if err is not None:
        assert done.stderr == err
    (task,) = listed(folder)
    assert task["outcome"] == "passed"
    if redirected == ">/dev/full":
        why = "the answer could not be written: No space left on device"
        assert f"notyet with: {why}; read it with: notyet tasks show {task['id']}\n" in done.stderr


@pytest.mark.parametrize("command", [("tasks",), ("tasks", "--json"), ("--help",), ("demo",)])
def test_commands_say_in_a_sentence_that_their_output_is_lost(tmp_path, command):
    line = shlex.join(command_line(*command))
    full = bash(tmp_path, f"{line} >/dev/full; echo $? >&2")
    assert full.stderr == "notyet: the output could not be written: No space left on device\n1\n"
    closed = bash(tmp_path, f"{line} >&-; echo $? >&2")
    assert closed.stderr == "0\n"
