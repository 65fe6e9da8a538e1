"""Replacing a file: with its mode and owner, and never readable for others in between."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from notyet.install.change import losses, replace_file

SOURCE = str(Path(sys.modules["notyet"].__file__).parents[1])
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")

# Dies while it writes, as at kill -9, and leaves behind what there is then.
KILLED = """
import os, sys
from notyet.install import change as replacing
os.umask(0o022)
os.fsync = lambda descriptor: os._exit(9)
replacing.replace_file(sys.argv[1], b"secret" * 9999)
"""


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def in_child(code, *args):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_a_new_file_gets_the_usual_mode(tmp_path):
    before = os.umask(0o027)
    try:
        replace_file(str(tmp_path / "a"), b"x")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a") == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o666])
def test_the_mode_stays(tmp_path, mode):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace_file(str(path), b"new")
    assert (mode_of(path), path.read_bytes()) == (mode, b"new")


def test_what_is_being_written_is_for_its_readers_only_from_the_first_byte(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen = in_child(
        "import os, sys\n"
        "from notyet.install import change as replacing\n"
        "os.umask(0)\n"
        "real = os.fchmod\n"
        "def fchmod(descriptor, mode):\n"
        "    print(oct(os.fstat(descriptor).st_mode & 0o777), os.fstat(descriptor).st_size > 0)\n"
        "    real(descriptor, mode)\n"
        "os.fchmod = fchmod\n"
        "replacing.replace_file(sys.argv[1], b'x' * 99)\n"
        "replacing.replace_file(sys.argv[1] + 'new', b'x' * 99)\n",
        path,
    )
    assert seen.stdout == "0o600 True\n0o600 True\n", seen.stderr
    assert (mode_of(path), mode_of(f"{path}new")) == (0o600, 0o666)


def test_what_a_killed_one_left_behind_is_private_and_goes_with_the_next_writing(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    assert in_child(KILLED, path).returncode == 9
    (left,) = tmp_path.glob(".notyet-*.tmp")
    assert mode_of(left) == 0o600
    alive = tmp_path / f".notyet-{os.getpid()}-1.tmp"
    others = tmp_path / ".notyet-1-1.tmp"
    strange = [tmp_path / f".notyet-{name}.tmp" for name in ("x", "9" * 30)]
    for file in (alive, others, *strange, tmp_path / ".notyet-mine"):
        file.touch()
    replace_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert {file.name for file in tmp_path.iterdir()} == {
        "a",
        ".notyet-mine",
        alive.name,
        others.name,
    }


AS_NOBODY = """
import os, sys
from notyet.install.change import losses, replace_file
os.setgroups([int(group) for group in sys.argv[2].split()])
os.setgid(65534)
os.setuid(65534)
for said in losses(sys.argv[1]):
    print(said.removeprefix(sys.argv[1]))
replace_file(sys.argv[1], b"new")
"""


def shared(folder):
    """Make a file of another user, in a folder where everybody may write."""
    folder.chmod(0o777)
    for above in folder.parents[:3]:
        above.chmod(above.stat().st_mode | 0o011)
    path = folder / "a"
    path.write_bytes(b"old")
    os.chown(path, 1, 1234)
    path.chmod(0o664)
    return path


@needs_root
def test_the_group_stays_though_the_owner_cannot(tmp_path):
    path = shared(tmp_path)
    done = in_child(AS_NOBODY, path, "1234")
    assert done.stdout == " belongs to another user, and will belong to you\n", done.stderr
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode_of(path)) == (65534, 1234, 0o664)


@needs_root
def test_where_the_group_cannot_stay_no_other_group_gets_its_rights(tmp_path):
    path = shared(tmp_path)
    done = in_child(AS_NOBODY, path, "")
    assert "its group loses access" in done.stdout, done.stderr
    found = path.stat()
    assert (found.st_uid, found.st_gid, mode_of(path)) == (65534, 65534, 0o604)


def test_what_cannot_be_kept_is_said(tmp_path):
    path = tmp_path / "a"
    assert list(losses(str(path))) == []
    path.write_bytes(b"old")
    assert list(losses(str(path))) == []
    path.chmod(0o444)
    os.link(path, tmp_path / "b")
    read_only, linked = losses(str(path))
    assert "stays read-only" in read_only
    assert "hard links" in linked
