"""Paths narrow what a fingerprint is about, and many scopes are looked at together."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.git import content as workspace_content
from notyet.git import run as unknown
from notyet.git.fingerprint import FileSet, fingerprints
from notyet.git.repository import repository_of
from tree_changes import CHANGES, OF_HEAD_ALONE, edit

pytestmark = pytest.mark.rule("N1")


def look(folder, *paths):
    return fingerprints([FileSet(str(folder), paths)])[0]


@pytest.fixture
def project(git_project):
    """A project with a file, and with a folder next to it."""
    other = Path(git_project) / "other"
    other.mkdir()
    (other / "kept.txt").write_text("kept")
    git(git_project, "add", ".")
    git(git_project, "commit", "--quiet", "-m", "other")
    return Path(git_project)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_elsewhere_does_not_show(project, change):
    before = look(project, "other/**")
    change(project)
    assert look(project, "other/**") == before != ""


@pytest.mark.parametrize("change", [c for c in CHANGES if c not in OF_HEAD_ALONE])
def test_a_change_to_what_they_name_shows(project, change):
    before = look(project / "other", "../**", "no/such/file")
    change(project)
    after = look(project / "other", "../**", "no/such/file")
    assert "" not in (before, after)
    assert before != after


@pytest.mark.parametrize("change", OF_HEAD_ALONE)
def test_a_commit_that_leaves_these_files_alone_is_no_change(project, change):
    before = look(project, "**")
    change(project)
    assert look(project, "**") == before != ""


@pytest.mark.parametrize(
    ("path", "is_named"),
    [
        ("kept.txt", True),
        ("*.txt", True),
        ("**/*.txt", True),
        ("k?pt.[st]xt", True),
        (".", True),
        ("", True),
        ("deeper", False),
        ("deeper/**", False),
        ("*.py", False),
        ("KEPT.TXT", False),
        (":(exclude)kept.txt", False),
        ("!kept.txt", False),
    ],
)
def test_they_are_globs_of_git_from_the_folder_on(project, path, is_named):
    before = look(project / "other", path)
    (project / "other" / "kept.txt").write_text("changed")
    edit(project)
    assert bool(before) is is_named
    assert (look(project / "other", path) != before) is is_named


@pytest.mark.parametrize("name", ["LITERAL", "GLOB", "NOGLOB", "ICASE"])
def test_what_the_environment_says_about_globs_does_not_matter(project, monkeypatch, name):
    before = look(project, "other/*.txt")
    monkeypatch.setenv(f"GIT_{name}_PATHSPECS", "1")
    assert look(project, "other/*.txt") == before
    (project / "other" / "kept.txt").write_text("changed")
    assert look(project, "other/*.txt") != before


@pytest.mark.parametrize("path", ["../../elsewhere", "/no/such/place", "nul\0byte", "\ud800"])
def test_a_path_that_leads_out_makes_its_scope_unknown_and_no_other(project, path):
    scopes = [
        FileSet(str(project)),
        FileSet(str(project), (path,)),
        FileSet(str(project), ("other",)),
    ]
    assert [bool(seen) for seen in fingerprints(scopes)] == [True, False, True]


def why(folder, *paths):
    reasons = {}
    assert fingerprints([FileSet(str(folder), paths)], reasons=reasons) == [""]
    return reasons[FileSet(str(folder), paths)]


@pytest.mark.parametrize("paths", [("srcs/**",), ("{file,other}.txt",), ("!other",), ("OTHER/**",)])
def test_paths_that_name_no_file_at_all_are_unknown(project, paths):
    assert why(project, *paths) == unknown.NOT_NAMED
    assert look(project, *paths, "file.txt") != ""


def test_a_new_file_is_named_too_and_a_deleted_one_until_it_is_forgotten(project):
    assert look(project, "new.txt") == ""
    (project / "new.txt").touch()
    assert look(project, "new.txt") != ""
    git(project, "add", ".")
    (project / "new.txt").unlink()
    assert look(project, "new.txt") != ""
    git(project, "add", ".")
    assert look(project, "new.txt") == ""


@pytest.mark.parametrize("path", ["src/**", "src", "src/*.txt", "./src/kept.txt", "other/../src/*"])
def test_paths_that_lead_through_a_link_are_unknown(project, path):
    (project / "src").symlink_to("other")
    git(project, "add", ".")
    assert why(project, "file.txt", path) == unknown.LINKED
    assert look(project, "file.txt", "*") != ""


def test_what_a_scope_shows_does_not_depend_on_the_others(project, monkeypatch):
    monkeypatch.setattr(workspace_content, "MOST_BYTES", 10)
    (project / "big.txt").write_text("x" * 9)
    (project / "other" / "big.txt").write_text("x" * 9)
    narrow, whole = FileSet(str(project), ("other",)), FileSet(str(project))
    together = fingerprints([whole, narrow])
    assert together == [*fingerprints([whole]), *fingerprints([narrow])]
    assert together == fingerprints([narrow, whole])[::-1]


def new_repository(folder):
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "a")


@pytest.mark.parametrize("glob", ["{}", "{}/**", "{}/deep/*.txt", "./{}/a.txt", "**", "deep/../{}"])
@pytest.mark.parametrize("kind", ["submodule", "nested"])
def test_a_path_leads_into_a_repository_inside_by_its_name(project, kind, glob):
    new_repository(project / "inner")
    if kind == "submodule":
        git(project, "add", "inner")
    before = look(project, glob.format("inner"))
    (project / "inner" / "a.txt").write_text("changed")
    assert look(project, glob.format("inner")) != before != ""


def test_the_repository_of_a_folder_is_found_by_walking_up(project, tmp_path, monkeypatch):
    (project / "other" / "deep").mkdir()
    (tmp_path / "link").symlink_to(project / "other")
    top = os.path.realpath(project)
    assert repository_of(str(project)) == top
    assert repository_of(str(project / "other" / "deep")) == top
    assert repository_of(str(tmp_path / "link")) == top
    git(project, "worktree", "add", "--quiet", str(tmp_path / "second"))
    assert repository_of(str(tmp_path / "second")) == os.path.realpath(tmp_path / "second")
    monkeypatch.chdir(project / "other")
    assert repository_of(".") == top
