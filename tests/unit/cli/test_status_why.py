"""`notyet status --why` says what the hook would do: for each cause its own words, and exit 1."""

import io
import json
import os
import sqlite3
from contextlib import closing

import pytest

from conftest import git
from hook_runs import ask, payload, run_hook, stops, trust
from notyet.cli.main import main
from status_world import World

GATES = """\
[gates.lint]
run = "exit 1"
[gates.again]
run = "exit 1"
when = "always"
"""


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    made = World("claude", tmp_path, monkeypatch, capsys)
    (made.project / ".git").rmdir()
    git(made.project, "init", "--quiet")
    (made.project / "notyet.toml").write_text(GATES)
    trust(made.project / "notyet.toml")
    return made


def why(world, sent=None, *argv):
    """Ask about a payload, or about a made-up stop; return the exit code and what is said."""
    if sent is not None:
        text = io.TextIOWrapper(io.BytesIO(json.dumps(sent).encode()))
        world.monkeypatch.setattr("sys.stdin", text)
        argv = ("--as", "claude", "--payload", "-", *argv)
    world._capsys.readouterr()
    code = main(["status", "--why", "--json", *argv])
    return code, json.loads(world._capsys.readouterr().out)["why"]


def cause(found):
    """Return why no gate runs: as the ledger records it, and in words, which each gate has too."""
    code, said = found
    assert code == 1
    assert not any(gate["asked"] for gate in said["gates"])
    assert {gate["because"] for gate in said["gates"]} <= {said["skipped"]}
    return said["cause"], said["skipped"]


def recorded(sent):
    """What the hook itself did with the same payload."""
    ask(sent, "--host", "claude")
    return stops()[-1][1]


def background(project):
    task = {"id": "b", "type": "subagent", "status": "running"}
    return payload("claude", project, background_tasks=[task])


@pytest.mark.rule("B10")
@pytest.mark.parametrize(
    ("sent", "expected", "words"),
    [
        (lambda p: payload("claude", p, session_id=""), "no-session", "has no session_id"),
        (lambda p: payload("claude", p) | {"cwd": None}, "unreadable", "the event has no cwd"),
        (lambda p: payload("claude", p.parent / "gone"), "unreadable", "gone is gone"),
        (background, "background", "other agents of the session are running"),
    ],
    ids=["no session", "no cwd", "no folder", "background"],
)
def test_it_names_the_cause_for_which_the_hook_allows_the_same_stop(world, sent, expected, words):
    sent = sent(world.project)
    said = cause(why(world, sent))
    assert said[0] == expected
    assert words in said[1]
    assert recorded(sent) == expected


def test_the_work_of_a_gate_itself_is_not_gated(world, monkeypatch):
    monkeypatch.setenv("NOTYET_INSIDE", "1")
    said = cause(why(world))
    assert said == ("inside", "NOTYET_INSIDE is set: a gate's own agent is not gated")


def test_without_a_usable_ledger_no_gate_runs(world, monkeypatch, tmp_path):
    (tmp_path / "folder").mkdir()
    monkeypatch.setenv("NOTYET_LEDGER", str(tmp_path / "folder"))
    name, words = cause(why(world))
    assert name == "ledger"
    assert "it is a directory" in words


@pytest.mark.rule("B14")
def test_an_agent_that_hands_back_in_its_transcript_is_said_to(world, tmp_path):
    ask(payload("claude", world.project), "--host", "claude")
    said = {"type": "text", "text": "BLOCKED: which port?"}
    line = {"type": "assistant", "message": {"role": "assistant", "content": [said]}}
    (tmp_path / "t.jsonl").write_text(json.dumps(line) + "\n")
    sent = payload("claude", world.project, stop_hook_active=True)
    sent |= {"transcript_path": str(tmp_path / "t.jsonl"), "last_assistant_message": None}
    code, found = why(world, sent)
    assert code == 1
    assert {gate["because"] for gate in found["gates"]} == {
        "the agent hands back (it says BLOCKED:)"
    }


def spoiled():
    ledger = os.path.join(os.environ["XDG_STATE_HOME"], "notyet", "ledger.db")
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with open(ledger, "r+b") as file:
        file.write(b"nothing of a database" * 10)
    return ledger


def test_a_look_at_a_damaged_ledger_says_so_and_leaves_it_to_the_next_stop(world):
    run_hook(payload("claude", world.project), "--host", "claude")
    ledger = spoiled()
    before = sorted(os.listdir(os.path.dirname(ledger)))
    code, said = world.shown()
    assert code == 0  # the next stop is gated
    assert said.startswith("YES  ")
    assert "[ledger-unusable]" in said
    assert "cannot be read: it is damaged" in said
    assert why(world)[0] == 0
    assert main(["completion", "--values", "stops"]) == 0
    assert sorted(os.listdir(os.path.dirname(ledger))) == before
    told = ask(payload("claude", world.project, stop_hook_active=True), "--host", "claude")
    assert "was corrupt; it was moved to" in told.stderr


# What a person reads

STAGED = """\
[limits]
max_blocks = 4
[gates.lint]
run = "test -e ready"
[gates.review]
run = "true"
for = ["cod*"]
"""


@pytest.fixture
def staged(world):
    (world.project / "notyet.toml").write_text(STAGED)
    trust(world.project / "notyet.toml")
    return world


def shown(world, *argv):
    world._capsys.readouterr()
    code = main(["status", "--why", *argv])
    said = world._capsys.readouterr().out
    assert "\x1b" not in said
    return code, [" ".join(line.split()) for line in said.splitlines()]


def test_a_gate_runs_again_on_other_files(staged):
    (staged.project / "ready").touch()
    ask(payload("claude", staged.project), "--host", "claude")
    (staged.project / "new").touch()
    line = "lint runs notyet.toml:3 it is for the main agent; it passed on other files"
    assert line in shown(staged)[1]


def test_a_gate_runs_again_with_other_programs(staged, monkeypatch):
    (staged.project / "ready").touch()
    ask(payload("claude", staged.project), "--host", "claude")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    because = "it passed with another PATH or the like"
    assert f"lint runs notyet.toml:3 it is for the main agent; {because}" in shown(staged)[1]


def test_a_gate_is_skipped_where_no_file_changed_since_the_agent_began(world):
    start = {"hook_event_name": "SessionStart", "source": "startup"}
    ask(payload("claude", world.project) | start, "--host", "claude")
    lint = why(world, payload("claude", world.project))[1]["gates"][0]
    assert (lint["asked"], lint["spared"]["cause"]) == (False, "unchanged")


def test_a_workspace_is_not_connected_to(staged):
    text = 'workspace = "ssh://nowhere.invalid/srv"\n[gates]\nlint = "true"\n'
    (staged.project / "notyet.toml").write_text(text)
    trust(staged.project / "notyet.toml")
    code, lines = shown(staged)
    assert code == 0
    assert "on another machine, which was not connected to" in " ".join(lines)
    assert "no pass of it is remembered" in " ".join(shown(staged, "--workspace", "local")[1])


def test_notes_say_what_else_counts(staged):
    (staged.project / "notyet.toml").write_text("[gates]\n")
    _, lines = shown(staged)
    assert any(line.startswith("note: ") and "changed since" in line for line in lines)
