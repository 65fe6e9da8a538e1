"""What git ignores is seen by nobody: where that could be all of a project, it is unknown (N1)."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.git import run as unknown
from notyet.git.fingerprint import FileSet, fingerprints
from tree_changes import add

pytestmark = pytest.mark.rule("B6", "N1")


def look(folder, *paths):
    return fingerprints([FileSet(str(folder), paths)])[0]


@pytest.fixture
def below(git_project):
    """A project without a repository of its own, below the top of another."""
    folder = Path(git_project) / "a" / "project"
    folder.mkdir(parents=True)
    (folder / "notyet.toml").touch()
    return folder


def ignore(git_project, *lines):
    (Path(git_project) / ".gitignore").write_text("\n".join(lines))
    git(git_project, "add", "--force", ".gitignore")
    git(git_project, "commit", "--quiet", "-m", "ignored")


@pytest.mark.parametrize("glob", ["*", "/a/", "project", "a/project/*", "/*\n!/.config"])
@pytest.mark.parametrize("paths", [(), ("**",), ("../../file.txt",)])
def test_a_folder_that_the_repository_around_it_ignores_is_unknown(git_project, below, glob, paths):
    assert look(below, *paths)
    ignore(git_project, glob)
    assert look(below, *paths) == ""
    assert look(git_project)


def test_why_it_is_unknown_is_told(git_project, below):
    ignore(git_project, "*")
    scopes = [FileSet(str(below)), FileSet(git_project), FileSet(str(below), ("**",))]
    reasons = {}
    assert [bool(seen) for seen in fingerprints(scopes, 20, reasons)] == [False, True, False]
    assert reasons == dict.fromkeys((scopes[0], scopes[2]), unknown.IGNORED)


def test_a_folder_of_which_git_knows_a_file_is_known(git_project, below):
    git(git_project, "add", ".")
    git(git_project, "commit", "--quiet", "-m", "below")
    ignore(git_project, "*")
    assert look(below) == look(git_project) != ""


def test_a_folder_that_is_new_is_known(git_project, below):
    ignore(git_project, "/a/other/")
    before = look(below)
    assert before == look(git_project) != ""
    (below / "new.txt").touch()
    assert look(below) == look(git_project) != before


def names(project, path):
    """Have a file outside of the repository name what is ignored, in several ways."""
    home = Path.home()
    told = f"[core]\n\texcludesFile = {path}\n"
    if path == "default":
        return home / ".config" / "git" / "ignore"
    if path == "included":
        (home / "more").write_text("[Core]\n\tExcludesFile = ~/ignored\n")
        (home / ".gitconfig").write_text("[include]\n\tpath = more\n")
        return home / "ignored"
    if path == "settings":
        (home / ".config" / "git").mkdir(parents=True)
        (home / ".config" / "git" / "config").write_text(f"[core]\n\texcludesFile = {home}/i\n")
        return home / "i"
    if path == "repository":
        git(project, "config", "core.excludesFile", str(home / "ignored"))
        return home / "ignored"
    (home / ".gitconfig").write_text(told)
    return Path(project, os.path.expanduser(path))


@pytest.mark.parametrize(
    "path", ["default", "~/ignored", "../ignored", "settings", "included", "repository"]
)
def test_what_the_user_wants_ignored_counts(git_project, path):
    file = names(git_project, path)
    add(Path(git_project))
    seen = [look(git_project)]
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in ("new.txt", "other.txt"):
        file.write_text(text)
        seen.append(look(git_project))
    assert all(seen)
    assert len({*seen}) == 3
    file.unlink()
    assert look(git_project) == seen[0]
