"""The fingerprint of a workspace elsewhere changes exactly when the files there do (B6)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import git
from notyet.core.remote import remote_from
from notyet.git import remote as workspace_remote
from notyet.git.remote import fingerprint_there
from tree_changes import (
    CHANGES,
    SECOND_CHANGES,
    add,
    add_strangely,
    edit,
    link,
    name_filter,
    rename,
    second_id,
    stage,
)
from tree_looks import SHELLS, dig, is_known, look, nest, new_repository, plant

pytestmark = pytest.mark.rule("B6", "M1", "N1")


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_shows(git_project, change):
    before = look(git_project)
    change(Path(git_project))
    after = look(git_project)
    assert before != after == look(git_project)
    assert is_known(before)
    assert is_known(after)


@pytest.mark.parametrize("pair", SECOND_CHANGES, ids=second_id)
def test_nothing_that_git_was_told_hides_a_change(git_project, pair):
    first, second = pair
    first(Path(git_project))
    before = look(git_project)
    second(Path(git_project))
    after = look(git_project)
    assert before != after == look(git_project)
    assert is_known(before)
    assert is_known(after)


@pytest.mark.parametrize("change", [edit, add, add_strangely, link, rename, stage])
def test_a_second_change_to_what_is_changed_already_shows_too(git_project, change):
    project = Path(git_project)
    known = set(os.listdir(project))
    change(project)
    before = look(git_project)
    (name,) = (set(os.listdir(project)) - known) or {"file.txt"}
    (project / name).unlink()
    (project / name).write_text("and again\n")
    assert look(git_project) != before


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_every_shell_sees_the_same(git_project, shell):
    if shutil.which(shell[0]) is None:
        pytest.skip(f"there is no {shell[0]}")
    add_strangely(Path(git_project))
    plant(Path(git_project), "d/src")
    for paths in ((), ("d/src/*.txt",)):
        assert look(git_project, *paths, shell=shell) == look(git_project, *paths) != ""


def test_ignored_files_pipes_and_the_time_do_not_count(git_project):
    project = Path(git_project)
    (project / ".gitignore").write_text("*.pyc\n")
    before = look(git_project)
    (project / "x.pyc").write_text("")
    os.utime(project / "file.txt", (1, 1))
    assert look(git_project) == before
    os.mkfifo(project / "pipe")
    assert is_known(look(git_project))


def test_a_huge_file_stands_for_itself_by_size_and_time(git_project, monkeypatch):
    monkeypatch.setattr(workspace_remote, "_BLOCKS_OF_A_BIG_FILE", 4)
    big = Path(git_project) / "big"
    seen = set()
    for content, when in (("a" * 5000, 1), ("b" * 5000, 1), ("b" * 5000, 2), ("b" * 6000, 2)):
        big.write_text(content)
        os.utime(big, (when, when))
        seen.add(look(git_project))
    assert len(seen) == 4  # nobody read the content, but the last time is nobody's to set


def without_full_times(folder):
    """Make an `ls` that shows no more than minutes."""
    program = folder / "ls"
    refuse = "case $* in *--full-time*|*T*) exit 1 ;; esac"
    program.write_text(f'#!/bin/sh\n{refuse}\nexec {shutil.which("ls")} "$@"\n')
    program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_where_times_are_told_to_the_minute_only_what_needs_them_is_unknown(
    git_project, tmp_path, monkeypatch
):
    (tmp_path / "bin").mkdir()
    path = without_full_times(tmp_path / "bin")
    add(Path(git_project))
    assert is_known(look(git_project, PATH=path))
    monkeypatch.setattr(workspace_remote, "_BLOCKS_OF_A_BIG_FILE", 4)
    (Path(git_project) / "big").write_text("x" * 5000)
    assert is_known(look(git_project))
    assert not is_known(look(git_project, PATH=path))


@pytest.mark.parametrize("where", ["/", "/no/such/folder"])
def test_where_there_is_no_repository_there_is_none(where):
    assert look(where) == ""


def test_a_folder_below_sees_the_same(git_project):
    (Path(git_project) / "below").mkdir()
    assert look(f"{git_project}/below") == look(git_project) != ""


@pytest.fixture
def nested(git_project, tmp_path):
    """A project with a submodule, and with another repository in it."""
    return nest(git_project, tmp_path / "inner")


def test_a_change_inside_a_submodule_or_a_nested_repository_shows(nested):
    seen = [look(nested)]
    for name in ("sub/a.txt", "nested/new.txt"):
        for text in ("one", "two"):
            (nested / name).write_text(text)
            seen.append(look(nested))
    git(nested / "sub", "commit", "--quiet", "--allow-empty", "-m", "b")
    seen.append(look(nested))
    assert all(map(is_known, seen))
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("paths", [(), ("file.txt", "d/src/**"), ("d/src/deep/*.txt",), ("d/**",)])
def test_a_change_in_a_folder_that_the_index_calls_a_repository_shows(git_project, paths):
    project = Path(git_project)
    plant(project, "d/src")
    (project / "d/src/deep").mkdir()
    seen = [look(project, *paths)]
    for name in ("a.txt", "new.txt", "deep/new.txt"):
        (project / "d/src" / name).write_text("changed")
        seen.append(look(project, *paths))
    assert all(map(is_known, seen))
    assert len({*seen}) == 4


def test_an_edit_inside_that_keeps_size_and_time_shows(nested):
    for name in ("sub/a.txt", "nested/a.txt"):
        before, times = look(nested), (nested / name).stat()
        (nested / name).write_text("b")
        os.utime(nested / name, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert is_known(before)
        assert look(nested) != before


def test_a_folder_inside_that_cannot_be_read_makes_the_files_unknown(nested):
    assert is_known(look(nested))
    dig(nested / "nested")
    assert not is_known(look(nested))


def test_which_of_the_overlooked_files_is_there_shows(git_project):
    for name in ("a", "b"):
        (Path(git_project) / name).write_text("x")
    git(git_project, "add", ".")
    git(git_project, "update-index", "--skip-worktree", "a", "b")
    (Path(git_project) / "a").unlink()
    before = look(git_project)
    (Path(git_project) / "b").rename(Path(git_project) / "a")
    assert look(git_project) != before
    assert is_known(before)


def test_a_name_that_was_told_to_be_overlooked_and_cannot_be_read_is_unknown(git_project):
    (Path(git_project) / "two\nlines").write_text("x")
    git(git_project, "add", ".")
    assert is_known(look(git_project))
    git(git_project, "update-index", "--assume-unchanged", "two\nlines")
    assert not is_known(look(git_project))


def test_a_repository_inside_that_is_too_large_makes_the_files_unknown(nested, monkeypatch):
    monkeypatch.setattr(workspace_remote.content, "MOST_ENTRIES", 1)
    assert not is_known(look(nested))


def test_a_repository_inside_with_an_odd_name_makes_the_files_unknown(git_project):
    new_repository(Path(git_project) / 'a "name"')
    assert not is_known(look(git_project))


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a trace, and what shows that it ran."""
    program, ran = tmp_path / "trap", tmp_path / "ran"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    return program, ran


