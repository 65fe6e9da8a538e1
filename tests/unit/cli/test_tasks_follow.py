"""`notyet tasks -f`: tasks appear and change by themselves, as a table or line by line."""

import json
import re
import signal

import pytest

from commands import until
from notyet import Ledger
from notyet.cli.tasks import Follow
from support import decide, stop
from with_runs import Started, Terminal, command_line, project, run, run_with, start_with, tasks

GATES = '[gates]\ntests = "while ! [ -e gated ]; do sleep 0.1; done; test -e ready"\n'
SLOW = """
[[turn]]
steps = [{ run = "while ! [ -e made ]; do sleep 0.1; done", tool = "bash" }, { say = "Done!" }]

[[turn]]
steps = [{ tool = "bash", run = "touch ready" }, { say = "Now it is." }]
"""


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_shows_a_table_that_changes_by_itself(tmp_path, columns):
    folder = project(tmp_path / "p", SLOW, GATES)
    with Terminal(folder, *command_line("tasks", "-f"), columns=columns, NO_COLOR="1") as terminal:
        terminal.until(r"\Ano supervised agent is at work; waiting for one \.\.\.\Z")
        with start_with(folder, "--label", "refunds") as agent:
            terminal.until(r"\AID +NOW +SENT BACK +AGENT .*\nt\w{10}  working .*  refunds\Z")
            (folder / "made").touch()
            terminal.until(r"\n\w+  gates run \d+ s  .*  refunds\Z")
            (folder / "gated").touch()
            assert agent.wait() == 0
        # It has ended, and is kept, as is the table when you leave.
        last = terminal.until(r"\n\w+  passed +●  +scripted .*  refunds\Z")
        terminal.press(b"\x03")
        assert terminal.wait() == 130
        assert terminal.screen.replace("^C", "") == last


def test_a_narrow_terminal_shows_the_most_important_cells(tmp_path):
    folder = project(tmp_path / "p", SLOW, GATES)
    (folder / "gated").touch()
    (folder / "made").touch()
    with Terminal(folder, *command_line("tasks", "-f"), columns=40, NO_COLOR="1") as terminal:
        terminal.until("waiting|wai")
        run_with(folder, "--label", "refunds of last week and of the week before")
        seen = terminal.until(r"\AID +NOW +TASK\nt\w{5}  passed ●  refunds of last .* \.\.\.\Z")
        assert max(map(len, seen.splitlines())) < 40


def test_a_pipe_gets_a_line_for_each_change(tmp_path):
    folder = project(tmp_path / "p", SLOW, GATES)
    run_with(folder, "--label", "old", "--max-blocks", "0", "--timeout", "1s")
    with Started(folder, "tasks", "-f") as following:
        with start_with(folder, "--label", "refunds") as agent:
            assert until(lambda: "working" in following.out)
            (folder / "made").touch()
            assert until(lambda: "gates run" in following.out)
            (folder / "gated").touch()
            agent.wait()
        assert until(lambda: "passed" in following.out)
        following.send(signal.SIGINT)
        assert following.wait() == 130
    lines = following.out.splitlines()
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d  t\w{10}  .*  refunds", line) for line in lines)
    assert "sent back 1" in lines[-1]
    assert "\x1b" not in following.out
    assert following.err == ""


def test_programs_get_one_object_per_line_and_one_task_until_it_ends(tmp_path):
    folder = project(tmp_path / "p", SLOW, GATES)
    with start_with(folder) as agent:
        (number,) = (view["id"] for view in found(folder))
        with Started(folder, "tasks", "show", number[:5], "-f", "--json") as following:
            assert until(lambda: "running" in following.out)
            for name in ("made", "gated"):
                (folder / name).touch()
            assert following.wait() == 0
        agent.wait()
    states = [json.loads(line) for line in following.out.splitlines()]
    assert {state["id"] for state in states} == {number}
    assert (states[0]["state"], states[-1]["outcome"]) == ("running", "passed")


def found(folder):
    known = []

    def is_there():
        known[:] = json.loads(tasks(folder, "--json").stdout)
        return known

    assert until(is_there)
    return known


def test_an_idle_ledger_is_read_once(tmp_path, monkeypatch):
    folder = project(tmp_path / "p")
    run_with(folder, "--max-blocks", "0")
    ledger = Ledger(repair=False)
    following = Follow(ledger)
    following.look()
    read = []
    monkeypatch.setattr(Follow, "_read", lambda _self: read.append(1) or {})
    for _ in range(5):
        assert following.look() == []
    assert read == []
    decide(Ledger(), stop(), "passed")
    following.look()
    assert read == [1]
    ledger.close()


@pytest.mark.parametrize(("argv", "other"), [(["--all"], "--all"), (["kill", "tk3"], "kill")])
def test_what_does_not_follow_is_refused(tmp_path, argv, other):
    done = run("tasks", *argv, "-f", cwd=tmp_path)
    assert done.returncode == 2
    assert f"--follow shows tasks at work; it does not go together with {other}" in done.stderr
