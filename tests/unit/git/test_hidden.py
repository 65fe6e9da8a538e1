"""No way to hide a change from git hides it from the fingerprint."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet import light
from notyet.git import content
from notyet.git import fingerprint as index
from notyet.git import run as unknown
from notyet.git.fingerprint import FileSet, fingerprint, fingerprints
from tree_changes import SECOND_CHANGES, add, edit, overlook, second_id
from tree_looks import dig, new_repository, plant

pytestmark = pytest.mark.rule("B6", "N1")


@pytest.mark.parametrize("pair", SECOND_CHANGES, ids=second_id)
def test_nothing_that_git_was_told_hides_a_change(git_project, pair):
    first, second = pair
    first(Path(git_project))
    before = fingerprint(git_project)
    second(Path(git_project))
    after = fingerprint(git_project)
    assert "" not in (before, after)
    assert before != after == fingerprint(git_project)


@pytest.mark.parametrize("pair", SECOND_CHANGES, ids=second_id)
def test_nor_with_paths(git_project, pair):
    scope = [FileSet(git_project, ("**",))]
    first, second = pair
    first(Path(git_project))
    before = fingerprints(scope)
    second(Path(git_project))
    assert [""] != before != fingerprints(scope)


def test_what_the_repository_says_about_its_files_counts(git_project):
    kept = Path(git_project) / ".git"
    seen = [fingerprint(git_project)]
    for name in ("config", "info/exclude", "info/attributes"):
        (kept / name).parent.mkdir(exist_ok=True)
        with (kept / name).open("a") as file:
            file.write("# said\n")
        seen.append(fingerprint(git_project))
    assert "" not in seen
    assert len({*seen}) == 4


def test_how_far_others_have_come_and_what_was_stashed_does_not_count(git_project, tmp_path):
    git(tmp_path, "clone", "--quiet", git_project, "clone")
    clone = tmp_path / "clone"
    git(clone, "config", "status.showStash", "true")
    before = fingerprint(str(clone))
    git(git_project, "commit", "--quiet", "--allow-empty", "-m", "theirs")
    git(clone, "fetch", "--quiet")
    assert fingerprint(str(clone)) == before != ""
    edit(clone)
    git(clone, "stash", "--quiet")
    assert fingerprint(str(clone)) == before


def test_what_git_converts_back_is_no_change_any_more_once_it_is_staged(git_project):
    project = Path(git_project)
    (project / ".gitattributes").write_text("*.txt text\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "text")
    before = fingerprint(git_project)
    (project / "file.txt").write_bytes(b"one\r\n")
    assert fingerprint(git_project) != before
    git(project, "add", ".")
    assert fingerprint(git_project) == before != ""


def sparse(project, files):
    """Fill a project with files, most of which are not checked out."""
    for number in range(files):
        file = project / f"{number % 7}" / f"{number}.txt"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "many")
    git(project, "sparse-checkout", "set", "1")
    assert not (project / "2").exists()


def test_what_a_sparse_checkout_lacks_is_no_riddle_and_shows_when_it_comes(git_project):
    project = Path(git_project)
    sparse(project, 700)
    git(project, "config", "sparse.expectFilesOutsideOfPatterns", "true")
    before = fingerprint(git_project)
    assert before
    (project / "2").mkdir()
    assert fingerprint(git_project) == before
    seen = {before}
    for text in ("x", "y"):
        (project / "2" / "2.txt").write_text(text)
        seen.add(fingerprint(git_project))
    assert "" not in seen
    assert len(seen) == 3


def test_too_many_entries_that_git_overlooks_make_the_files_unknown(git_project, monkeypatch):
    overlook(Path(git_project))
    monkeypatch.setattr(index, "MOST_HIDDEN", 1)
    assert fingerprint(git_project) != ""
    add(Path(git_project))
    git(git_project, "add", ".")
    git(git_project, "update-index", "--skip-worktree", "new.txt")
    assert fingerprint(git_project) == ""


@pytest.mark.parametrize("bound", ["MOST_BYTES", "MOST_FILES"])
def test_beyond_the_bounds_size_and_time_stand_for_content(git_project, monkeypatch, bound):
    monkeypatch.setattr(content, bound, 2)
    project = Path(git_project)
    for number in range(9):
        (project / f"{number}.txt").write_text("x")
    before = fingerprint(git_project)
    last = project / "8.txt"
    times = last.stat()
    last.write_text("y")
    os.utime(last, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "" not in (before, fingerprint(git_project))
    assert fingerprint(git_project) != before  # the time of the change itself, nobody can set


def test_a_file_that_may_not_be_read_stands_for_itself_by_size_and_time(git_project, monkeypatch):
    secret = os.fsencode(git_project) + b"/secret"
    opened = light.open

    def refuse(path, *args, **options):
        if path == os.path.realpath(secret):
            raise PermissionError(13, "no", path)
        return opened(path, *args, **options)

    monkeypatch.setattr(light, "open", refuse)
    seen = set()
    for words in (b"one", b"two", b"three"):
        with open(secret, "wb") as file:
            file.write(words)
        os.utime(secret, ns=(1, len(seen)))
        seen.add(fingerprint(git_project))
    assert "" not in seen
    assert len(seen) == 3


@pytest.mark.parametrize("kind", ["submodule", "nested"])
def test_a_folder_inside_that_cannot_be_read_makes_the_files_unknown(git_project, kind):
    inner = Path(git_project) / "inner"
    new_repository(inner)
    if kind == "submodule":
        git(git_project, "add", "inner")
        git(git_project, "commit", "--quiet", "-m", "inner")
    assert fingerprint(git_project) != ""
    dig(inner)
    reasons = {}
    assert fingerprints([FileSet(git_project)], reasons=reasons) == [""]
    assert reasons == {FileSet(git_project): unknown.UNREADABLE}


@pytest.mark.parametrize("stages", [(0,), (1, 2)], ids=["whole", "in a conflict"])
@pytest.mark.parametrize("paths", [(), ("file.txt", "d/src/**"), ("d/src/deep/*.txt",), ("d/**",)])
def test_a_change_in_a_folder_that_the_index_calls_a_repository_shows(git_project, paths, stages):
    project = Path(git_project)
    plant(project, "d/src", *stages)
    (project / "d/src/deep").mkdir()
    seen = [fingerprints([FileSet(git_project, paths)])]
    for name in ("a.txt", "new.txt", "deep/new.txt"):
        (project / "d/src" / name).write_text("changed")
        seen.append(fingerprints([FileSet(git_project, paths)]))
    assert [""] not in seen
    assert len({*map(str, seen)}) == 4


@pytest.mark.parametrize("paths", [(), ("*.txt",)])
def test_seen_from_inside_of_such_a_folder_the_files_are_unknown(git_project, paths):
    plant(Path(git_project), "src")
    scope, reasons = FileSet(f"{git_project}/src", paths), {}
    assert fingerprints([scope], reasons=reasons) == [""]
    assert reasons == {scope: unknown.REFUSED}
