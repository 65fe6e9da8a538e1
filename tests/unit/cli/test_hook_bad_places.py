"""Whatever is wrong on this machine: the agent is let go, and it is said (G5)."""

import json
import os
import resource

import pytest

from hook_runs import (
    ask,
    assert_allows,
    gate,
    ledger_path,
    new_project,
    payload,
    run_hook,
    stops,
    trust,
)
from support import fill

pytestmark = pytest.mark.rule("G5")
some_hosts = pytest.mark.parametrize("host", ["claude", "conclaude", "notyet"])


def _directory(path):
    path.mkdir()


def _fifo(path):
    os.mkfifo(path)


def _huge(path):
    path.write_bytes(b"#" * 5_000_000)


def _binary(path):
    path.write_bytes(os.urandom(10_000))


def _broken(path):
    path.write_text("[gates\nx = ")


def _unreadable(path):
    if os.geteuid() == 0:
        pytest.skip("root can read everything")
    path.touch(0o000)


def _dangling(path):
    path.symlink_to(path.parent / "nowhere")


def _loop(path):
    path.symlink_to(path)


def _device(path):
    path.symlink_to("/dev/zero")


BAD_FILES = [_directory, _fifo, _unreadable, _huge, _binary, _broken, _dangling, _loop, _device]


@some_hosts
@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_bad_configuration_file_lets_the_agent_go_and_is_recorded(tmp_path, host, bad):
    project = tmp_path / "p"
    project.mkdir()
    bad(project / "notyet.toml")
    reply = ask(payload(host, project), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert "notyet.toml" in reply.stderr
    assert stops() in ([("skipped", "config")], [("skipped", "untrusted")])


@pytest.mark.rule("N5")
@pytest.mark.parametrize("bad", BAD_FILES)
def test_what_was_trusted_stays_in_force_when_the_file_turns_bad(tmp_path, bad):
    project = new_project(tmp_path / "p")
    (project / "notyet.toml").unlink()
    bad(project / "notyet.toml")
    reply = ask(payload("claude", project))
    assert "notyet.toml" in json.loads(reply.stdout)["systemMessage"]
    assert stops() == [("passed", "")]
    assert (project / "ran").exists()


@some_hosts
@pytest.mark.rule("E10")
@pytest.mark.parametrize(
    "command", [["/no/such/program"], ["no-such-program"], "no-such-program", ["/etc/passwd"]]
)
def test_a_program_that_is_missing_is_a_problem_that_need_not_block(tmp_path, host, command):
    project = new_project(tmp_path / "p", gate(command, if_broken="allow"))
    reply = ask(payload(host, project), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert "gate g" in reply.stderr
    assert stops() == [("failed_open", "g gave no answer")]


def _ledger_is_a_directory():
    os.makedirs(ledger_path())


def _ledger_is_no_database():
    os.makedirs(os.path.dirname(ledger_path()))
    with open(ledger_path(), "wb") as file:
        file.write(b"SQLite format 3\0" + b"not of ours" * 1000)


def _state_is_a_file():
    os.makedirs(os.path.dirname(os.environ["XDG_STATE_HOME"]), exist_ok=True)
    with open(os.environ["XDG_STATE_HOME"], "wb"):
        pass


@some_hosts
@pytest.mark.parametrize("spoil", [_ledger_is_a_directory, _ledger_is_no_database])
def test_a_ledger_that_cannot_be_opened_does_not_block(tmp_path, host, spoil):
    project = new_project(tmp_path / "p", gate("exit 1"), trusted=False)
    spoil()
    trust(project / "notyet.toml")
    done = run_hook(payload(host, project), "--host", host)
    assert_allows(host, done.returncode, done.stdout)
    assert b"ledger" in done.stderr
    assert b"Traceback" not in done.stderr


@some_hosts
def test_a_state_folder_that_cannot_be_made_does_not_block(tmp_path, host):
    project = new_project(tmp_path / "p", trusted=False)
    _state_is_a_file()
    done = run_hook(payload(host, project), "--host", host)
    assert_allows(host, done.returncode, done.stdout)
    assert b"not trusted" in done.stderr
    assert b"not recorded" in done.stderr


@some_hosts
def test_without_a_home_there_is_an_answer(tmp_path, host, monkeypatch):
    project = new_project(tmp_path / "p", trusted=False)
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "nowhere")
    reply = ask(payload(host, project), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert "not trusted" in reply.stderr
    assert "no home folder" in reply.stderr
    assert os.listdir(project) == ["notyet.toml"]


def test_a_full_disk_does_not_block(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 1"))

    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = run_hook(payload("claude", project), preexec_fn=no_room)
    assert_allows("claude", done.returncode, done.stdout)
    assert b"ledger" in done.stderr


@pytest.mark.rule("B3")
def test_a_disk_with_room_for_the_log_alone_still_blocks(tmp_path):
    project = new_project(tmp_path / "p", gate("echo no; exit 1"))
    size = fill(ledger_path())

    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    for number in range(4):  # of which one writes the log back
        fields = {"session_id": f"s{number}", "last_assistant_message": "long " * 2000}
        done = run_hook(payload("claude", project, **fields), preexec_fn=little_room)
        assert json.loads(done.stdout)["decision"] == "block"
        assert done.stderr == b""
    assert os.path.getsize(ledger_path()) == size  # or there was room for it
    assert stops()[-4:] == [("blocked", "g")] * 4


@some_hosts
@pytest.mark.parametrize(
    "argv",
    [
        ["--nonsense"],
        ["--nonsense=1", "words", "-x"],
        ["--timeout", "x"],
        ["--timeout", "-1"],
        ["--timeout", "nan"],
        ["--timeout"],
        ["--config"],
        [""],
        ["--", "--host"],
    ],
)
def test_a_wrong_option_is_said_and_the_gates_are_asked(tmp_path, host, argv):
    project = new_project(tmp_path / "p")
    reply = ask(payload(host, project), "--host", host, *argv)
    assert_allows(host, reply.code, reply.stdout)
    assert reply.stderr.startswith("notyet: ")
    assert stops() == [("passed", "")]


@some_hosts
def test_a_named_configuration_that_is_missing_is_said_and_recorded(tmp_path, host):
    project = new_project(tmp_path / "p")
    reply = ask(payload(host, project), "--host", host, "--config", "missing.toml")
    assert_allows(host, reply.code, reply.stdout)
    assert "missing.toml cannot be read" in reply.stderr
    assert stops() == [("skipped", "config")]


def test_a_fault_of_our_own_lets_the_agent_go(tmp_path, monkeypatch):
    project = new_project(tmp_path / "p")
    monkeypatch.setattr("notyet.config.load.load", lambda *_, **__: 1 / 0)
    reply = ask(payload("codex", project))
    assert_allows("codex", reply.code, reply.stdout)
    assert "internal error: ZeroDivisionError" in reply.stderr
    assert stops() == [("skipped", "internal")]


def test_a_fault_that_is_everywhere_still_lets_the_agent_go(tmp_path, monkeypatch):
    project = new_project(tmp_path / "p")
    monkeypatch.setattr("notyet.hook.hook.host_named", lambda _: 1 / 0)
    reply = ask(payload("claude", project))
    assert (reply.code, reply.stdout) == (0, "")
    assert "internal error" in reply.stderr
