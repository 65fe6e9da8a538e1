"""Connections that are shared: private, made once, used again, and given up when they are dead."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from commands import run, run_together
from notyet.core.remote import remote_from
from notyet.run import ssh_connection as ssh
from notyet.run.ssh_connection import advice_for, no_connection
from remote_runs import there

pytestmark = pytest.mark.rule("M1", "M2")

BOX = remote_from("ssh://dev@box:22/srv")


def folder_of(box):
    return os.path.join(box.runtime, "notyet", "ssh")


def test_a_connection_is_made_once_and_used_again(box):
    for code in (3, 4):
        assert run(there(box, f"exit {code}")).code == code
    assert len(box.masters()) == 1
    assert stat.S_IMODE(os.lstat(folder_of(box)).st_mode) == 0o700


def test_several_that_connect_at_once_do_not_get_into_each_others_way(box):
    ended = []
    threads = [
        threading.Thread(target=lambda: ended.append(run(there(box, "exit 3")))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.code for one in ended] == [3] * 4, [one.problem for one in ended]
    assert len(os.listdir(folder_of(box))) == 1


def test_a_socket_on_which_too_many_ask_is_listened_on(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "busy"))
        server.listen(0)
        asking = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for one in asking:
            one.setblocking(False)  # its only form
            one.connect_ex(str(tmp_path / "busy"))
        assert ssh.listens(str(tmp_path / "busy"))
        for one in asking:
            one.close()
    assert not ssh.listens(str(tmp_path / "busy"))


def test_ssh_is_told_what_the_workspace_says(monkeypatch):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", "/c")
    argv = ssh.connect_argv(BOX, "/x/100%", 0.2)
    assert argv[-3:] == ("--", "box", "exit")
    pairs = set(pairwise(argv))
    assert {("-S", "/x/100%%"), ("-F", "/c"), ("-l", "dev"), ("-p", "22")} <= pairs
    assert ("-o", "ConnectTimeout=1") in pairs
    monkeypatch.delenv("NOTYET_SSH_CONFIG")
    assert not {"-F", "-l", "-p"} & {*ssh.session_argv(remote_from("ssh://box/"), "/x", "exit")}


def test_other_machines_and_configurations_have_other_connections(monkeypatch):
    names = set()
    for config in ("", "/c"):
        monkeypatch.setenv("NOTYET_SSH_CONFIG", config)
        for url in ("ssh://box/a", "ssh://box/b", "ssh://dev@box/a", "ssh://box:22/a"):
            names.add(ssh.socket_name(remote_from(url)))
    assert len(names) == 3 * 2


WORDS = {
    "Host key verification failed.": "the host key of box is not known here; connect once with: "
    "ssh -p 22 dev@box",
    "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.": (
        "the host key of box is not the one that is known; if it was changed on purpose, "
        "remove the old one with `ssh-keygen -R`, and connect once with: ssh -p 22 dev@box"
    ),
    "dev@box: Permission denied (publickey).": "box refused the login: dev@box: Permission denied "
    "(publickey); a key or an agent is needed, as for: ssh -p 22 dev@box",
    "ssh: Could not resolve hostname box: Name or service not known": "box is not known: "
    "ssh: Could not resolve hostname box: Name or service not known; try: ssh -p 22 dev@box",
    "ssh: connect to host box port 22: Connection refused": "there is no connection to box: "
    "ssh: connect to host box port 22: Connection refused; try: ssh -p 22 dev@box",
    "/c: line 1: Bad option: x\n/c: terminating, 1 bad configuration options": "there is no "
    "connection to box: /c: line 1: Bad option: x; try: ssh -p 22 dev@box",
    "": "there is no connection to box: ssh did not say why; try: ssh -p 22 dev@box",
}


@pytest.mark.rule("M3")
@pytest.mark.parametrize("said", WORDS)
def test_what_ssh_says_becomes_one_sentence_and_what_to_do_another(said):
    words = no_connection(BOX, said)
    assert f"{words}; {advice_for(BOX, words)}" == WORDS[said]
    assert "ssh -p" not in words  # which an agent reads


# As `notyet hook` does it: all orphans are ended, but not what holds the connection.
HOOK = """
import sys
sys.path[:0] = sys.argv[2:]
from commands import run
from notyet.run.groups import adopt_orphans, sweep
from notyet.run.ssh_job import run_there
from notyet.core.remote import remote_from
assert adopt_orphans()
print(run_there(remote_from(sys.argv[1]), ("sh", "-c", "exit 3"), patience=30).code)
sweep()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt orphans")
@pytest.mark.parametrize("jumps", [False, True])
def test_a_hook_that_connects_leaves_the_connection_and_nothing_else(new_box, jumps):
    first = new_box()
    box = new_box(through=first) if jumps else first
    paths = [path for path in sys.path if path]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", HOOK, box.url(), *paths],
            capture_output=True,
            timeout=60,
            env=os.environ | box.environ,
        )
        assert (done.stdout, done.stderr) == (b"3\n", b"")
    assert run_together([there(box, "exit 4")])[0].code == 4
    assert len([line for line in box.masters().values() if " -W " not in line]) == 1


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
def test_a_folder_of_another_user_is_not_used_for_connections(short, monkeypatch):
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


