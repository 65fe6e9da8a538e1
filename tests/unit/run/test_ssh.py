"""The folder for connections: only we can enter it, and nobody can put another in its place."""

import os
import tempfile
from pathlib import Path

import pytest

from notyet.run import ssh

pytestmark = pytest.mark.rule("M1")


@pytest.fixture
def short():
    with tempfile.TemporaryDirectory(prefix="ny-", dir="/tmp") as folder:
        yield Path(folder)


def test_the_folder_is_one_that_only_we_can_enter(short, monkeypatch):
    tmp_path = short  # the path of a socket must be short
    monkeypatch.setattr(ssh, "_TMP", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    runtime, home = tmp_path / "r", tmp_path / "h"
    runtime.mkdir()
    environ = {"XDG_RUNTIME_DIR": str(runtime), "HOME": str(home)}
    assert ssh.control_folder(environ) == f"{runtime}/notyet/ssh"
    os.chmod(runtime / "notyet" / "ssh", 0o755)  # noqa: S103  # which is the point
    ours = tmp_path / "t" / f"notyet-{os.geteuid()}"
    assert ssh.control_folder(environ) == str(ours)
    ours.rmdir()
    ours.symlink_to(home)
    home.mkdir(mode=0o700)
    assert ssh.control_folder(environ) == f"{home}/.cache/notyet/ssh"
    assert ssh.control_folder({"XDG_RUNTIME_DIR": "relative", "HOME": "relative"}) == ""
    assert ssh.control_folder({"HOME": f"{home}/{'long' * 20}"}) == ""
    assert ssh.control_folder({"HOME": "/etc/passwd"}) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_used_for_connections(short, monkeypatch):
    monkeypatch.setattr(ssh, "_TMP", str(short / "nowhere"))
    for part in ("", "notyet"):
        runtime = short / f"r{part}"
        (runtime / part).mkdir(parents=True)
        os.chown(runtime / part, 65534, 65534)
        for name in ("XDG_RUNTIME_DIR", "HOME"):
            found = ssh.control_folder({name: str(runtime)})
            assert bool(found) == (name == "HOME" and bool(part))


def test_a_folder_that_others_can_write_to_is_not_used_for_connections(short, monkeypatch):
    monkeypatch.setattr(ssh, "_TMP", str(short / "nowhere"))
    (short / "r").mkdir()
    assert ssh.control_folder({"XDG_RUNTIME_DIR": str(short / "r")})
    (short / "r").chmod(0o777)  # which is the point
    assert ssh.control_folder({"XDG_RUNTIME_DIR": str(short / "r")}) == ""
