"""Snapshots hold the files as they are, and leave the user's repository as it was."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import git
from notyet.git import run as unknown
from notyet.git import snapshot as snapshots
from notyet.git.snapshot import Change, Unknown, take

AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def project(git_project):
    return Path(git_project)


@pytest.fixture
def taken(project, tmp_path):
    """Take snapshots of the project, and assert that nothing of its repository changes."""
    numbers = iter(range(99))

    def take_one(root=project):
        before = repository(root)
        try:
            return take(str(root), str(tmp_path / f"snapshot{next(numbers)}"), 30.0)
        finally:
            assert repository(root) == before

    return take_one


def repository(root):
    """Return the content of all files below the git folders of a work tree."""
    folders = [Path(printed(root, "rev-parse", f"--git-{kind}dir")) for kind in ("", "common-")]
    return {
        path: path.read_bytes()
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.is_file()
    }


def printed(root, *args):
    ended = subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True)
    return ended.stdout.strip()


def why(root, tmp_path, patience=30.0):
    folder = tmp_path / "refused"
    with pytest.raises(Unknown) as caught:
        take(str(root), str(folder), patience)
    assert not folder.exists()
    return caught.value.reason


def files(snapshot):
    told = snapshot.git("ls-tree", "-r", "--name-only", "-z", snapshot.tree)
    return sorted(os.fsdecode(told).split("\0")[:-1])


def below(folder):
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


def test_an_unchanged_tree_is_the_tree_of_its_commit(project, taken):
    snapshot = taken()
    assert snapshot.tree == printed(project, "rev-parse", "HEAD^{tree}")
    assert snapshot.head == printed(project, "rev-parse", "HEAD")
    assert below(Path(snapshot.objects)) == ["info/alternates"]
    assert sorted(os.listdir(os.path.dirname(snapshot.objects))) == [
        "ignored",
        "listed",
        "objects",
    ]


def test_a_snapshot_has_changed_staged_new_and_deleted_files(project, taken):
    for name in ("staged", "deleted", "dropped", "kept"):
        (project / name).write_text(name)
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    (project / "file.txt").write_text("changed\n")
    (project / "staged").write_text("staged again")
    git(project, "add", "staged")
    (project / "staged").write_text("and once more")
    (project / "deleted").unlink()
    git(project, "rm", "-q", "--cached", "dropped")
    (project / "new").mkdir()
    (project / "new" / "x.txt").write_text("x")
    (project / ".gitignore").write_text("*.log\n")
    (project / "a.log").write_text("ignored")
    snapshot = taken()
    assert files(snapshot) == [".gitignore", "dropped", "file.txt", "kept", "new/x.txt", "staged"]
    assert snapshot.ignored() == ["a.log"]
    assert snapshot.text("staged") == "and once more"
    assert snapshot.text("file.txt") == "changed\n"
    assert snapshot.text("deleted") is None


def test_a_change_in_the_same_second_and_of_the_same_size_is_seen(project, taken):
    about = (project / "file.txt").stat()
    (project / "file.txt").write_text("two\n")
    os.utime(project / "file.txt", ns=(about.st_atime_ns, about.st_mtime_ns))
    assert taken().text("file.txt") == "two\n"


def test_names_and_kinds_of_files_survive(project, taken, tmp_path):
    odd = os.fsdecode(b"\xff odd\nname")
    (project / odd).write_text("odd")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("nowhere")
    os.mkfifo(project / "pipe")
    snapshot = taken()
    into = tmp_path / "into"
    into.mkdir()
    snapshot.checkout(str(into))
    assert below(into) == sorted(["file.txt", "link", odd, "run.sh"])
    assert os.access(into / "run.sh", os.X_OK)
    assert not os.access(into / "file.txt", os.X_OK)
    assert os.readlink(into / "link") == "nowhere"
    assert sorted(os.listdir(tmp_path)) == ["into", "project", "snapshot0"]


def test_a_file_can_become_a_folder_and_a_folder_a_link(project, taken):
    (project / "folder").mkdir()
    (project / "folder" / "a").write_text("a")
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    shutil.rmtree(project / "folder")
    (project / "folder").symlink_to("elsewhere")
    (project / "file.txt").unlink()
    (project / "file.txt").mkdir()
    (project / "file.txt" / "b").write_text("b")
    assert files(taken()) == ["file.txt/b", "folder"]


def test_a_repository_without_commits_has_a_snapshot(tmp_path, taken):
    root = tmp_path / "new"
    root.mkdir()
    git(root, "init", "--quiet")
    empty = taken(root)
    (root / "a").write_text("a")
    snapshot = taken(root)
    assert (snapshot.head, files(empty), files(snapshot)) == ("", [], ["a"])


def test_a_linked_worktree_has_a_snapshot_of_its_own(project, taken, tmp_path):
    git(project, "worktree", "add", "-q", "../linked")
    (tmp_path / "linked" / "only-here").write_text("x")
    assert files(taken(tmp_path / "linked")) == ["file.txt", "only-here"]
    assert files(taken()) == ["file.txt"]
    assert printed(project, "worktree", "list").count("\n") == 1


def test_a_split_index_is_read(project, taken):
    git(project, "config", "core.splitIndex", "true")
    (project / "b").write_text("b")
    git(project, "add", "b")
    assert list((project / ".git").glob("sharedindex.*"))
    (project / "c").write_text("c")
    assert files(taken()) == ["b", "c", "file.txt"]


def test_a_sparse_checkout_has_only_the_files_that_are_there(project, taken):
    for name in ("a", "b"):
        (project / name).mkdir()
        (project / name / "x").write_text(name)
    git(project, "add", ".")
    git(project, "commit", "-qm", "two")
    git(project, "sparse-checkout", "set", "a")
    assert files(taken()) == ["a/x", "file.txt"]
    git(project, "sparse-checkout", "reapply", "--sparse-index")
    assert files(taken()) == ["a/x", "file.txt"]


def test_files_that_git_is_told_to_overlook_are_read(project, taken):
    git(project, "update-index", "--assume-unchanged", "file.txt")
    (project / "file.txt").write_text("hidden change\n")
    assert taken().text("file.txt") == "hidden change\n"
    (project / "file.txt").unlink()
    assert files(taken()) == []


def test_a_merge_conflict_is_taken_as_the_file_is(project, taken):
    git(project, "checkout", "-qb", "other")
    (project / "file.txt").write_text("two\n")
    git(project, "commit", "-qam", "two")
    git(project, "checkout", "-q", "-")
    (project / "file.txt").write_text("three\n")
    git(project, "commit", "-qam", "three")
    with pytest.raises(subprocess.CalledProcessError):
        git(project, "merge", "other")
    assert "<<<<<<<" in taken().text("file.txt")


def test_a_lock_of_another_git_does_not_matter(project, taken):
    (project / ".git" / "index.lock").write_text("")
    (project / "new").write_text("new")
    assert files(taken()) == ["file.txt", "new"]


def test_a_shallow_clone_has_a_snapshot(project, taken, tmp_path):
    (project / "file.txt").write_text("two\n")
    git(project, "commit", "-qam", "two")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{project}", "shallow")
    (tmp_path / "shallow" / "new").write_text("new")
    assert files(taken(tmp_path / "shallow")) == ["file.txt", "new"]


def test_a_clone_that_borrows_objects_has_a_snapshot(project, taken, tmp_path):
    git(tmp_path, "clone", "-q", "--shared", str(project), "borrower")
    (tmp_path / "borrower" / "new").write_text("new")
    snapshot = taken(tmp_path / "borrower")
    assert snapshot.text("file.txt") == "one\n"


def test_a_path_with_colons_and_quotes_can_be_compared(tmp_path, taken):
    root = tmp_path / 'a:b "c"'
    root.mkdir()
    git(root, "init", "-q")
    (root / "a").write_text("a")
    first = take(str(root), str(tmp_path / 'one:"1"'), 30.0)
    (root / "a").rename(root / "b")
    second = take(str(root), str(tmp_path / 'two:"2"'), 30.0)
    assert first.diff(second) == [Change("R", "a", "b")]


def test_two_snapshots_differ_by_their_changes(project, taken):
    (project / "long.py").write_text("".join(f"line {n}\n" for n in range(50)))
    (project / "gone").write_text("gone\n")
    first = taken()
    (project / "long.py").rename(project / "moved.py")
    with (project / "moved.py").open("a") as file:
        file.write("more\n")
    (project / "gone").unlink()
    (project / "file.txt").write_text("changed\n")
    (project / "fresh").write_text("something else\n")
    assert first.diff(taken()) == [
        Change("M", "file.txt", "file.txt"),
        Change("A", "", "fresh"),
        Change("D", "gone", ""),
        Change("R", "long.py", "moved.py"),
    ]


def test_text_is_not_given_if_it_is_too_large_or_binary(project, taken):
    (project / "large").write_text("x" * 2000)
    (project / "binary").write_bytes(b"a\0b")
    (project / "latin").write_bytes(b"caf\xe9")
    snapshot = taken()
    assert snapshot.text("large", most=1000) is None
    assert snapshot.text("binary") is None
    assert snapshot.text("latin") == "caf\udce9"


def test_ignored_folders_are_named_once(project, taken):
    (project / ".gitignore").write_text("node_modules/\n*.env\n")
    for name in ("node_modules/a/b", "packages/x/node_modules/c"):
        (project / name).mkdir(parents=True)
        (project / name / "index.js").write_text("1")
    (project / "packages" / "x" / ".env").write_text("1")
    ignored = ["node_modules/", "packages/x/.env", "packages/x/node_modules/"]
    assert taken().ignored() == ignored


# Refused.


def test_there_is_none_outside_of_a_repository_or_without_git(tmp_path, project, monkeypatch):
    folder = tmp_path / "plain"
    folder.mkdir()
    assert why(folder, tmp_path) == unknown.OUTSIDE
    monkeypatch.setenv("PATH", str(project))
    assert why(project, tmp_path) == unknown.NO_GIT


def test_too_many_untracked_files_are_refused_before_any_is_stored(project, tmp_path, monkeypatch):
    monkeypatch.setattr(snapshots, "MOST_UNTRACKED", 20)
    for number in range(21):
        (project / f"{number}").write_text("x")
    monkeypatch.setattr(snapshots._Taking, "_update", lambda *_: pytest.fail("it went on"))
    assert why(project, tmp_path) == snapshots.UNTRACKED


def test_too_large_files_are_refused_before_they_are_read(project, tmp_path):
    with (project / "huge").open("wb") as file:
        file.truncate(snapshots.MOST_BYTES + 1)
    assert why(project, tmp_path) == snapshots.TOO_LARGE


def test_a_checked_out_submodule_is_refused(project, tmp_path, taken):
    git(tmp_path, "clone", "-q", str(project), "sub")
    git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../sub", "sub")
    assert why(project, tmp_path) == snapshots.SUBMODULES
    git(project, "submodule", "--quiet", "deinit", "--force", "sub")
    assert files(taken()) == [".gitmodules", "file.txt", "sub"]


def test_a_nested_repository_is_refused(project, tmp_path):
    git(tmp_path, "clone", "-q", str(project), str(project / "nested"))
    assert why(project, tmp_path) == snapshots.NESTED


def test_a_required_filter_that_cannot_run_is_refused(project, tmp_path):
    (project / ".gitattributes").write_text("*.bin filter=z\n")
    (project / "x.bin").write_text("x")
    (Path.home() / ".gitconfig").write_text('[filter "z"]\nclean = no-such-program\nrequired\n')
    assert why(project, tmp_path) == snapshots.FAILED


def test_filters_of_the_user_run_both_ways(project, tmp_path, taken):
    (project / ".gitattributes").write_text("*.bin filter=z\n")
    (project / "x.bin").write_text("big\n")
    said = '[filter "z"]\nclean = sed s/big/small/\nsmudge = sed s/small/big/\nrequired\n'
    (Path.home() / ".gitconfig").write_text(said)
    snapshot = taken()
    assert snapshot.text("x.bin") == "small\n"
    (project / ".gitattributes").unlink()  # the one of the snapshot counts
    (tmp_path / "into").mkdir()
    snapshot.checkout(str(tmp_path / "into"))
    assert (tmp_path / "into" / "x.bin").read_text() == "big\n"


def test_filters_that_the_repository_names_do_not_run(project, tmp_path, taken):
    (project / ".gitattributes").write_text("* filter=z\n")
    snapshot = taken()
    git(project, "config", "filter.z.smudge", f"touch {tmp_path}/ran; cat")
    (tmp_path / "into").mkdir()
    with pytest.raises(Unknown, match=unknown.FILTERED):
        snapshot.checkout(str(tmp_path / "into"))
    assert why(project, tmp_path) == unknown.FILTERED
    assert not (tmp_path / "ran").exists()


def test_another_work_tree_is_refused(project, tmp_path):
    git(project, "config", "core.worktree", str(tmp_path))
    assert why(project, tmp_path) == unknown.REDIRECTED


def test_hooks_and_monitors_of_the_repository_do_not_run(project, tmp_path, taken):
    hook = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    for name in ("post-checkout", "post-index-change", "fsmonitor"):
        (project / ".git" / "hooks" / name).write_text(hook)
        (project / ".git" / "hooks" / name).chmod(0o755)
    git(project, "config", "core.fsmonitor", ".git/hooks/fsmonitor")
    (project / "new").write_text("new")
    (tmp_path / "into").mkdir()
    taken().checkout(str(tmp_path / "into"))
    assert not (tmp_path / "ran").exists()


def test_nothing_is_left_when_time_runs_out(project, tmp_path):
    assert why(project, tmp_path, patience=0.0) == unknown.SLOW
    (project / ".gitattributes").write_text("* filter=z\n")
    (project / "new").write_text("new")
    (Path.home() / ".gitconfig").write_text('[filter "z"]\nclean = sleep 60\n')
    assert why(project, tmp_path, patience=1.0) == unknown.SLOW


@pytest.mark.skipif(AS_ROOT, reason="root can read every file")
def test_an_unreadable_file_is_refused(project, tmp_path):
    (project / "secret").write_text("x")
    (project / "secret").chmod(0)
    assert why(project, tmp_path) == snapshots.FAILED


def test_a_damaged_snapshot_is_refused(project, tmp_path, taken):
    (project / "new").write_text("new")
    snapshot = taken()
    shutil.rmtree(snapshot.objects)
    os.mkdir(snapshot.objects)
    (tmp_path / "into").mkdir()
    with pytest.raises(Unknown, match=snapshots.LOST):
        snapshot.checkout(str(tmp_path / "into"))


_ON_A_FULL_DISK = """
import ctypes, os, sys
from notyet.git.snapshot import Unknown, take
libc = ctypes.CDLL(None, use_errno=True)
root, disk = sys.argv[1:]
if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
    sys.exit(77)
