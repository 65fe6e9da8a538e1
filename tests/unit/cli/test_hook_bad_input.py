"""Whatever a host sends: the agent is let go, in words its host takes, and it is said (G5)."""

import json
import os
import pty
import subprocess

import pytest

from hook_runs import (
    HOSTS,
    ask,
    assert_allows,
    clean_environ,
    command_line,
    gate,
    new_project,
    payload,
    stops,
)

pytestmark = pytest.mark.rule("G5")
every_host = pytest.mark.parametrize("host", HOSTS)
some_hosts = pytest.mark.parametrize("host", ["claude", "conclaude", "notyet"])

UNREADABLE = {
    "nothing": b"",
    "blanks": b" \n\t ",
    "no JSON": b"this is a stop",
    "half an object": b'{"session_id": "s1", ',
    "two objects": b"{} {}",
    "an array": b"[1, 2]",
    "a string": b'"Stop"',
    "a number": b"17",
    "a long number": b"1" * 10_000,
    "null": b"null",
    "NaN": b'{"session_id": NaN}',
    "a NUL": b"\0",
    "NULs around": b"\0\0{}\0\0",
    "no UTF-8": b"\xff\xfe\xfd",
    "UTF-16": '{"session_id": "s1"}'.encode("utf-16"),
    "very deep": b"[" * 200_000,
    "very deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}


@some_hosts
@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_lets_the_agent_go_and_is_recorded(host, content):
    reply = ask(content, "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert reply.stderr.startswith("notyet: ")
    assert "internal error" not in reply.stderr
    assert stops() == [("skipped", "unreadable")]


@some_hosts
def test_a_closed_stdin_lets_the_agent_go(host):
    shell = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *command_line("--host", host)]
    done = subprocess.run(shell, capture_output=True, env=clean_environ(), timeout=60)
    assert_allows(host, done.returncode, done.stdout)
    assert b"no event on stdin" in done.stderr
    assert stops() == [("skipped", "unreadable")]


def test_a_terminal_as_stdin_is_not_waited_for():
    master, slave = pty.openpty()
    try:
        done = subprocess.run(
            command_line(), stdin=slave, capture_output=True, env=clean_environ(), timeout=60
        )
    finally:
        os.close(master)
        os.close(slave)
    assert_allows("claude", done.returncode, done.stdout)
    assert b"no event on stdin" in done.stderr


@pytest.mark.parametrize("closed", ["1", "2", "0 1 2"])
def test_closed_descriptors_harm_neither_the_gate_nor_the_ledger(tmp_path, closed):
    project = new_project(tmp_path / "p", gate("cat > seen; echo out; echo err >&2"))
    event = tmp_path / "event.json"
    event.write_text(json.dumps(payload("claude", project)))
    redirections = " ".join(f"{number}>&-" for number in closed.split())
    stdin = "" if "0" in closed else f"<{event}"
    shell = f'exec "$@" {stdin} {redirections}'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *command_line()],
        capture_output=True,
        env=clean_environ(),
        timeout=60,
    )
    assert done.returncode == 0
    if stdin:
        assert stops() == [("passed", "")]
        assert json.loads((project / "seen").read_text())["session_id"] == "s1"
    else:
        assert stops() == [("skipped", "unreadable")]


def test_where_the_host_no_longer_listens_no_send_back_is_counted(tmp_path):
    project = new_project(tmp_path / "p", gate("exit 127", if_broken="block"))
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run(
        command_line(),
        input=json.dumps(payload("claude", project)).encode(),
        stdout=writes,
        stderr=writes,
        env=clean_environ(),
        timeout=60,
    )
    os.close(writes)
    assert done.returncode == 1  # not answered
    assert stops() == [("skipped", "cancelled")]


