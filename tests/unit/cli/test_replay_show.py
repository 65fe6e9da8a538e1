"""How `notyet replay` tells what it found."""

import os
import sqlite3
from contextlib import closing

import pytest

from hook_runs import ask, ledger_path, payload, trust
from notyet.cli.main import main
from notyet.core.event import StopEvent
from notyet.core.gate import Command, Gate
from notyet.engine.engine import Engine
from notyet.ledger.ledger import Ledger
from notyet.replay import past as replay_places
from replays import EVIL, GATES, capped, changed, replayable, replayed, results, stop


@pytest.fixture
def project(git_project, monkeypatch):
    return replayable(git_project, monkeypatch)


def test_text_of_others_cannot_reach_the_terminal(project, capsys):
    evil = Gate(name=EVIL, check=Command(script=f"echo '{EVIL}'; exit 1"))
    ledger = Ledger()
    for host in ("claude", EVIL):
        event = StopEvent(host=host, session_id=EVIL, cwd=str(project), last_message=EVIL)
        Engine([evil], ledger=ledger).check_sync(event)
    gone = StopEvent(host="claude", session_id="s2", cwd=f"{project}/{EVIL}")
    Engine([evil], ledger=ledger).check_sync(gone)
    ledger.close()

    main(["replay"])
    shown = capsys.readouterr()

    assert "is gone" in shown.out
    assert "its folder is gone" in shown.out
    assert "\x1b" not in shown.out + shown.err
    assert "\u202e" not in shown.out + shown.err
    lines, summary = replayed(capsys)
    assert summary["gates"][0]["gate"] == EVIL
    assert lines[1]["host"] == EVIL


