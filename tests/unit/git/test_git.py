"""How git is run on the files: seldom, briefly, and without leaving anything behind."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from conftest import git
from notyet.git import fingerprint as listing
from notyet.git import fingerprint as one_look
from notyet.git import run as git_runs
from notyet.git import run as unknown
from notyet.git.fingerprint import FileSet, Fingerprinting, fingerprint, fingerprints
from process_table import children
from tree_changes import configured, edit

pytestmark = pytest.mark.rule("N1")

GIT = shutil.which("git")


@pytest.fixture
def replace_git(tmp_path, monkeypatch):
    """Put another git first on the PATH: a shell script."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put(script):
        (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    return put


@pytest.fixture
def runs(tmp_path, replace_git):
    """Return a function that tells which git commands have run since it was last asked."""
    log = tmp_path / "log"
    replace_git(f'echo "$@" >> {log}; exec {GIT} "$@"')

    def told():
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        known = ("status", "ls-files", "config", "rev-parse", "check-ignore")
        return sorted(word for line in lines for word in line.split() if word in known)

    return told


def test_one_look_is_two_git_processes(git_project, runs):
    edit(Path(git_project))
    assert fingerprint(git_project)
    assert runs() == ["ls-files", "status"]


def test_the_same_scope_is_looked_at_once(git_project, runs):
    scopes = [FileSet(git_project)] * 3 + [
        FileSet(git_project, ("a", "file.txt")),
        FileSet(git_project, ("file.txt", "a")),
    ]
    assert all(fingerprints(scopes))
    assert runs() == ["ls-files", "ls-files", "status", "status"]


def test_where_there_is_no_repository_git_is_not_run(tmp_path, runs):
    assert fingerprint(str(tmp_path)) == ""
    assert runs() == []


@pytest.mark.parametrize(
    "told",
    [
        ("filter.x.smudge", "cat"),
        ("include.path", "nowhere"),
        ("Extensions.worktreeConfig", "true"),
    ],
)
def test_a_repository_that_may_name_commands_is_asked_first(git_project, runs, told):
    configured(*told)(git_project)
    runs()
    assert fingerprint(git_project)
    assert runs() == ["config", "ls-files", "rev-parse", "status"]


def test_only_a_folder_in_which_git_knows_no_file_takes_one_more(git_project, runs):
    for name in ("known", "new"):
        (Path(git_project) / name).mkdir()
        (Path(git_project) / name / "file").touch()
    git(git_project, "add", "known")
    runs()
    assert all(fingerprints([FileSet(f"{git_project}/known"), FileSet(git_project)]))
    assert runs() == ["ls-files", "status"]
    assert all(fingerprints([FileSet(f"{git_project}/new"), FileSet(git_project)]))
    assert runs() == ["check-ignore", "ls-files", "status"]


def test_more_scopes_than_run_at_once_are_all_told(git_project, monkeypatch):
    monkeypatch.setattr(git_runs, "_AT_ONCE", 2)
    scopes = [FileSet(git_project, (f"{number}", "file.txt")) for number in range(7)]
    assert all(fingerprints(scopes))


def living(groups):
    """Return the processes of these groups that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _parent, group, *_ = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found += [stat] if group in groups and state != "Z" else []
    return found


HUNG = {
    "says nothing": "exec sleep 600",
    "is done and stays": "exec >&-; exec sleep 600",
    "has a child that hangs": "sleep 600 & wait",
    "ignores what ends it": "trap '' TERM INT HUP; while :; do sleep 600; done",
}


@pytest.mark.parametrize("script", HUNG.values(), ids=HUNG)
def test_a_git_that_hangs_is_ended_with_all_it_started(git_project, tmp_path, replace_git, script):
    pids = tmp_path / "pids"
    replace_git(f"echo $$ >> {pids}\n{script}")
    seen = ""
    patience, before = 0.2, children()
    while not pids.exists():  # not even started, on a busy machine
        seen = fingerprint(git_project, patience)
        patience *= 2
    assert seen == ""
    groups = {*pids.read_text().split()}
    while living(groups):  # a child's end takes a moment
        time.sleep(0.01)
    assert children() <= before


def test_an_unfinished_look_leaves_no_git_behind(git_project, tmp_path, replace_git):
    ran = tmp_path / "ran"
    replace_git(f"touch {ran}; exec sleep 600")
    before = children()
    looking = Fingerprinting([FileSet(git_project)], 60.0)
    while not ran.exists():
        time.sleep(0.01)
    looking.leave()
    looking.leave()
    assert children() <= before
    reasons = {}
    assert looking.finish(reasons) == [""]
    assert reasons == {}


def test_a_git_that_waits_for_a_pipe_in_the_project_is_ended(git_project):
    (Path(git_project) / "d").mkdir()
    (Path(git_project) / "d" / "file").touch()
    git(git_project, "add", ".")
    (Path(git_project) / "d" / "new").touch()
    os.mkfifo(Path(git_project) / "d" / ".gitignore")
    reasons, before = {}, children()
    assert fingerprints([FileSet(git_project)], 1.0, reasons) == [""]
    assert reasons == {FileSet(git_project): unknown.SLOW}
    assert children() <= before


def test_a_git_that_never_stops_talking_is_ended(git_project, replace_git, monkeypatch):
    monkeypatch.setattr(one_look, "_MOST_STATUS", 100_000)
    monkeypatch.setattr(listing, "_MOST_LISTED", 100_000)
    replace_git("exec yes")
    before = children()
    assert fingerprint(git_project) == ""
    assert children() <= before


def test_more_untracked_files_than_can_be_told_make_the_files_unknown(git_project, monkeypatch):
    folder = Path(git_project) / "many"
    folder.mkdir()
    for number in range(500):
        (folder / f"{number}.txt").touch()
    assert fingerprint(git_project) != ""
    monkeypatch.setattr(one_look, "_MOST_STATUS", 1_000)
    assert fingerprint(git_project) == ""


@pytest.mark.parametrize("script", ["exit 1", "kill -9 $$", f'{GIT} "$@"; exit 3'])
def test_a_git_that_fails_tells_nothing(git_project, replace_git, script):
    replace_git(script)
    assert fingerprint(git_project) == ""


def test_a_repository_of_another_user_is_unknown(git_project, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert fingerprint(git_project) != ""
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert fingerprint(git_project) == ""


def test_a_program_that_does_not_wait_for_children_is_told_nothing(git_project):
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert fingerprint(git_project) == ""
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert fingerprint(git_project) != ""


def test_no_descriptor_is_left_open(git_project, replace_git):
    fingerprint(git_project)
    before = os.listdir("/dev/fd")
    fingerprint(git_project)
    fingerprints([FileSet(git_project, ("nul\0",))])
    replace_git("exec sleep 600")
    fingerprint(git_project, 0.2)
    assert len(os.listdir("/dev/fd")) == len(before)
