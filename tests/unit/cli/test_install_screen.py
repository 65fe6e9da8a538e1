"""What `install` and `uninstall` share: asking, and writing where others write too."""

import argparse
from pathlib import Path

import pytest

from notyet.cli.install import Screen
from notyet.install.change import Change, Stale
from notyet.install.settings import Place, settings_of

CLAUDE = settings_of("claude")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.json"
    path.write_bytes(b"0")
    return path


def restless(path, times):
    """Return a plan during which somebody else writes the file, for so many times."""
    left = [times]

    def plan():
        before = path.read_bytes()
        if left[0]:
            left[0] -= 1
            path.write_bytes(before + b"+")
        return Change(path=str(path), before=before, after=before + b"!")

    return plan


def settle(path, plan):
    screen = Screen("install", argparse.Namespace(yes=True, dry_run=False))
    return screen.settle(CLAUDE, Place(scope="user", path=str(path)), plan, "Do it")


def test_a_plan_that_somebody_overtook_is_made_again(file):
    assert settle(file, restless(file, 3)) == "done"
    assert file.read_bytes() == b"0+++!"


def test_where_somebody_always_overtakes_us_that_is_said(file):
    with pytest.raises(Stale, match="changed by others all the time; run this again"):
        settle(file, restless(file, 99))
    assert b"!" not in file.read_bytes()


def test_a_folder_that_is_gone_is_said(place, capsys, monkeypatch):
    from notyet.cli.main import main

    (place / "gone").mkdir()
    monkeypatch.chdir(place / "gone")
    Path("../gone").resolve().rmdir()
    assert main(["install", "claude", "--yes"]) == 2
    assert "this folder is gone" in capsys.readouterr().err
    monkeypatch.chdir(place)
