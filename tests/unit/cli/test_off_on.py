"""`notyet off` and `notyet on`: the kill switch."""

import os
import time
from pathlib import Path

import pytest

from hook_runs import FAILING, ask, new_project, payload, query, stops
from notyet.cli import person
from notyet.cli.main import main
from notyet.config.find import state_folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose gate fails, with a person before it."""
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    folder = new_project(tmp_path / "p", FAILING)
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")
    return folder


def outcome(folder):
    ask(payload("claude", folder))
    return stops()[-1]


def test_off_is_for_the_whole_project_and_on_undoes_it(project, tmp_path, capsys):
    other = new_project(tmp_path / "other", FAILING)
    assert main(["off"]) == 0
    assert f"notyet is off in {project} until you run: notyet on" in capsys.readouterr().out
    assert outcome(project) == ("skipped", "off")
    assert outcome(other) == ("blocked", "bad")
    assert main(["on"]) == 0
    assert f"notyet is on again in {project}" in capsys.readouterr().out
    assert outcome(project) == ("blocked", "bad")
    acts = query("SELECT what, place, detail FROM acts")
    assert acts == [("off", str(project), ""), ("on", str(project), "")]


def test_off_everywhere_is_everywhere(project, tmp_path, capsys):
    other = new_project(tmp_path / "other", FAILING)
    assert main(["off", "--global", "2h"]) == 0
    assert "off everywhere for another 120 min" in capsys.readouterr().out
    assert outcome(other) == ("skipped", "off")
    main(["on"])
    assert "on again everywhere" in capsys.readouterr().out
    assert outcome(other) == ("blocked", "bad")
    acts = query("SELECT what, place, detail FROM acts")
    assert acts == [("off", "", "2h"), ("on", "", "")]


def test_off_ends_by_itself(project, monkeypatch):
    main(["off", "30m"])
    assert outcome(project) == ("skipped", "off")
    later = time.time() + 1801
    monkeypatch.setattr("notyet.config.off.time.time", lambda: later)
    assert outcome(project) == ("blocked", "bad")


def test_on_where_nothing_was_off_says_so(project, capsys):
    assert main(["on"]) == 0
    assert "notyet was not off here" in capsys.readouterr().out


def test_on_says_what_is_still_off(project, capsys, monkeypatch):
    monkeypatch.setenv("NOTYET_DISABLE", "1")
    assert main(["on"]) == 0
    assert "still off because NOTYET_DISABLE is set" in capsys.readouterr().out


@pytest.mark.parametrize("duration", ["soon", "-5m", "0", "400d", "1e9h", ""])
def test_what_is_no_duration_is_refused(project, capsys, duration):
    words = ["off", "--", duration] if duration.startswith("-") else ["off", duration]
    assert main(words) == 1
    assert "invalid duration" in capsys.readouterr().err
    assert outcome(project) == ("blocked", "bad")


def test_a_folder_without_configuration_can_be_off_too(tmp_path, project, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["off"]) == 0
    assert outcome(project) == ("skipped", "off")


def test_an_agent_may_not_switch_off(project, monkeypatch, capsys):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "claude was seen")
    assert main(["off"]) == 1
    assert "an agent may not do this (claude was seen)" in capsys.readouterr().err
    assert outcome(project) == ("blocked", "bad")


def test_what_cannot_be_remembered_is_said(project, monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert main(["off"]) == 1
    assert "cannot store the switch" in capsys.readouterr().err
    assert main(["on"]) == 0
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    assert main(["off"]) == 1
    assert main(["on"]) == 0


def test_a_switch_that_cannot_be_removed_is_said(project, capsys):
    switch = Path(state_folder(os.environ), "off", "everywhere.json")
    switch.mkdir(parents=True)
    assert main(["on"]) == 1
    assert "cannot be removed" in capsys.readouterr().err
