"""`notyet off` and `notyet on`: the kill switch."""

import time

import pytest

from hook_runs import FAILING, ask, new_project, payload, stops
from notyet.cli import person
from notyet.cli.main import main


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


def test_off_ends_by_itself(project, monkeypatch):
    main(["off", "30m"])
    assert outcome(project) == ("skipped", "off")
    later = time.time() + 1801
    monkeypatch.setattr("notyet.config.off.time.time", lambda: later)
    assert outcome(project) == ("blocked", "bad")


def test_a_folder_without_configuration_can_be_off_too(tmp_path, project, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["off"]) == 0
    assert outcome(project) == ("skipped", "off")
