"""The fingerprint changes exactly when the files do."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.git.fingerprint import fingerprint
from tree_changes import CHANGES, add, edit, link, rename, stage

pytestmark = pytest.mark.rule("B6")


def test_it_is_the_same_while_nothing_changes(git_project):
    assert fingerprint(git_project) == fingerprint(git_project) != ""


def edit_to_the_same_size_and_time(project):
    file = project / "file.txt"
    before = file.stat()
    file.write_text("ONE\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000_000))


def pipe(project):
    os.mkfifo(project / "file.fifo")


@pytest.mark.parametrize("change", [*CHANGES, edit_to_the_same_size_and_time])
def test_every_change_shows(git_project, change):
    before = fingerprint(git_project)
    change(Path(git_project))
    assert fingerprint(git_project) != before
    assert fingerprint(git_project) == fingerprint(git_project)


@pytest.mark.parametrize("prepare", [edit, add, link, rename, stage])
def test_a_second_change_to_what_is_changed_already_shows_too(git_project, prepare):
    project = Path(git_project)
    prepare(project)
    before = fingerprint(git_project)
    name = {"edit": "file.txt", "add": "new.txt", "link": "link", "rename": "moved.txt"}.get(
        prepare.__name__, "file.txt"
    )
    (project / name).unlink()
    (project / name).write_text("and again\n")
    assert fingerprint(git_project) != before


def test_a_fifo_does_not_hang_it(git_project):
    pipe(Path(git_project))
    assert fingerprint(git_project)


def test_ignored_files_do_not_count(git_project):
    project = Path(git_project)
    (project / ".gitignore").write_text("*.log\n")
    before = fingerprint(git_project)
    (project / "x.log").write_text("noise")
    assert fingerprint(git_project) == before


def test_it_is_the_same_from_a_folder_below(git_project):
    below = Path(git_project) / "below"
    below.mkdir()
    edit(Path(git_project))
    assert fingerprint(str(below)) == fingerprint(git_project)


def test_a_project_without_commits_has_one(tmp_path):
    git(tmp_path, "init", "--quiet")
    before = fingerprint(str(tmp_path))
    (tmp_path / "first").write_text("x")
    assert "" != before != fingerprint(str(tmp_path))


def test_a_huge_file_stands_for_itself_by_size_and_time(git_project, monkeypatch):
    from notyet.git import content as workspace_content

    monkeypatch.setattr(workspace_content, "MOST_BYTES", 10)
    big = Path(git_project) / "big"
    big.write_text("x" * 11)
    before = fingerprint(git_project)
    big.write_text("x" * 12)
    assert fingerprint(git_project) != before


def test_a_broken_repository_has_none(git_project):
    (Path(git_project) / ".git" / "index").write_bytes(b"broken")
    assert fingerprint(git_project) == ""


def test_a_change_inside_a_submodule_or_a_nested_repository_shows(git_project, tmp_path):
    project = Path(git_project)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.txt").write_text("a")
    git(inner, "init", "--quiet")
    git(inner, "add", ".")
    git(inner, "commit", "--quiet", "-m", "a")
    git(
        project,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "--quiet",
        str(inner),
        "sub",
    )
    git(project, "commit", "--quiet", "-m", "sub")
    (project / "nested").mkdir()
    git(project / "nested", "init", "--quiet")
    seen = [fingerprint(git_project)]
    for name in ("sub/a.txt", "nested/new.txt"):
        for text in ("one", "two"):
            (project / name).write_text(text)
            seen.append(fingerprint(git_project))
    assert "" not in seen
    assert len(set(seen)) == len(seen)


def test_variables_that_git_sets_in_its_hooks_do_not_lead_elsewhere(
    git_project, tmp_path, monkeypatch
):
    before = fingerprint(git_project)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(elsewhere / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(elsewhere / "index"))
    assert fingerprint(git_project) == before
