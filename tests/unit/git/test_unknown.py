"""Why files are unknown is told, in words for whoever waits for a gate that is always asked."""

from pathlib import Path

import pytest

from conftest import git
from notyet.git import run as unknown
from notyet.git.fingerprint import FileSet, fingerprints

pytestmark = pytest.mark.rule("N1")


def why(folder, patience=20.0):
    reasons = {}
    assert fingerprints([FileSet(str(folder))], patience, reasons) == [""]
    assert [*reasons] == [FileSet(str(folder))]
    return reasons[FileSet(str(folder))]


def test_that_there_is_no_repository(tmp_path):
    assert why(tmp_path) == unknown.OUTSIDE


def test_that_there_is_no_git(git_project, monkeypatch):
    monkeypatch.setenv("PATH", git_project)
    assert why(git_project) == unknown.NO_GIT


def test_that_the_repository_names_filters(git_project):
    git(git_project, "config", "filter.x.clean", "cat")
    assert why(git_project) == unknown.FILTERED


@pytest.mark.parametrize("said", ["no setting\n", "[include\n", "[core]\nexcludesFile\n"])
def test_that_git_refuses(git_project, said):
    with (Path(git_project) / ".git" / "config").open("a") as file:
        file.write(said)
    assert why(git_project) == unknown.REFUSED


@pytest.mark.parametrize("said", ["", "[include]\npath = nowhere\n"])
def test_that_there_was_no_time(git_project, said):
    (Path.home() / ".gitconfig").write_text(said)
    assert why(git_project, 0.0) == unknown.SLOW


def test_that_what_git_keeps_is_odd(tmp_path):
    (tmp_path / ".git").write_text("once upon a time")
    assert why(tmp_path) == unknown.ODD


def test_what_is_known_has_no_reason(git_project):
    reasons = {}
    assert all(fingerprints([FileSet(git_project)], reasons=reasons))
    assert reasons == {}
