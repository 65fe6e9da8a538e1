"""Which work tree is the main one, as git itself lays them out."""

import subprocess

import pytest

from notyet.git.worktrees import in_main_worktree, main_worktree


def git(folder, *words):
    names = ("-c", "user.name=n", "-c", "user.email=e", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *names, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "main"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def test_a_linked_work_tree_has_a_main_one(repository, tmp_path):
    git(repository, "worktree", "add", "-q", str(tmp_path / "wt"))
    (tmp_path / "wt" / "sub").mkdir()
    assert main_worktree(str(tmp_path / "wt" / "sub")) == str(repository)
    assert in_main_worktree(str(tmp_path / "wt")) == str(repository)
    assert in_main_worktree(str(tmp_path / "wt" / "sub")) == str(repository / "sub")


def test_the_main_one_has_no_other(repository):
    assert main_worktree(str(repository)) == ""
    assert in_main_worktree(str(repository)) == str(repository)


def test_a_bare_repository_has_no_main_one(repository, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(tmp_path / "bare"))
    git(tmp_path / "bare", "worktree", "add", "-q", str(tmp_path / "wt"))
    assert main_worktree(str(tmp_path / "wt")) == ""


def test_a_submodule_is_a_project_of_its_own(repository, tmp_path):
    git(tmp_path, "clone", "-q", str(repository), str(tmp_path / "other"))
    git(repository, "submodule", "add", "-q", str(tmp_path / "other"), "part")
    assert main_worktree(str(repository / "part")) == ""


@pytest.mark.parametrize("text", ["", "hello", "gitdir: /nowhere"])
def test_a_file_that_names_no_repository_means_nothing(tmp_path, text):
    (tmp_path / ".git").write_text(text)
    assert main_worktree(str(tmp_path)) == ""
