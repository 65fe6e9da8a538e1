"""Connections are shared, whoever asks first, and whatever the user's ssh_config says."""

import os
import shutil
import subprocess

import pytest

from remote_runs import asking, new_token, nothing_is_left, run, run_together, there

pytestmark = pytest.mark.rule("M1")


def test_processes_that_ask_at_the_same_time_do_not_disturb_each_other(new_box):
    box = new_box()
    tokens = [new_token() for _ in range(4)]
    us = [_start(asking(box, token, "exit 3"), box) for token in tokens]
    assert [one.communicate(timeout=60) for one in us] == [(b"3 \n", b"")] * 4
    assert nothing_is_left(box, *tokens)
    logged_in = box.log.read_text().count("Accepted")
    ended = run_together([there(box, "exit 4") for _ in range(4)])
    assert [one.code for one in ended] == [4] * 4
    assert box.log.read_text().count("Accepted") == logged_in  # one of theirs is used


def test_a_connection_outlives_the_process_that_made_it_and_is_used_again(new_box):
    box = new_box()
    for _ in range(2):
        us = _start(asking(box, new_token(), "exit 3"), box)
        assert us.communicate(timeout=30) == (b"3 \n", b"")
    assert len(box.masters()) == 1
    assert box.log.read_text().count("Accepted publickey") <= 1


def test_what_the_users_ssh_config_does_for_people_does_not_matter(new_box, tmp_path):
    touch = f"touch {tmp_path}/local"
    box = new_box(
        options=["AcceptEnv *", "AllowAgentForwarding yes"],
        client=[
            "ControlMaster auto",
            f"ControlPath {tmp_path}/theirs",
            "ControlPersist 5",
            "RequestTTY force",
            "RemoteCommand echo theirs",
            "PermitLocalCommand yes",
            f"LocalCommand {touch}",
            "ForwardAgent yes",
            "ForwardX11 yes",
            "RemoteForward 1 127.0.0.1:1",  # a port that only root may have: it would fail
            "ExitOnForwardFailure yes",
            "SetEnv THEIRS=theirs",
            "SessionType none",
            "StdinNull yes",
            "ForkAfterAuthentication yes",
            "EscapeChar ~",
            "LogLevel VERBOSE",
            "Tunnel no",
        ],
    )
    ended = run(there(box, "cat; exit 3", stdin=b"~.\n~?\nsaid\n" * 3000))
    assert (ended.problem, ended.code) == ("", 3)
    assert (ended.stdout, ended.stderr) == (b"~.\n~?\nsaid\n" * 3000, b"")
    assert not list(tmp_path.iterdir())


def test_sockets_that_somebody_removed_are_no_hindrance(new_box):
    box = new_box()
    assert run(there(box, "exit 3")).code == 3
    shutil.rmtree(box.runtime)
    os.mkdir(box.runtime, 0o700)
    assert run(there(box, "exit 4")).code == 4


def test_the_folder_of_the_sockets_is_private(new_box):
    box = new_box()
    assert run(there(box, "exit 3")).code == 3
    found = [os.path.join(root, name) for root, _, names in os.walk(box.runtime) for name in names]
    assert found
    for path in {os.path.dirname(path) for path in found}:
        assert os.stat(path).st_mode & 0o077 == 0


def _start(command, box):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        command, env=os.environ | box.environ, stdin=subprocess.DEVNULL, **pipes
    )
