"""When the files of a repository changed last, which a session that begins is asked about."""

import os
import time

import pytest

from conftest import git
from notyet.git.fingerprint import FileSet, Fingerprinting
from notyet.git.repository import commit_made_at

pytestmark = pytest.mark.rule("N1")
LONG_AGO = (1, 1)  # access and modification, which a program can set


def newest(project, *paths):
    looking = Fingerprinting([FileSet(str(project), paths)], 20.0)
    assert looking.finish() != [""]
    return looking.newest_change()


def moment():
    """Return a time after all that was done, and before all that is done next."""
    time.sleep(0.03)
    now = time.time()
    time.sleep(0.03)
    return now


def edit(project):
    (project / "file.txt").write_text("edited")
    os.utime(project / "file.txt", LONG_AGO)


def add(project):
    (project / "new.txt").write_text("new")
    os.utime(project / "new.txt", LONG_AGO)


def remove(project):
    (project / "sub" / "inner.txt").unlink()


def remove_folder(project):
    remove(project)
    (project / "sub").rmdir()


def commit(project):
    edit(project)
    git(project, "commit", "--quiet", "-a", "-m", "two", "--date", "2001-01-01T00:00:00")


def commit_and_pack(project):
    commit(project)
    git(project, "gc", "--quiet")


def commit_elsewhere(project):
    git(project, "checkout", "--quiet", "--detach")
    commit(project)


def nested(project):
    git(project, "init", "--quiet", "nested")
    (project / "nested" / "file").write_text("x")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "p"
    (folder / "sub").mkdir(parents=True)
    (folder / "file.txt").write_text("one")
    (folder / "sub" / "inner.txt").write_text("one")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


CHANGES = (edit, add, remove, remove_folder, commit, commit_and_pack, commit_elsewhere, nested)


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_the_files_is_noticed_whatever_its_dates_say(project, change):
    before = moment()
    assert newest(project) < before
    change(project)
    assert newest(project) > before


def test_other_paths_and_new_work_trees_of_a_commit_change_nothing(project):
    before = moment()
    add(project)
    assert newest(project, "file.txt") < before
    git(project, "worktree", "add", "--quiet", "../tree")
    assert newest(project.parent / "tree") < before
    git(project, "pack-refs", "--all")
    assert newest(project, "file.txt") < before


def test_a_repository_without_a_commit_has_files_only(tmp_path):
    git(tmp_path, "init", "--quiet")
    assert commit_made_at(str(tmp_path)) == 0.0
    (tmp_path / "file").write_text("x")
    assert newest(tmp_path) > 0


@pytest.mark.parametrize("text", ["ref: refs/heads/.invalid\n", "ref: refs/heads/a\0b\n"])
def test_what_cannot_be_read_counts_as_changed_now(project, text):
    (project / ".git" / "HEAD").write_text(text)
    assert commit_made_at(str(project)) == float("inf")
    (project / ".git").rename(project / "kept")
    (project / ".git").write_text("nonsense")
    assert commit_made_at(str(project)) == float("inf")
