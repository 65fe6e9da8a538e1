"""Connections are shared, whoever asks first, and whatever the user's ssh_config says."""

import os
import socket
import subprocess
import sys

import pytest

from commands import until
from remote_runs import Background, asking, new_token, nothing_is_left, run, run_together, there

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


# Another one of us; its arguments: how many gates, url, script, paths of ours.
MANY = """
import sys
count, url, script, *paths = sys.argv[1:]
sys.path[:0] = paths
from notyet.run.command_runner import run_together
from notyet.run.ssh_job import remote_job
from notyet.core.remote import remote_from
place = remote_from(url)
argv = ("/bin/sh", "-c", script)
fields = {"argv": argv, "dir": place.path, "environ": {}, "timeout": 60.0}
for ended in run_together([remote_job(place, **fields) for _ in range(int(count))]):
    print(ended.code, ended.problem)
"""


@pytest.mark.parametrize("is_warm", [False, True])
def test_several_hooks_with_many_gates_find_room_on_an_sshd_as_it_comes(new_box, is_warm):
    box = new_box(options=["MaxSessions 10", "MaxStartups 10:30:100"])
    if is_warm:
        assert run(there(box, "exit 3")).code == 3
    paths = [path for path in sys.path if path]
    command = [sys.executable, "-c", MANY, "8", box.url(), "sleep 1; exit 3", *paths]
    us = [_start(command, box) for _ in range(3)]
    assert [one.communicate(timeout=60) for one in us] == [(b"3 \n" * 8, b"")] * 3
    assert len(box.masters()) <= 6


def test_who_is_dropped_because_many_connect_at_once_tries_again(new_box):
    box = new_box(options=["MaxStartups 1"])
    assert until(lambda: not box.connections())  # the one that saw that it listens
    with socket.create_connection(("127.0.0.1", box.port)) as other:
        assert other.recv(4) == b"SSH-"
        job = Background(there(box, "exit 3"))
        assert until(lambda: "MaxStartups" in box.log.read_text())
    assert [(one.code, one.problem) for one in job.wait()] == [(3, "")]


def test_one_gate_at_a_time_over_a_connection_is_enough(new_box):
    box = new_box(options=["MaxSessions 1"])
    tokens, sent = [new_token() for _ in range(6)], os.urandom(100_000)
    jobs = [there(box, "sleep 0.5; cat; exit 3", stdin=sent, token=token) for token in tokens]
    ended = run_together(jobs)
    assert [(one.code, one.problem) for one in ended] == [(3, "")] * 6
    assert {one.stdout for one in ended} == {sent}
    assert nothing_is_left(box, *tokens)


def test_what_the_users_ssh_config_does_for_people_does_not_matter(new_box, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "x")
    touch = f"touch {tmp_path}/local"
    box = new_box(
        options=["AcceptEnv *", "AllowAgentForwarding yes", "MaxSessions 1"],
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
            "SendEnv MY_*",
            "EscapeChar ~",
            "LogLevel VERBOSE",
            "Tunnel no",
        ],
    )
    said = b"~.\n~?\nsaid\n" * 3000
    text = "cat; env | grep MY_; sleep 0.3; exit 3"
    for ended in run_together([there(box, text, stdin=said) for _ in range(2)]):
        assert (ended.problem, ended.code) == ("", 3)
        assert (ended.stdout, ended.stderr) == (said, b"")
    assert not list(tmp_path.iterdir())


def _start(command, box):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        command, env=os.environ | box.environ, stdin=subprocess.DEVNULL, **pipes
    )
