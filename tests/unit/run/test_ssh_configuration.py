"""A connection is shared only while the configuration of ssh stays as it was."""

import os
import pwd
from pathlib import Path

import pytest

from commands import run
from notyet.core.remote import remote_from
from notyet.run import ssh
from remote_runs import there

pytestmark = pytest.mark.rule("M1")

BOX = remote_from("ssh://dev@box:22/srv")


@pytest.mark.rule("M5")
def test_a_changed_configuration_of_ssh_may_mean_another_machine(tmp_path, monkeypatch):
    def name(config):
        monkeypatch.setenv("NOTYET_SSH_CONFIG", config)
        return ssh.socket_name(BOX)

    told = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        (folder / "config").write_text("Host box\n")
        monkeypatch.chdir(folder)
        told.append(name("config"))
        assert name(str(folder / "config")) == told[-1]
    assert told[0] != told[1]
    (tmp_path / "b" / "config").write_text("Host box\nPort 1\n")
    assert name("config") not in told
    # Without a file of its own, ssh reads those of the user that is in the passwd file.
    monkeypatch.setattr(ssh, "_own_files", lambda: (str(tmp_path / "a" / "config"),))
    before = name("")
    (tmp_path / "a" / "config").unlink()
    assert name("") != before


@pytest.mark.rule("M5")
def test_a_name_that_means_another_machine_now_is_not_the_old_one(box, tmp_path, monkeypatch):
    config = tmp_path / "config"
    config.write_text(Path(box.config).read_text())
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))
    assert run(there(box, "exit 3")).code == 3
    config.write_text(config.read_text().replace(f"Port {box.port}", "Port 1"))
    assert "refused" in run(there(box, "exit 3")).problem


def test_ssh_reads_its_configuration_in_the_home_that_the_system_knows():
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert ssh._own_files() == (f"{home}/.ssh/config", "/etc/ssh/ssh_config")


def test_a_user_that_the_system_does_not_know_has_no_configuration(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert ssh._own_files() == ("/etc/ssh/ssh_config",)