if libc.mount(b"tmpfs", disk.encode(), b"tmpfs", 0, b"size=256k"):
    sys.exit(77)
try:
    take(root, f"{disk}/snapshot", 30.0)
except Unknown as unknown:
    print(unknown.reason, os.listdir(disk))
"""


@pytest.mark.skipif(not AS_ROOT or sys.platform != "linux", reason="it takes root and Linux")
def test_a_full_disk_is_refused_and_left_empty(project, tmp_path):
    (project / "large").write_bytes(os.urandom(1_000_000))
    (tmp_path / "disk").mkdir()
    argv = [sys.executable, "-c", _ON_A_FULL_DISK, str(project), str(tmp_path / "disk")]
    ended = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ended.returncode == 77:
        pytest.skip("the kernel refuses to mount here")
    assert ended.stdout.strip() == f"{snapshots.DISK_FULL} []", ended.stderr


def test_many_tracked_files_have_a_snapshot(tmp_path, taken):
    root = tmp_path / "many"
    root.mkdir()
    git(root, "init", "-q")
    for folder in range(20):
        (root / f"{folder}").mkdir()
        for name in range(100):
            (root / f"{folder}" / f"{name}").write_text(f"{folder} {name}")
    git(root, "add", ".")
    git(root, "commit", "-qm", "many")
    (root / "0" / "0").write_text("changed")
    shutil.rmtree(root / "1")
    snapshot = taken(root)
    assert len(files(snapshot)) == 1900
    assert snapshot.at <= time.time()


def test_settings_that_name_commands_run_none_when_snapshots_are_compared(project, tmp_path, taken):
    touch = f"touch {tmp_path}/ran; cat"
    (project / ".gitattributes").write_text("* diff=z\n")
    first = taken()
    for name in ("diff.external", "diff.z.command", "diff.z.textconv", "core.pager", "core.editor"):
        git(project, "config", name, touch)
    (project / "file.txt").write_text("two\n")
    second = taken()
    assert first.diff(second) == [Change("M", "file.txt", "file.txt")]
    assert "+two\n" in first.patch(second)
    assert not (tmp_path / "ran").exists()


def test_a_patch_has_new_changed_deleted_and_renamed_files(project, taken):
    (project / "gone.py").write_text("gone = 1\n")
    (project / "moved.py").write_text("".join(f"line {n}\n" for n in range(50)))
    first = taken()
    (project / "gone.py").unlink()
    (project / "moved.py").rename(project / "here.py")
    (project / "new.py").write_text("new = 1\n")
    (project / "file.txt").write_bytes(b"caf\xe9\n")
    (project / "binary").write_bytes(b"\0" * 100)
    patch = first.patch(taken())
    for part in ("-gone = 1\n", "+new = 1\n", "-one\n", "+caf\ufffd\n", "rename to here.py\n"):
        assert part in patch
    assert "Binary files /dev/null and b/binary differ\n" in patch
    assert first.patch(first) == ""


def test_a_patch_that_is_too_large_is_refused(project, taken):
    first = taken()
    (project / "large.txt").write_text("x\n" * 1000)
    with pytest.raises(Unknown, match=unknown.TOO_MUCH):
        first.patch(taken(), most=1000)
