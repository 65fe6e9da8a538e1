"""When it is the connection, or the machine, that fails: a problem that names it, and in time."""

import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from commands import ENVIRON
from notyet.run.spawn import Job
from remote_runs import Upload, new_token, nothing_is_left, run, run_together, there
from sshd import is_gone

pytestmark = pytest.mark.rule("M3")


def is_problem_of(ended, *words):
    """Tell whether it is a problem of the host, and of no gate."""
    assert ended.code is None
    assert not ended.timed_out
    assert "box" in ended.problem
    said = f"{ended.problem} {ended.advice}"
    for word in words:
        assert word.lower() in said.lower(), said
    assert "\n" not in said
    return True


def signal_all(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):  # one may go with another
            os.kill(pid, number)


def test_an_unknown_host_key_is_a_problem_that_says_what_to_do(new_box):
    box = new_box()
    (box.folder / "known_hosts").write_text("")
    assert is_problem_of(run(there(box, "exit 2")), "host key", "ssh box")
    assert (box.folder / "known_hosts").read_text() == ""  # never learned without a person


def test_a_changed_host_key_is_a_problem(new_box):
    box = new_box()
    known = (box.folder / "known_hosts").read_text().split()
    other = (box.folder / "id.pub").read_text().split()[1]
    (box.folder / "known_hosts").write_text(f"{known[0]} {known[1]} {other}\n")
    assert is_problem_of(run(there(box, "exit 2")), "host key", "changed")


def test_a_key_that_is_not_allowed_is_a_problem(new_box):
    box = new_box()
    (box.folder / "id.pub").write_text("")
    assert is_problem_of(run(there(box, "exit 2")), "permission denied")


def test_an_unknown_name_is_a_problem(box, monkeypatch):
    name = f"no-such-{secrets.token_hex(4)}.invalid"
    config = box.config_with("unknown", "Host box", f"  HostName {name}")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", config)
    assert is_problem_of(run(there(box, "exit 2")), name)


def test_a_configuration_that_ssh_cannot_read_is_a_problem(box, monkeypatch):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", box.config_with("broken", "NoSuchOption yes"))
    assert is_problem_of(run(there(box, "exit 2")), "broken", "configuration")


def test_a_machine_without_ssh_says_so(box, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert is_problem_of(run(there(box, "exit 2")), "ssh")


@pytest.mark.rule("M2")
@pytest.mark.parametrize("says", [b"SSH-2.0-Slow\r\n"])
def test_a_host_that_answers_nothing_is_waited_for_no_longer_than_the_gate(box, monkeypatch, says):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_accept, args=(server, says), daemon=True).start()
        port = server.getsockname()[1]
        monkeypatch.setenv(
            "NOTYET_SSH_CONFIG", box.config_with("mute", "Host box", f"  Port {port}")
        )
        started = time.monotonic()
        here = Job(argv=("true",), dir=".", environ=ENVIRON)
        ended, other = run_together([there(box, "exit 2", timeout=1.5), here])
        assert time.monotonic() - started < 20
        assert other.code == 0
    assert ended.code is None
    assert ended.timed_out or "box" in ended.problem
    assert nothing_is_left(box)
    assert is_gone(box.clients)  # nor does anybody go on connecting


def _accept(server, says):
    kept = []
    try:
        while True:
            peer, _ = server.accept()
            peer.sendall(says)
            kept.append(peer)
    except OSError:
        for peer in kept:
            peer.close()


def test_a_connection_that_went_dead_unnoticed_is_given_up_for_a_new_one(new_box):
    box = new_box()
    assert run(there(box, "exit 2")).code == 2
    serving = box.connections()
    signal_all(serving, signal.SIGSTOP)
    try:
        assert run(there(box, "exit 3", timeout=1.0)).code is None
        ended = run(there(box, "exit 4", timeout=20.0))
        assert (ended.problem, ended.code) == ("", 4)
    finally:
        signal_all(serving, signal.SIGKILL)


@pytest.mark.rule("M1")
def test_a_machine_behind_another_is_reached(new_box):
    first = new_box()
    box = new_box(through=first)
    token = new_token()
    ended = run(there(box, "cat; exit 6", stdin=b"x" * 40_000, token=token))
    assert (ended.problem, ended.code, ended.stdout) == ("", 6, b"x" * 40_000)
    assert nothing_is_left(box, token)


can_mount = (
    os.geteuid() == 0
    and not subprocess.run(
        ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True
    ).returncode
)


@pytest.mark.skipif(not can_mount, reason="a full disk needs root, who may mount a small one")
@pytest.mark.parametrize("what", ["payload", "both"])
def test_a_full_disk_is_a_problem_that_names_the_host(new_box, what):
    box = new_box(tmp_size="64k")
    token = new_token()
    large = os.urandom(1_000_000)
    uploads = [] if what == "payload" else [Upload(name="transcript.jsonl", content=large)]
    stdin = b"{}" if what == "transcript" else large
    ended = run(there(box, "cat; exit 2", stdin=stdin, token=token, uploads=uploads))
    assert is_problem_of(ended, "room")
    assert nothing_is_left(box, token)
    assert run(there(box, "cat; exit 2", stdin=b"{}")).code == 2  # small ones need no disk


@pytest.mark.skipif(not can_mount, reason="a full disk needs root, who may mount a small one")
def test_a_disk_that_a_gate_fills_up_is_empty_after(new_box):
    box = new_box(tmp_size="200k")
    token = new_token()
    upload = Upload(name="transcript.jsonl", content=b"x")
    text = 'cat /dev/zero > "$0"; exit 2'
    path = f"/tmp/notyet-{token}/own"  # noqa: S108  # there
    ended = run(there(box, "/bin/sh", "-c", text, path, token=token, uploads=[upload]))
    assert (ended.problem, ended.code) == ("", 2)
    assert nothing_is_left(box, token)


def test_a_folder_that_existed_before_us_is_not_used(box):
    token = new_token()
    folder = box.tmp() / f"notyet-{token}"
    folder.mkdir()
    try:
        upload = Upload(name="transcript.jsonl", content=b"x")
        ended = run(there(box, "exit 0", token=token, uploads=[upload]))
        assert is_problem_of(ended)
        assert not list(folder.iterdir())
    finally:
        if folder.exists():
            folder.rmdir()
