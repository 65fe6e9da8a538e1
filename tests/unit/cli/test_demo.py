"""The demo tells a true story, or says that it did not."""

import subprocess
from dataclasses import replace

import pytest

from notyet.agents.script import Script
from notyet.cli import demo
from notyet.cli.main import main


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
