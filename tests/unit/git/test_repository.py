"""The repository that is looked at is the one that was found, wherever git keeps its own."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.git.fingerprint import FileSet, fingerprint, fingerprints
from notyet.git.repository import repository_of
from notyet.git.run import REDIRECTED
from tree_changes import add, edit

pytestmark = pytest.mark.rule("B6", "N1")


@pytest.fixture
def trap(tmp_path):
    """A program that a repository could name, and the file that tells whether it ran."""
    program, ran = tmp_path / "trap", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    return program, ran


@pytest.fixture
def submodule(git_project, tmp_path):
    """A submodule of the project, as git itself makes one."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "file.txt").write_text("one\n")
    git(inner, "init", "--quiet")
    git(inner, "add", ".")
    git(inner, "commit", "--quiet", "-m", "a")
    allow = ("-c", "protocol.file.allow=always")
    git(git_project, *allow, "submodule", "add", "--quiet", str(inner), "sub")
    git(git_project, "commit", "--quiet", "-m", "sub")
    return Path(git_project) / "sub"


def test_a_submodule_can_be_looked_at_from_inside(submodule):
    assert (submodule / ".git").is_file()
    seen = [fingerprint(str(submodule))]
    for change in (edit, add):
        change(submodule)
        seen.append(fingerprint(str(submodule)))
    (submodule.parent / "file.txt").write_text("of the project around it")
    assert fingerprint(str(submodule)) == seen[-1]
    assert "" not in seen
    assert len({*seen}) == 3


def test_a_submodule_that_is_not_checked_out_is_no_riddle(submodule):
    project = str(submodule.parent)
    before = fingerprint(project)
    git(project, "submodule", "--quiet", "deinit", "--force", "sub")
    assert fingerprint(project) == fingerprint(project) != before != ""


@pytest.mark.rule("N1")
@pytest.mark.parametrize("file", ["config", "config.worktree"])
def test_a_repository_whose_files_are_said_to_be_elsewhere_is_unknown(git_project, tmp_path, file):
    """Else an agent could have git look at a clean copy."""
    (tmp_path / "clean").mkdir()
    git(git_project, "config", "extensions.worktreeConfig", "true")
    assert fingerprint(git_project) != ""
    path = f"{git_project}/.git/{file}"
    git(git_project, "config", "--file", path, "core.worktree", str(tmp_path / "clean"))
    (found,) = fingerprints([FileSet(git_project)], 20.0, reasons := {})
    assert (found, *reasons.values()) == ("", REDIRECTED)
    git(git_project, "config", "--file", path, "core.worktree", git_project)
    assert fingerprint(git_project) != ""


def test_a_name_with_a_colon_above_the_project_is_fine(tmp_path):
    project = tmp_path / "a:b" / "project"
    project.mkdir(parents=True)
    git(project, "init", "--quiet")
    before = fingerprint(str(project))
    add(project)
    assert fingerprint(str(project)) != before != ""


def test_git_does_not_go_further_up_than_we_did(git_project, trap):
    """What lies above could be anybody's; it is not what was looked for."""
    program, ran = trap
    git(git_project, "config", "filter.x.clean", str(program))
    (Path(git_project) / ".gitattributes").write_text("* filter=x\n")
    inner = Path(git_project) / "inner"
    (inner / ".git").mkdir(parents=True)
    (Path(git_project) / "file.txt").write_text("TWO\n")
    os.utime(Path(git_project) / "file.txt", (1, 1))
    assert fingerprint(str(inner)) == ""
    assert not ran.exists()


def bare_with_commands(folder, program):
    """Make a folder of the project what git keeps of a repository, one that names a command."""
    git(folder.parent, "init", "--quiet", "--bare", str(folder))
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", "..")
    git(folder, "config", "filter.x.clean", str(program))


@pytest.mark.parametrize("below", ["", "hooks"])
def test_what_looks_like_a_repository_in_a_folder_is_not_taken_for_one(git_project, trap, below):
    program, ran = trap
    folder = Path(git_project) / "kept"
    bare_with_commands(folder, program)
    (folder / "hooks").mkdir(exist_ok=True)
    (Path(git_project) / ".gitattributes").write_text("* filter=x\n")
    git(git_project, f"--git-dir={folder}", "add", "--intent-to-add", "file.txt")
    ran.unlink(missing_ok=True)
    assert fingerprint(str(folder / below)) == ""
    assert fingerprints([FileSet(str(folder / below), ("**",))]) == [""]
    assert not ran.exists()


ODD = {
    "no repository": b"",
    "leads nowhere": b"gitdir: /no/such/place\n",
    "not what it should be": b"once upon a time\n",
    "with a zero byte": b"gitdir: a\0b\n",
    "endless": b"gitdir: " + b"x" * 3_000_000,
}


@pytest.mark.parametrize("content", ODD.values(), ids=ODD)
def test_an_odd_file_instead_of_a_repository_makes_the_files_unknown(tmp_path, content):
    (tmp_path / ".git").write_bytes(content)
    assert repository_of(str(tmp_path)) == os.path.realpath(tmp_path)
    assert fingerprint(str(tmp_path)) == ""


@pytest.mark.parametrize("name", [".git", ".git/config", ".git/info/exclude", ".git/commondir"])
def test_a_pipe_where_git_keeps_a_file_does_not_hang_us(git_project, name):
    path = Path(git_project) / name
    if path.is_dir():
        path.rename(path.with_name("moved"))
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    assert fingerprint(git_project, 0.5) == ""
