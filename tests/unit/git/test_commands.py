"""Nothing that a repository names is run when we look at its files."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.git import content as workspace_content
from notyet.git.fingerprint import fingerprint
from tree_changes import name_filter

pytestmark = pytest.mark.rule("B6")


@pytest.fixture
def trap(tmp_path):
    """A program that a repository could name, and the file that tells whether it ran."""
    program, ran = tmp_path / "trap", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    return program, ran


def dirty(project, name="file.txt"):
    """Change a file so that git has to look at its content."""
    file = Path(project) / name
    file.write_text("TWO\n")
    os.utime(file, (1, 1))


def test_a_file_system_monitor_is_not_run(git_project, trap):
    program, ran = trap
    git(git_project, "config", "core.fsmonitor", str(program))
    dirty(git_project)
    assert fingerprint(git_project) != ""
    assert not ran.exists()


def test_hooks_are_not_run(git_project, trap):
    program, ran = trap
    hook = Path(git_project) / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(program)
    dirty(git_project)
    assert fingerprint(git_project) != ""
    assert not ran.exists()


@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize("where", ["--local", "--worktree", "included"])
def test_a_filter_of_the_repository_is_not_run_and_the_files_are_unknown(
    git_project, trap, kind, where
):
    program, ran = trap
    name_filter(git_project, program, kind, where)
    dirty(git_project)
    assert fingerprint(git_project) == ""
    assert not ran.exists()


def test_a_filter_of_the_user_is_fine(git_project):
    (Path.home() / ".gitconfig").write_text('[filter "x"]\nclean = cat\n')
    (Path(git_project) / ".gitattributes").write_text("* filter=x\n")
    dirty(git_project)
    assert fingerprint(git_project) == fingerprint(git_project) != ""


def test_a_git_in_the_project_is_not_run(git_project, trap, monkeypatch):
    program, ran = trap
    (Path(git_project) / "git").symlink_to(program)
    monkeypatch.chdir(git_project)
    for first in (".", "", "bin/.."):
        monkeypatch.setenv("PATH", f"{first}:{os.environ['PATH']}")
        assert fingerprint(git_project) != ""
        assert not ran.exists()
    monkeypatch.setenv("PATH", ".:")
    assert fingerprint(git_project) == ""
    assert not ran.exists()


def with_commands(project, program):
    """Give a repository all that git could be made to run in it."""
    git(project, "config", "core.fsmonitor", str(program))
    git(project, "config", "filter.x.clean", str(program))
    (Path(project) / ".gitattributes").write_text("* filter=x\n")


def nested(project, name):
    inner = Path(project) / name
    inner.mkdir()
    (inner / "a.txt").write_text("a\n")
    git(inner, "init", "--quiet")
    git(inner, "add", ".")
    git(inner, "commit", "--quiet", "-m", "a")
    return inner


@pytest.mark.parametrize("kind", ["nested", "submodule"])
def test_nothing_is_run_in_a_repository_inside_this_one(git_project, trap, kind):
    program, ran = trap
    inner = nested(git_project, "inner")
    if kind == "submodule":
        git(git_project, "add", "inner")
        git(git_project, "commit", "--quiet", "-m", "inner")
    with_commands(inner, program)
    ran.unlink(missing_ok=True)
    seen = []
    for text in ("b\n", "c\n", "dd\n"):
        (inner / "a.txt").write_text(text)
        seen.append(fingerprint(git_project))
    assert not ran.exists()
    assert "" not in seen
    assert len(set(seen)) == 3


def test_a_commit_inside_a_submodule_shows(git_project):
    inner = nested(git_project, "inner")
    git(git_project, "add", "inner")
    git(git_project, "commit", "--quiet", "-m", "inner")
    before = fingerprint(git_project)
    git(inner, "commit", "--quiet", "--allow-empty", "-m", "b")
    assert fingerprint(git_project) != before != ""


def test_what_is_missing_is_not_fetched_by_a_command(git_project, trap, tmp_path):
    program, ran = trap
    for name, value in {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{program}",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
    }.items():
        git(git_project, "config", name, value)
    git(git_project, "rm", "--quiet", "--cached", "file.txt")
    for folder in (Path(git_project) / ".git" / "objects").iterdir():
        for file in folder.iterdir():
            file.unlink()
    assert fingerprint(git_project) == ""
    assert not ran.exists()


def test_a_repository_inside_that_is_too_large_makes_the_files_unknown(git_project, monkeypatch):
    inner = nested(git_project, "inner")
    monkeypatch.setattr(workspace_content, "MOST_ENTRIES", 5)
    assert fingerprint(git_project) != ""
    for n in range(5):
        (inner / f"{n}.txt").touch()
    assert fingerprint(git_project) == ""
