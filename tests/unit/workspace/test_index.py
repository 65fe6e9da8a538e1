"""The index is read as git reads it; where it has an odd form, git is asked (N1)."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import git
from notyet.git import index
from notyet.git import run as unknown
from notyet.git.index import LIST, Listing, read_index
from notyet.git.look import Scope, fingerprint, fingerprints
from tree_changes import conflict, edit, intend_to_add, overlook, overlook_and_skip, skip
from tree_looks import new_repository

pytestmark = pytest.mark.rule("B6", "N1")

ENDS = float("inf")
BLOB = "5626abf0f72e58d7a153368ba57db4c673c0e171"  # of file.txt
ENDLESS = "/".join(["f" * 200] * 21)  # longer than a file can have it


def add(project, *names):
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(name[-9:])
    git(project, "add", ".")


def long_names(project):
    """Give files names of which the length stands in both bytes, and in neither."""
    add(project, "d" * 200 + "/" + "e" * 100)
    git(project, "update-index", "--add", "--cacheinfo", f"100644,{BLOB},{ENDLESS}")


def links_and_programs(project):
    (project / "link").symlink_to("file.txt")
    add(project, "program")
    (project / "program").chmod(0o755)
    git(project, "add", ".")


def submodule(project):
    new_repository(project / "inner")
    git(project, "add", "inner")


def many(project):
    add(project, *(f"{number % 9}/{number}" for number in range(300)))


def overlook_a_conflict(project):
    """Do what git refuses: only in the index of somebody else there may be such an entry."""
    conflict(project)
    raw = bytearray((project / ".git/index").read_bytes())
    at = raw.index(b"file.txt")
    raw[at - 2] |= 0x80
    (project / ".git/index").write_bytes(raw)


FORMS = [
    conflict,
    edit,
    intend_to_add,
    links_and_programs,
    long_names,
    many,
    overlook,
    overlook_a_conflict,
    overlook_and_skip,
    skip,
    submodule,
]


def listed(project, folders=()):
    listing = Listing(dict(folders))
    done = subprocess.run(["git", *LIST], cwd=project, capture_output=True, check=True)
    if done.stdout:
        listing.take_chunk(done.stdout)
    return listing


def read(project, folders=()):
    return read_index(f"{project}/.git/index", dict(folders), ENDS)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_read_as_git_lists_it(git_project, form, monkeypatch):
    monkeypatch.setattr(index, "_AT_ONCE", 7)
    project = Path(git_project)
    before = read(project)
    form(project)
    entries, listing = read(project), listed(project)
    assert entries.hidden == listing.hidden
    assert (entries.digest() == before.digest()) is (form is edit)


@pytest.mark.parametrize("form", [links_and_programs, many, submodule])
def test_what_git_remembers_of_times_is_no_part_of_it(git_project, form):
    project = Path(git_project)
    form(project)
    before = read(project)
    for path in project.rglob("*"):
        if path.is_file() and ".git" not in path.parts:
            os.utime(path, (1, 1))
    raw = (project / ".git/index").read_bytes()
    subprocess.run(["git", "update-index", "--refresh", "-q"], cwd=project, check=False)
    assert (project / ".git/index").read_bytes() != raw
    assert read(project).digest() == before.digest()


def test_it_tells_in_which_folders_there_is_an_entry(git_project):
    project = Path(git_project)
    long_names(project)
    add(project, "a/b/c", "ab/c", "skipped/file")
    git(project, "update-index", "--skip-worktree", "skipped/file")
    names = ("a", "a/b", "a/b/c", "b", "ab", "d" * 200, ENDLESS[:200], "skipped", "file.txt")
    folders = {name: name.encode() for name in names}
    entries = read(project, folders)
    assert entries.unmet == listed(project, folders).unmet
    assert [*entries.unmet] == ["a/b/c", "b", "file.txt"]
    assert len(folders) == len(names)  # whose they are


def test_without_an_index_there_is_no_entry(tmp_path):
    git(tmp_path, "init", "--quiet")
    entries = read(tmp_path, {"a": b"a"})
    assert (entries.hidden, entries.unmet, entries.is_filled) == ([], {"a": b"a"}, False)


def fourth_version(project):
    git(project, "update-index", "--index-version", "4")


def split(project):
    git(project, "update-index", "--split-index")


def sparse_index(project):
    add(project, "a/1", "b/2", "b/c/3")
    git(project, "commit", "--quiet", "-m", "many")
    git(project, "sparse-checkout", "set", "--cone", "--sparse-index", "a")


ODD = [fourth_version, split, sparse_index]


@pytest.mark.parametrize("form", ODD)
def test_in_an_odd_form_git_is_asked_for_it(git_project, form):
    project = Path(git_project)
    form(project)
    assert read(project) is None
    seen = [fingerprint(git_project)]
    overlook(project)
    assert read(project) is None
    for text in ("two", "three"):
        seen.append(fingerprint(git_project))
        (project / "file.txt").write_text(text)
    seen.append(fingerprint(git_project))
    assert "" not in seen
    assert len({*seen}) == 4


def test_with_other_hashes_git_is_asked_for_it(tmp_path):
    git(tmp_path, "init", "--quiet", "--object-format=sha256")
    (tmp_path / "file.txt").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    overlook(tmp_path)
    seen = [fingerprint(str(tmp_path))]
    for text in ("two", "three"):
        (tmp_path / "file.txt").write_text(text)
        seen.append(fingerprint(str(tmp_path)))
    assert "" not in seen
    assert len({*seen}) == 3


def test_one_that_cannot_be_read_is_left_to_git(git_project):
    file = Path(git_project) / ".git/index"
    file.unlink()
    file.mkdir()
    reasons = {}
    assert read(git_project) is None
    assert fingerprints([Scope(git_project)], reasons=reasons) == [""]
    assert reasons == {Scope(git_project): unknown.REFUSED}


def test_one_that_takes_too_long_makes_the_files_unknown(git_project):
    with pytest.raises(unknown.Unknown) as caught:
        read_index(f"{git_project}/.git/index", {}, time.monotonic())
    assert caught.value.reason == unknown.SLOW


@pytest.mark.parametrize("most", [0, 20, 71])
def test_one_that_is_too_big_to_be_read_at_once_is_left_to_git(git_project, monkeypatch, most):
    project = Path(git_project)
    overlook(project)
    monkeypatch.setattr(index, "_MOST_READ", most)
    assert read(project) is None
    seen = []
    for text in ("one", "two"):
        (project / "file.txt").write_text(text)
        seen.append(fingerprint(git_project))
    assert "" != seen[0] != seen[1] != ""


@pytest.fixture
def too_much(git_project, tmp_path, monkeypatch):
    """A project, and another one in which git was told to overlook more than can be looked at."""
    monkeypatch.setattr(index, "MOST_HIDDEN", 1)
    other = tmp_path / "other"
    new_repository(other)
    add(other, "b.txt")
    git(other, "update-index", "--skip-worktree", "a.txt", "b.txt")
    return [Scope(git_project), Scope(str(other))]


@pytest.mark.parametrize("turn", [1, -1])
def test_one_with_too_much_in_it_makes_no_other_repository_unknown(too_much, turn):
    usual, other = too_much
    reasons = {}
    scopes = too_much[::turn]
    found = dict(zip(scopes, fingerprints(scopes, reasons=reasons), strict=True))
    assert found == {usual: fingerprint(usual.folder), other: ""}
    assert reasons == {other: unknown.TOO_MUCH}
    assert found[usual]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder, and an index of all kinds of entries as bytes."""
    project = tmp_path_factory.mktemp("whole")
    git(project, "init", "--quiet")
    (project / "file.txt").write_text("one\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "one")
    for form in (links_and_programs, long_names, submodule, skip):
        form(project)
    return project, (project / ".git/index").read_bytes()


@given(st.data())
def test_no_damage_is_more_than_an_odd_form(whole, data):
    folder, raw = whole
    at = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans(), "cut off"):
        damaged = raw[:at]
    else:
        damaged = raw[:at] + data.draw(st.binary(min_size=1, max_size=4)) + raw[at + 1 :]
    (folder / "damaged").write_bytes(damaged)
    try:
        entries = read_index(f"{folder}/damaged", {"a": b"a"}, ENDS)
    except unknown.Unknown:
        return
    assert entries is None or at == 0 or len(damaged) == len(raw)


def test_a_name_that_never_ends_is_an_odd_form(whole, tmp_path):
    _, raw = whole
    start = raw.index(b"f" * 200)
    (tmp_path / "index").write_bytes(raw[: start + 300])
    assert read_index(f"{tmp_path}/index", {}, ENDS) is None
