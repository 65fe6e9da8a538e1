"""Paths narrow what a fingerprint taken elsewhere is about, in one round trip for all (N1)."""

import os
import time
from pathlib import Path

import pytest

from conftest import git
from notyet.core.remote import remote_from
from notyet.git import remote as workspace_remote
from notyet.git import run as unknown
from notyet.git.look import Scope
from notyet.git.remote import fingerprints_there
from tree_changes import CHANGES, OF_HEAD_ALONE, edit
from tree_looks import is_known, look, nest, new_repository, other_folder

pytestmark = pytest.mark.rule("M1", "N1")


@pytest.fixture
def nested(git_project, tmp_path):
    """A project with a submodule, and with another repository in it."""
    return nest(git_project, tmp_path / "inner")


@pytest.mark.parametrize("change", CHANGES)
def test_with_paths_a_change_elsewhere_does_not_show(git_project, change):
    other_folder(git_project)
    before = look(git_project, "other/**")
    change(Path(git_project))
    assert look(git_project, "other/**") == before
    assert is_known(before)


@pytest.mark.parametrize("change", [c for c in CHANGES if c not in OF_HEAD_ALONE])
def test_with_paths_a_change_to_what_they_name_shows(git_project, change):
    other_folder(git_project)
    before = look(f"{git_project}/other", "../**", "no/such/file")
    change(Path(git_project))
    after = look(f"{git_project}/other", "../**", "no/such/file")
    assert before != after
    assert is_known(before)
    assert is_known(after)


@pytest.mark.parametrize("glob", ["{}", "{}/**", "{}/deep/*.txt", "./{}/a.txt", "**"])
@pytest.mark.parametrize("name", ["sub", "nested"])
def test_a_path_leads_into_a_repository_inside_by_its_name(nested, name, glob):
    before = look(nested, glob.format(name))
    (nested / name / "a.txt").write_text("changed")
    assert look(nested, glob.format(name)) != before
    assert is_known(before)


@pytest.mark.parametrize("path", ["file.txt", "./file.txt", "*.txt", "sub/../file.txt"])
def test_other_paths_do_not_lead_into_a_repository_inside(nested, path):
    before = look(nested, path)
    (nested / "sub" / "a.txt").write_text("changed")
    (nested / "nested" / "a.txt").write_text("changed")
    assert look(nested, path) == before
    assert is_known(before)


@pytest.mark.parametrize("path", ["srcs/**", "{file,other}.txt", "!file.txt", "FILE.TXT"])
def test_paths_that_name_no_file_at_all_are_unknown(git_project, path):
    assert look(git_project, path) == ""
    assert is_known(look(git_project, path, "*.txt"))


@pytest.mark.parametrize("path", ["src/**", "src", "./src/kept.txt"])
def test_paths_that_lead_through_a_link_are_unknown(git_project, path):
    other_folder(git_project)
    (Path(git_project) / "src").symlink_to("other")
    assert look(git_project, "file.txt", path) == ""
    assert is_known(look(git_project, "file.txt", "*"))


def test_why_files_are_unknown_is_told(warm_box, git_project, tmp_path):
    (tmp_path / "plain").mkdir()
    bare = Path(git_project) / "filtered"
    new_repository(bare)
    git(bare, "config", "filter.x.clean", "cat")
    new_repository(tmp_path / "broken")
    (tmp_path / "broken" / ".git" / "HEAD").write_text("broken")
    expected = {
        Scope(str(tmp_path / "plain")): unknown.OUTSIDE,
        Scope(str(tmp_path / "gone")): unknown.OUTSIDE,
        Scope(git_project, ("b", "a", "b")): unknown.NOT_NAMED,
        Scope(str(bare)): unknown.FILTERED,
        Scope(str(tmp_path / "broken")): unknown.REFUSED,
    }
    reasons = {}
    remote = remote_from(warm_box.url(git_project))
    assert fingerprints_there(remote, [*expected], 20, reasons) == [""] * 5
    assert reasons == expected
    assert all(fingerprints_there(remote, [Scope(git_project)], 20, reasons))
    lost = {}
    assert fingerprints_there(remote_from("ssh://no-such.invalid/"), [Scope("/")], 20, lost) == [""]
    assert lost == {Scope("/"): unknown.LOST}


def working_in(folder):
    """Return the processes that work in a folder."""
    found = []
    for cwd in Path("/proc").glob("[0-9]*/cwd"):
        try:
            found += [cwd] if str(cwd.readlink()).startswith(str(folder)) else []
        except OSError:
            continue
    return found


def test_a_git_that_waits_for_a_pipe_in_the_project_is_ended_there(warm_box, git_project):
    (Path(git_project) / "d").mkdir()
    (Path(git_project) / "d" / "new").touch()
    os.mkfifo(Path(git_project) / "d" / ".gitignore")
    reasons = {}
    remote = remote_from(warm_box.url(git_project))
    assert fingerprints_there(remote, [Scope(git_project)], 3, reasons) == [""]
    assert reasons == {Scope(git_project): unknown.LOST}
    while working_in(git_project):  # the end of all takes a moment
        time.sleep(0.01)


def test_all_scopes_are_told_in_one_round_trip(warm_box, git_project, tmp_path, monkeypatch):
    other_folder(git_project)
    run, times = workspace_remote.run_there, []
    monkeypatch.setattr(
        workspace_remote, "run_there", lambda *a, **k: times.append(a) or run(*a, **k)
    )
    scopes = [
        Scope(git_project),
        Scope(git_project, ("other/**", "*.md")),
        Scope(str(tmp_path / "gone")),
        Scope(git_project, ("*.md", "other/**", "*.md")),
        Scope(f"{git_project}/other", ("kept.txt",)),
    ]
    remote = remote_from(warm_box.url(git_project))
    before = fingerprints_there(remote, scopes, 20)
    assert len(times) == 1
    assert [bool(tree) for tree in before] == [True, True, False, True, True]
    assert before[1] == before[3]
    assert len({*before}) == 4
    edit(Path(git_project))
    after = fingerprints_there(remote, scopes, 20)
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, True, True, True, True]
    assert fingerprints_there(remote, [], 20) == []