@pytest.mark.rule("M5")
def test_a_name_that_means_another_machine_now_is_not_the_old_one(box, tmp_path, monkeypatch):
    config = tmp_path / "config"
    config.write_text(Path(box.config).read_text())
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))
    assert run(there(box, "exit 3")).code == 3
    config.write_text(config.read_text().replace(f"Port {box.port}", "Port 1"))
    assert "refused" in run(there(box, "exit 3")).problem


@pytest.fixture
def silent(box, tmp_path, monkeypatch):
    """Return where each try to connect leaves a line; nobody ever answers."""
    tries = tmp_path / "tries"
    tries.write_text("")
    config = tmp_path / "silent"
    config.write_text(f"Host box\n  ProxyCommand sh -c 'echo >> {tries}; exec sleep 100'\n")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", str(config))
    monkeypatch.setattr(ssh, "_LIFE", 600.0)  # however slow this machine is
    return tries


def count(tries):
    return len(tries.read_text().splitlines())


@pytest.mark.rule("M2", "M3")
def test_who_comes_next_hears_the_same_words_without_waiting(box, silent):
    first = run(there(box, "exit 2", timeout=0.8))
    assert "there was no connection to box within 0." in first.problem
    again = run_together([there(box, "exit 2", timeout=seconds) for seconds in (0.1, 1.5)])
    assert [ended.problem for ended in again] == [first.problem] * 2
    assert not any(ended.timed_out for ended in again)
    assert count(silent) == 1


def test_who_has_much_more_time_tries_it(box, silent):
    assert run(there(box, "exit 2", timeout=0.6)).problem
    assert run(there(box, "exit 2", timeout=1.5)).problem
    assert count(silent) == 2


def test_it_is_tried_again_soon(box, silent, monkeypatch):
    monkeypatch.setattr(ssh, "_LIFE", 0.0)
    for _ in range(2):
        assert run(there(box, "exit 2", timeout=0.6)).problem
    assert count(silent) == 2


def test_what_fails_at_once_may_be_tried_at_once():
    ssh.note_lost("quick", "no", patience=20.0, seconds=0.1)
    assert ssh.why_lost("quick", 20.0) == ""


@pytest.mark.rule("M2", "M3")
def test_a_connection_takes_at_most_half_of_the_time_that_is_left(box, silent):
    begun = time.monotonic()
    jobs = [there(box, "exit 2", timeout=seconds) for seconds in (50.0, None)]
    for one in run_together(jobs, deadline=begun + 4.0):
        assert not one.timed_out  # so that it is a problem of its own, and not of the deadline
        assert "box" in one.problem
    assert count(silent) == 1
