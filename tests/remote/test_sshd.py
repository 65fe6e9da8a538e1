"""The sshd of the tests does what it promises."""

import os
import subprocess

import pytest

from sshd import is_gone


def test_a_command_runs_there_with_a_home_of_its_own(box):
    done = box.ssh("printf '%s' \"$HOME\"; printf oops >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, os.fsencode(box.home), b"oops")


def test_what_a_session_starts_is_found_until_it_ends(box):
    box.ssh("setsid sleep 60 </dev/null >/dev/null 2>&1 &")
    (pid,) = box.processes()
    assert box.processes()[pid] == "sleep 60"
    os.kill(pid, 9)
    assert is_gone(box.processes)


def test_a_dropped_connection_ends_the_client(box):
    argv = ["ssh", "-F", box.config, "-o", "BatchMode=yes", "box", "echo up; sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        assert client.stdout.readline() == b"up\n"
        assert box.drop_connections() >= 1
        assert client.wait(20) == 255
    for pid in box.processes():
        os.kill(pid, 9)
    assert is_gone(box.processes)


def test_a_stopped_sshd_refuses_and_comes_back_on_its_port(new_box):
    box = new_box()
    port = box.port
    box.stop()
    assert b"refused" in box.ssh("true").stderr
    box.start()
    assert (box.port, box.ssh("true").returncode) == (port, 0)


def test_connections_end_with_the_box(sshd):
    with sshd.as_box():
        path = f"ControlPath={sshd.runtime}/s"
        options = ["-o", path, "-o", "ControlMaster=auto", "-o", "ControlPersist=60"]
        assert sshd.ssh("true", *options).returncode == 0
        assert len(sshd.clients()) == 1
    assert is_gone(sshd.connections)


def test_a_login_shell_is_asked(new_box):
    box = new_box(login="zsh", rc={".zshenv": "echo welcome\n"})
    assert box.ssh("echo hello $ZSH_NAME").stdout == b"welcome\nhello zsh\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_tmp_of_its_own_can_be_full(new_box):
    box = new_box(tmp_size="64k")
    done = box.ssh("head -c 100000 /dev/zero > /tmp/large")
    assert b"No space left" in done.stderr
    assert [path.name for path in box.tmp().iterdir()].count("large") == 1


def test_it_is_reached_through_another(new_box):
    first = new_box()
    behind = new_box(through=first)
    assert behind.ssh("echo hello").stdout == b"hello\n"
    assert "Accepted" in first.log.read_text()
