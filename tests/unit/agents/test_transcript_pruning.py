"""Transcripts go with the last task that names them, and nothing else goes with them."""

import os
import sqlite3
import time
from contextlib import closing

import pytest

from notyet import Ledger
from notyet.agents import open_session
from notyet.ledger.prune import sessions_folder
from notyet.light import dumps

DAY = 86_400.0
INSERT = (
    "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id, created_at,"
    " ended_at) VALUES (?, '', '{}', 1, 'r', 1, ?, 's', ?, ?)"
)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.prune(older_than=0)
    return ledger


def enter(ledger, name, ref, days=9.0):
    """Enter a task that ended so many days ago."""
    at = time.time() - days * DAY
    text = ref if isinstance(ref, str) else dumps(ref)
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute(INSERT, (name, text, at, at))


def scripted(tmp_path, **settings):
    (tmp_path / "a.toml").write_text('[[turn]]\nsay = "Done."\n')
    return open_session("scripted", cwd=str(tmp_path), args=("a.toml",), **settings)


@pytest.mark.rule("L5")
def test_the_transcripts_of_forgotten_tasks_are_removed(ledger, tmp_path, run, fake_program):
    sessions = [
        scripted(tmp_path),
        open_session("claude", cwd=str(tmp_path), program=fake_program),
        scripted(tmp_path),
    ]
    for number, session in enumerate(sessions):
        run(session.send("x", "k"))
        enter(ledger, f"t{number}", session.ref(), days=9.0 if number < 2 else 1.0)
    assert ledger.prune(older_than=7 * DAY) == 2
    left = [os.path.exists(session.transcript()) for session in sessions]
    assert left == [False, False, True]


def test_a_transcript_stays_while_another_task_names_it(ledger, tmp_path, run):
    session = scripted(tmp_path)
    run(session.send("x", "k"))
    enter(ledger, "old", session.ref())
    enter(ledger, "new", session.ref() | {"more": 1}, days=1.0)
    assert ledger.prune(older_than=7 * DAY) == 1
    assert os.path.exists(session.transcript())
    assert ledger.prune(older_than=DAY / 2) == 1
    assert not os.path.exists(session.transcript())


def test_only_files_in_our_own_folder_are_removed(ledger, tmp_path, run):
    session = scripted(tmp_path, folder=str(tmp_path / "mine"))
    run(session.send("x", "k"))
    place = sessions_folder(os.environ)
    os.makedirs(os.path.join(place, "deeper"))
    others = [
        session.transcript(),
        str(tmp_path / "a.toml"),
        str(tmp_path / "precious.jsonl"),
        os.path.join(place, "deeper", "x.jsonl"),
        os.path.join(place, "notes.txt"),
    ]
    odd = [f"{place}/../../../precious.jsonl", f"{place}/deeper/../../x.jsonl", place, "", "\0", 5]
    odd += [f"{place}/a\0.jsonl", "x.jsonl", f"{place}/none.jsonl"]
    for path in others[2:]:
        with open(path, "w") as file:
            file.write("x")
    for number, path in enumerate([*others, *odd]):
        enter(ledger, f"t{number}", {"transcript": path})
    for number, ref in enumerate(["", "[]", "{", "null"]):
        enter(ledger, f"u{number}", ref)
    assert ledger.prune(older_than=DAY) == len(others) + len(odd) + 4
    assert [path for path in others if not os.path.exists(path)] == []


def test_without_a_home_tasks_are_forgotten_all_the_same(ledger, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "")
    (tmp_path / "x.jsonl").write_text("x")
    enter(ledger, "t", {"transcript": str(tmp_path / "x.jsonl")})
    assert ledger.prune(older_than=DAY) == 1
    assert (tmp_path / "x.jsonl").exists()
