"""A user without rights gets a baseline at the original path, too."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import notyet

PYTHON = next((p for p in ("/usr/bin/python3", "/usr/local/bin/python3") if os.path.exists(p)), "")
NOBODY = 65_534
_RUN = """
import os, subprocess, sys, time
from pathlib import Path
from notyet.gates.baseline import run_on
from notyet.git.snapshot import take
base = Path(sys.argv[1])
root = base / "project"
(root / "data").mkdir(parents=True)
(root / "data" / "a").write_text("a")
(root / ".gitignore").write_text("data/")
(root / "file.txt").write_text("one")
subprocess.run(["git", "init", "-q"], cwd=root, check=True)
time.sleep(0.05)
snapshot = take(str(root), str(base / "snapshot"), 30.0)
(root / "file.txt").write_text("broken")
line = f"cat {root}/file.txt; id -u; echo b > data/a; cat data/a"
line += f"; git add . || echo refused; umount {root}"
run = run_on(snapshot, ["sh", "-c", line], dir=str(root), environ=os.environ, timeout=60,
             scratch=str(base / "scratch"))
print([run.place, run.stdout, run.refused], (root / "data" / "a").read_text(),
      os.listdir(base / "scratch"), run.code != 0)
"""


def _can_run():
    if sys.platform != "linux" or os.geteuid() != 0:
        return "it takes root to become another user"
    if shutil.which("setpriv") is None or not PYTHON:
        return "there is no setpriv, or no Python for all users"
    asks = "import sys, notyet; sys.exit(sys.version_info < (3, 11))"
    tried = subprocess.run(_as_nobody("-c", asks), env=_environ(), capture_output=True, check=False)
    if tried.returncode:
        return "another user cannot read this installation"
    unshare = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10020000) != 0)"
    tried = subprocess.run(_as_nobody("-c", unshare), capture_output=True, check=False)
    return "the system allows no user namespace" if tried.returncode else ""


def _as_nobody(*argv):
    who = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    return ["setpriv", *who, PYTHON, "-P", *argv]


def _environ():
    return {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(notyet.__file__).parent.parent)}


def test_a_user_without_rights_runs_at_the_original_path():
    reason = _can_run()
    if reason:
        pytest.skip(reason)
    base = Path(tempfile.mkdtemp(prefix="notyet-test-"))
    try:
        os.chown(base, NOBODY, NOBODY)
        base.chmod(stat.S_IRWXU)
        environ = {**_environ(), "HOME": str(base)}
        argv = _as_nobody("-c", _RUN, str(base))
        ended = subprocess.run(argv, env=environ, capture_output=True, text=True, cwd="/")
        printed = f"one{NOBODY}\nb\nrefused\n"
        expected = f"{['the original path', printed, '']} a [] True\n"
        assert ended.stdout == expected, ended.stderr
    finally:
        shutil.rmtree(base)
