"""The demo tells a true story, or says that it did not."""

import fcntl
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from notyet.agents.script import Script
from notyet.cli import demo
from notyet.cli.main import main
from notyet.ledger.connection import default_path, demo_ledger
from notyet.ledger.ledger import Ledger
from notyet.ledger.past_stops import StopFilter, stops
from notyet.ledger.stats import stats


@pytest.mark.rule("K2", "K9")
def test_the_demo_goes_as_it_must_and_cleans_up(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "lead  2 stops  blocked > passed  ok" in shown
    assert "ada   3 stops  blocked > blocked > passed  ok" in shown
    assert "bob   1 stop   passed  ok" in shown
    assert "cyd   3 stops  blocked > blocked > stuck  ok" in shown
    assert "dan   4 stops  blocked > blocked > blocked > capped  ok" in shown
    reports = shown.index("the report of ada"), shown.index("the report of bob")
    assert max(reports) < shown.index("Both reports are in.")
    assert "\x1b" not in shown
    assert list(tmp_path.iterdir()) == []
    assert shown.endswith(" page --demo\n")


def test_its_ledger_is_kept_in_private_and_says_who_was_sent_back_why_and_if_it_helped():
    path = Path(demo_ledger(os.environ))
    path.parent.mkdir(parents=True, mode=0o755)
    path.write_text("of the last demo")
    (path.parent / "ledger.db-wal").write_text("of the last demo")
    path.chmod(0o644)
    assert main(["demo"]) == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    ledger = Ledger(str(path), repair=False)
    ada = [past for past in stops(ledger, StopFilter()) if past.event.label == "ada"][::-1]
    assert [past.outcome for past in ada] == ["blocked", "blocked", "passed"]
    assert "test_an_empty_basket_is_free" in ada[0].prompt
    costs = {gate.gate: gate.seconds for gate in stats(ledger, StopFilter(most=-1)).gates}
    assert max(costs, key=costs.get) == "tests"
    ledger.close()
    assert not os.path.exists(default_path(os.environ))


def test_without_a_place_for_its_ledger_or_beside_another_demo_it_keeps_none(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.setattr(demo, "CREW", ())
    monkeypatch.setattr(demo, "LONERS", ())
    folder = Path(demo_ledger(os.environ)).parent
    folder.mkdir(parents=True)
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    main(["demo"])
    assert "page --demo" not in capsys.readouterr().out
    os.close(other)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", f"{tmp_path}/file")
    main(["demo"])
    assert "page --demo" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("program", "shown"),
    [("./bin/notyet", "./bin/notyet"), ("x/__main__.py", f"{sys.executable} -m notyet")],
)
def test_what_it_offers_can_be_typed(monkeypatch, tmp_path, program, shown):
    monkeypatch.setattr(sys, "argv", [program, "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo.notyet_command() == shown
    (tmp_path / "notyet").write_text("#!/bin/sh\n")
    (tmp_path / "notyet").chmod(0o755)
    assert demo.notyet_command() == "notyet"


def test_a_story_that_goes_otherwise_is_an_error(capsys, monkeypatch):
    ada, bob = demo.CREW
    honest = replace(ada, script=Script(turns=ada.script.turns[2:]))
    monkeypatch.setattr(demo, "CREW", (honest, bob))
    monkeypatch.setattr(demo, "LONERS", ())
    assert main(["demo"]) == 1
    shown = capsys.readouterr().out
    assert "ada   1 stop   passed  WRONG" in shown
    assert "expected blocked > blocked > passed" in shown


def test_the_demo_touches_no_repository_of_the_users(git_project, monkeypatch, capsys):
    monkeypatch.setenv("GIT_DIR", f"{git_project}/.git")
    monkeypatch.setenv("GIT_INDEX_FILE", f"{git_project}/.git/index")
    assert main(["demo"]) == 0
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=git_project, capture_output=True, text=True, check=True
    )
    assert log.stdout == "one\n"