def test_what_the_repository_names_is_not_run(git_project, trap):
    program, ran = trap
    git(git_project, "config", "core.fsmonitor", str(program))
    hook = Path(git_project) / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.symlink_to(program)
    edit(Path(git_project))
    assert is_known(look(git_project))
    assert not ran.exists()


@pytest.mark.parametrize("kind", ["clean", "process"])
@pytest.mark.parametrize("where", ["--local", "--worktree", "included"])
def test_a_filter_of_the_repository_makes_the_files_unknown(git_project, trap, kind, where):
    program, ran = trap
    name_filter(git_project, program, kind, where)
    edit(Path(git_project))
    assert look(git_project) == ""
    assert not ran.exists()


def test_a_filter_of_the_user_is_fine(git_project):
    (Path.home() / ".gitconfig").write_text('[filter "x"]\nclean = cat\n')
    (Path(git_project) / ".gitattributes").write_text("* filter=x\n")
    edit(Path(git_project))
    assert is_known(look(git_project))


def test_a_filter_of_settings_that_the_environment_names_is_not_run(git_project, trap, tmp_path):
    program, ran = trap
    (tmp_path / "gitconfig").write_text(f'[filter "x"]\nclean = {program}\n')
    (Path(git_project) / ".gitattributes").write_text("* filter=x\n")
    edit(Path(git_project))
    assert is_known(look(git_project, GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig")))
    assert not ran.exists()


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_program_in_a_folder_of_the_project_that_is_on_the_path_is_not_run(
    git_project, trap, shell
):
    if shutil.which(shell[0]) is None:
        pytest.skip(f"there is no {shell[0]}")
    program, ran = trap
    folder = Path(git_project) / "bin"
    folder.mkdir()
    for name in ("git", "ls", "find", "printf"):
        (folder / name).symlink_to(program)
    argv = [shutil.which(shell[0]), *shell[1:]]
    assert is_known(look(git_project, shell=argv, PATH=f"{folder}:{os.environ['PATH']}"))
    assert not ran.exists()


@pytest.mark.parametrize("first", [".", "", "bin/.."])
def test_a_git_in_the_project_is_not_run(git_project, trap, first):
    program, ran = trap
    (Path(git_project) / "git").symlink_to(program)
    argv = ["/bin/sh", "-c", workspace_remote._script(), "sh", ".", "0"]
    environ = os.environ | {"PATH": f"{first}:{os.environ['PATH']}"}
    done = subprocess.run(argv, cwd=git_project, env=environ, capture_output=True, text=True)
    assert is_known(done.stdout.strip())
    assert not ran.exists()


def test_another_repository_in_the_environment_does_not_matter(git_project, tmp_path):
    new_repository(tmp_path / "other")
    told = {"GIT_DIR": str(tmp_path / "other" / ".git"), "GIT_INDEX_FILE": "/no/such"}
    assert look(git_project, **told) == look(git_project) != ""


def test_it_is_taken_there_in_one_round_trip(warm_box, git_project):
    (Path(git_project) / "ö ' new").write_text("x")
    remote = remote_from(warm_box.url(git_project))
    before = fingerprint_there(remote, 20)
    assert is_known(before)
    edit(Path(git_project))
    assert is_known(fingerprint_there(remote, 20))
    assert fingerprint_there(remote, 20) != before


def test_where_it_cannot_be_told_there_is_none(warm_box, tmp_path):
    assert fingerprint_there(remote_from(warm_box.url(str(tmp_path))), 20) == ""
    assert fingerprint_there(remote_from(warm_box.url(str(tmp_path / "gone"))), 20) == ""
    assert fingerprint_there(remote_from("ssh://no-such-machine.invalid/"), 20) == ""


@pytest.mark.parametrize("shell", SHELLS, ids=" ".join)
def test_a_link_made_anew_is_no_change(git_project, shell):
    if shutil.which(shell[0]) is None:
        pytest.skip(f"there is no {shell[0]}")
    seen = set()
    for target in ("a\n", "a\n", "b"):
        (Path(git_project) / "link").unlink(missing_ok=True)
        (Path(git_project) / "link").symlink_to(target)
        os.utime(Path(git_project) / "link", (len(seen), 1), follow_symlinks=False)
        seen.add(look(git_project, shell=shell))
    assert len(seen) == 2
    assert all(map(is_known, seen))