READABLE = {
    "a BOM": lambda event: b"\xef\xbb\xbf" + json.dumps(event).encode(),
    "broken UTF-8 in a text": lambda event: (
        json.dumps(event | {"x": "?"}).encode().replace(b'"?"', b'"\xff\xfe"')
    ),
    "raw control characters": lambda event: (
        json.dumps(event | {"x": "?"}).encode().replace(b'"?"', b'"\x00\x01\n"')
    ),
    "a NUL in a text": lambda event: event | {"last_assistant_message": "a\0b"},
    "half a character": lambda event: event | {"last_assistant_message": "\ud800"},
    "half a character in an id": lambda event: (
        event | {"session_id": "\udc80", "agent_id": "\ud83d"}
    ),
    "a NUL in an id": lambda event: event | {"session_id": "a\0b", "agent_id": "\0x"},
    "a key that is written twice": lambda event: (
        b'{"session_id": 5, ' + json.dumps(event).encode()[1:]
    ),
    "a megabyte": lambda event: event | {"last_assistant_message": "x" * 1_000_000},
    "unknown fields": lambda event: event | {"new": [{"deep": [1, None, {}]}] * 100},
}


@some_hosts
@pytest.mark.parametrize("mangle", READABLE.values(), ids=READABLE)
def test_what_can_still_be_read_is_gated(tmp_path, host, mangle):
    project = new_project(tmp_path / "p")
    reply = ask(mangle(payload(host, project)), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert stops() == [("passed", "")]
    assert (project / "ran").exists()


@every_host
@pytest.mark.parametrize("field", ["cwd", "session_id", "stop_hook_active", "transcript_path"])
def test_a_field_of_the_wrong_type_is_named(tmp_path, host, field):
    project = new_project(tmp_path / "p")
    reply = ask(payload(host, project, **{field: {"a": 1}}), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert f"the event's {field} is an object; not used" in reply.stderr


@some_hosts
@pytest.mark.rule("B9")
@pytest.mark.parametrize("session", [None, "", "  ", 5])
def test_without_a_session_id_nothing_is_asked_and_that_is_recorded(tmp_path, host, session):
    project = new_project(tmp_path / "p")
    reply = ask(payload(host, project, session_id=session), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert "no session_id" in reply.stderr
    assert stops() == [("skipped", "no-session")]
    assert not (project / "ran").exists()


@every_host
@pytest.mark.parametrize("name", [None, "", 5, [], {}])
def test_without_the_name_of_the_event_nothing_is_asked_and_that_is_recorded(tmp_path, host, name):
    if host == "notyet":
        pytest.skip("our own events have no name")
    project = new_project(tmp_path / "p")
    reply = ask(payload(host, project, hook_event_name=name), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert "no hook_event_name" in reply.stderr
    assert stops() == [("skipped", "unreadable")]


@some_hosts
def test_a_folder_that_is_gone_is_still_in_its_project(tmp_path, host):
    project = new_project(tmp_path / "p")
    for cwd in (project / "gone" / "deep", project / "notyet.toml"):
        reply = ask(payload(host, cwd), "--host", host)
        assert_allows(host, reply.code, reply.stdout)
    assert stops() == [("passed", "")] * 2
    assert (project / "ran").read_text() == "ran\nran\n"


@some_hosts
@pytest.mark.parametrize("cwd", ["a\0b", "\ud800", "", None])
def test_a_folder_that_cannot_be_is_said_and_recorded(host, cwd):
    reply = ask(payload(host, "/", cwd=cwd), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert reply.stderr
    assert stops() == [("skipped", "unreadable")]


@some_hosts
def test_a_transcript_that_is_no_file_harms_nothing(tmp_path, host):
    project = new_project(tmp_path / "p")
    os.mkfifo(tmp_path / "fifo")
    with open(tmp_path / "huge", "wb") as huge:
        huge.truncate(2 * 1024**3)
    (tmp_path / "unreadable").touch(0o000)
    names = {"last_assistant_message": None, "last_message": None}
    places = (tmp_path, tmp_path / "fifo", tmp_path / "huge", tmp_path / "unreadable", "/dev/zero")
    for place in places:
        both = {"transcript_path": str(place), "agent_transcript_path": str(place)}
        reply = ask(payload(host, project, **names, **both), "--host", host)
        assert_allows(host, reply.code, reply.stdout)
    assert stops() == [("passed", "")] * len(places)