def test_the_table_names_what_differs_and_what_nobody_knows(project, capsys):
    capped(project)
    stop(project, "s2")
    docs = '[gates.docs]\nrun = "true"\n[gates.tests]'
    new = changed(project, ("max_blocks = 2", "max_blocks = 3"), ("[gates.tests]", docs))
    capsys.readouterr()

    assert main(["replay", "--config", os.path.relpath(new)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "4 recorded stops against new.toml",
        "     2  same",
        "     1  differ",
        "     1  cannot be known",
    ]
    assert lines[5].split() == ["STOP", "WHEN", "HOST", "WAS", "WOULD", "BE", "BECAUSE"]
    assert lines[6].endswith("capped  blocked   the limit is 3 (max_blocks), not 2")
    assert lines[9].endswith("passed  passed/blocked/failed_open  docs: it is new")
    assert lines[11:13] == [
        "GATE  STOPS  DIFFER  UNKNOWN  WHAT CHANGED",
        "docs      4       0        1  is new",
    ]


def test_who_was_gated_and_need_not_be_asked_is_not_like_one_who_is_not_gated(project, capsys):
    text = GATES.replace('"always"', '"changed"')
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    fields = {"hook_event_name": "SessionStart", "session_id": "s2", "cwd": str(project)}
    ask(fields | {"source": "startup"}, "--host", "claude")
    ask(payload("claude", project, session_id="s2"), "--host", "claude")

    lines, _ = replayed(capsys)
    assert results(lines) == [("skipped", "same", "skipped")]
    asking = changed(project, ('"changed"', '"always"'))
    lines, _ = replayed(capsys, "--config", asking)
    assert results(lines) == [("skipped", "differs", "passed/blocked/failed_open")]
    assert lines[0]["missing"][0]["why"] == "it was spared then, because nothing had changed"
    (project / "new.toml").write_text("")
    lines, _ = replayed(capsys, "--config", "new.toml")
    assert results(lines) == [("skipped", "differs", "skipped")]
    assert lines[0]["why"] == "no-gate"
    assert {"gate": "lint", "what": "is gone"} in lines[0]["because"]


def test_too_many_unknown_answers_are_said_to_be_too_many(project, capsys):
    stop(project, "s1")
    more = "".join(f'[gates.g{n}]\nrun = "true"\npriority = {n}\n' for n in range(12))
    (project / "new.toml").write_text(GATES + more)

    lines, _ = replayed(capsys, "--config", "new.toml")

    assert (lines[0]["result"], lines[0]["too_many"]) == ("unknown", True)
    main(["replay", "--config", "new.toml"])
    assert "too many gates have no recorded answer to try them all" in capsys.readouterr().out


def test_what_follows_a_stop_that_cannot_be_known_says_so(project, capsys):
    stop(project, "s1")
    stop(project, "s1", "lint-fails", active=True)
    docs = '[gates.docs]\nrun = "true"\n[gates.tests]'
    new = changed(project, ("[gates.tests]", docs))

    lines, _ = replayed(capsys, "--config", new)

    assert [(line["result"], line["follows"]) for line in lines] == [("unknown", None), ("same", 1)]
    main(["replay", "--config", new])
    said = "Said of 2 as far as a stop before in the same turn, which cannot be known, stays"
    assert said in capsys.readouterr().out


def test_a_stop_that_is_still_being_asked_is_left_out(project, capsys):
    begun = Ledger().begin(StopEvent(host="claude", session_id="s1", cwd=str(project)))

    lines, _ = replayed(capsys)

    assert lines[0]["left_out"] == "it is still being asked"
    assert lines[0]["id"] == begun.stop


def test_a_stop_without_a_folder_has_no_configuration(capsys):
    evil = Gate(name="g", check=Command(script="true"))
    Engine([evil], ledger=Ledger()).check_sync(StopEvent(host="claude", session_id="s1"))

    lines, _ = replayed(capsys, "--all")

    assert lines[0]["left_out"] == "it names no folder"


def test_a_long_table_is_cut_and_json_is_not(project, capsys):
    stop(project, "s1")
    with closing(sqlite3.connect(ledger_path())) as db, db:
        stops = [name for _, name, *_ in db.execute("PRAGMA table_info(stops)") if name != "id"]
        reports = [name for _, name, *_ in db.execute("PRAGMA table_info(reports)")][1:]
        for number in range(2, 261):
            db.execute(
                f"INSERT INTO stops (id, {', '.join(stops)})"  # noqa: S608  # their own names
                f" SELECT {number}, {', '.join(stops)} FROM stops WHERE id = 1"
            )
            db.execute(
                f"INSERT INTO reports (stop, {', '.join(reports)})"  # noqa: S608  # as above
                f" SELECT {number}, {', '.join(reports)} FROM reports WHERE stop = 1"
            )
    (project / "new.toml").write_text("")

    lines, _ = replayed(capsys, "--config", "new.toml", "--since", "2d")
    assert len(lines) == 260
    main(["replay", "--config", "new.toml"])
    assert "and 150 before these; --json has them all" in capsys.readouterr().out


def test_configuration_is_looked_at_once_for_each_place(project, capsys, monkeypatch):
    for number in range(5):
        stop(project, f"s{number}")
    looked = []
    real = replay_places.load
    monkeypatch.setattr(
        replay_places, "load", lambda *args, **more: looked.append(args) or real(*args, **more)
    )

    assert replayed(capsys)[1]["same"] == 5

    assert len(looked) == 1


def test_in_a_folder_that_is_gone_there_is_no_project(tmp_path, monkeypatch, capsys):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert main(["replay"]) == 2
    assert "this folder is gone; go to another one, or use --all" in capsys.readouterr().err
    assert main(["replay", "--all"]) == 0


def test_a_ledger_that_is_none_is_said_to_be_none(project, capsys, monkeypatch):
    (project / "notes.txt").write_text("no ledger\n" * 100)
    monkeypatch.setenv("NOTYET_LEDGER", str(project / "notes.txt"))

    assert main(["replay"]) == 2
    assert "notes.txt" in capsys.readouterr().err
