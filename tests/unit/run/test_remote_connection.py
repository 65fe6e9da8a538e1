"""Connections that are shared: found again, made once, private, and tidied up."""

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from itertools import pairwise

import pytest

from commands import run, run_together, until
from notyet.core.remote import remote_from
from notyet.run import ssh
from notyet.run import ssh as sharing
from notyet.run.remote_exit import advice_for, no_connection
from remote_runs import there

pytestmark = pytest.mark.rule("M1", "M2")

BOX = remote_from("ssh://dev@box:22/srv")


def folder_of(box):
    return os.path.join(box.runtime, "notyet", "ssh")


def listener(path):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def test_a_connection_is_made_once_and_used_again(box):
    for code in (3, 4):
        assert run(there(box, f"exit {code}")).code == code
    assert len(box.masters()) == 1
    assert not [n for n in os.listdir(folder_of(box)) if n.startswith(tuple("tmp"))]
    modes = {stat.S_IMODE(os.lstat(folder_of(box)).st_mode)}
    assert modes == {0o700}


def test_a_connection_that_is_gone_is_made_anew(box):
    assert run(there(box, "exit 3")).code == 3
    (pid,) = box.masters()
    os.kill(pid, 9)
    assert until(lambda: not box.masters())
    assert run(there(box, "exit 4")).code == 4
    assert len(box.masters()) == 1


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
    names = os.listdir(folder_of(box))
    assert len([name for name in names if "." not in name]) == 1


def test_a_published_connection_is_found_unless_another_one_is(tmp_path):
    one, two, name = (str(tmp_path / text) for text in ("one", "two", "name"))
    with listener(one), listener(two):
        sharing.publish(one, name)
        assert os.path.samefile(one, name)
        sharing.publish(two, name)
        assert os.path.samefile(one, name)
        assert sharing.listens(name)
    with listener(tmp_path / "three"):
        sharing.publish(str(tmp_path / "three"), name)  # the old one listens no more
        assert os.path.samefile(tmp_path / "three", name)
    sharing.publish(str(tmp_path / "nothing"), str(tmp_path / "new"))
    assert not os.path.exists(tmp_path / "new")


def test_what_killed_processes_left_is_removed_when_it_is_old(tmp_path):
    for name in ("old", "young"):
        listener(tmp_path / name).close()
    alive = listener(tmp_path / "alive")
    (tmp_path / "else").write_text("")
    for name in ("old", "alive", "else"):
        os.utime(tmp_path / name, (0, time.time() - 100))
    sharing.tidy(str(tmp_path))
    alive.close()
    assert sorted(os.listdir(tmp_path)) == ["alive", "else", "young"]
    sharing.tidy(str(tmp_path / "nowhere"))


def test_a_socket_on_which_too_many_ask_is_listened_on(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "busy"))
        server.listen(0)
        asking = [socket.socket(socket.AF_UNIX) for _ in range(3)]
        for one in asking:
            one.setblocking(False)  # its only form
            one.connect_ex(str(tmp_path / "busy"))
        assert sharing.listens(str(tmp_path / "busy"))
        for one in asking:
            one.close()
    assert not sharing.listens(str(tmp_path / "busy"))


def test_ssh_is_told_what_the_workspace_says(monkeypatch):
    monkeypatch.setenv("NOTYET_SSH_CONFIG", "/c")
    argv = ssh.connect_argv(BOX, "/x/100%", 0.2)
    assert argv[-2:] == ("--", "box")
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
    "dev@box: Permission denied (publickey).": "box let nobody in: dev@box: Permission denied "
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
    words = no_connection(BOX, said, 1.0)
    assert f"{words}; {advice_for(BOX, words)}" == WORDS[said]
    assert "ssh -p" not in words  # which an agent reads


@pytest.mark.rule("M3")
def test_what_an_agent_can_mend_needs_no_person():
    assert advice_for(BOX, "on box: the program 'uv' was not found on the PATH") == ""
    assert advice_for(BOX, "") == ""


# As `notyet hook` does it: all orphans are ended, but not what holds the connection.
HOOK = """
import sys
sys.path[:0] = sys.argv[2:]
from commands import run
from notyet.run.sweep import adopt_orphans, sweep
from notyet.run.remote import run_there
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
