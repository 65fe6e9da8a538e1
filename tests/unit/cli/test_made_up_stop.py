"""Which stop `check` and `status --why` are about, as their options say it."""

import argparse
import json
import os
from pathlib import Path

import pytest

from notyet.cli.made_up_stop import about, add_event_options, read
from notyet.errors import NotyetError
from notyet.hosts import HOSTS, host_named

PAYLOADS = Path(__file__).parents[2] / "vectors" / "payloads"


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_event_options(parser)
    return parser.parse_args([str(word) for word in words])


def event(*words, cwd="/place", environ=None):
    return read(about(parsed(*words), cwd), environ or {})


def refusal(*words):
    with pytest.raises(NotyetError) as caught:
        event(*words)
    return str(caught.value)


def test_without_options_it_is_the_main_agent_of_claude_code_in_this_folder():
    stop = event()
    assert (stop.host, stop.scope, stop.cwd, stop.ending) == ("claude", "agent", "/place", "done")
    assert stop.session_id.strip()


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_reads_the_stop_that_was_made_up_in_its_words(host):
    stop = event("--as", host)
    assert (stop.host, stop.scope, stop.cwd) == (host, "agent", "/place")
    assert stop.session_id.strip()


@pytest.mark.parametrize(
    "host", [host for host in HOSTS if host_named(host).event_name("subagent")]
)
def test_every_host_reads_the_subagent_that_was_made_up_in_its_words(host):
    stop = event("--as", host, "--event", "subagent_stop")
    assert (stop.host, stop.scope) == (host, "subagent")
    assert stop.agent_id or host == "mux"  # which calls the session of a subagent by that


@pytest.mark.parametrize("host", ["claude", "conclaude", "notyet"])
def test_a_host_that_tells_who_stops_can_be_made_to(host):
    words = ("--agent-type", "coder", "--agent-name", "Bo", "--agent-id", "a1")
    stop = event("--as", host, *words)
    assert (stop.agent_type, stop.agent_name, stop.agent_id) == ("coder", "Bo", "a1")


@pytest.mark.parametrize(
    ("host", "option"),
    [("mux", "--agent-type"), ("mux", "--agent-id"), ("codex", "--agent-name")],
)
def test_a_host_is_not_made_to_say_what_it_never_says(host, option):
    said = refusal("--as", host, option, "coder")
    assert said.startswith(f"{option}: {host} does not say this of a subagent that stops")


def test_nor_is_it_where_a_real_payload_is_changed():
    codex, claude = PAYLOADS / "codex" / "Stop.00-basic.0.json", PAYLOADS / "claude" / "Stop.json"
    said = refusal("--payload", codex, "--agent-type", "coder")
    assert said.startswith("--agent-type: codex does not say this of the main agent that stops")
    assert refusal("--payload", claude, "--agent-id", "x").startswith("--agent-id: claude does not")


def test_a_name_of_a_subagent_makes_it_one():
    assert event("--agent-type", "coder").scope == "subagent"
    assert event("--agent-id", "a1").agent_id == "a1"


def test_a_main_agent_can_have_a_type_if_somebody_says_so():
    stop = event("--event", "stop", "--agent-type", "coder")
    assert (stop.scope, stop.agent_type) == ("agent", "coder")


def test_a_workspace_stands_in_its_one_form():
    assert event("--workspace", "ssh://box/srv/app/").workspace == "ssh://box/srv/app"
    assert event("--workspace", "local").workspace == ""


@pytest.mark.parametrize(
    ("file", "host", "scope"),
    [
        ("claude/Stop.json", "claude", "agent"),
        ("claude/SubagentStop.json", "claude", "subagent"),
        ("codex/Stop.00-basic.0.json", "codex", "agent"),
        ("codex/SubagentStop.40-subagent-block.7.json", "codex", "subagent"),
    ],
)
def test_a_real_payload_tells_who_sent_it(file, host, scope):
    sent = json.loads((PAYLOADS / file).read_bytes())
    stop = event("--payload", PAYLOADS / file)
    assert (stop.host, stop.scope) == (host, scope)
    assert (stop.session_id, stop.cwd) == (sent["session_id"], sent["cwd"])


def test_options_change_a_real_payload():
    file = PAYLOADS / "claude" / "Stop.json"
    stop = event("--payload", file, "--as", "codex", "--event", "subagent_stop", "--agent-id", "x")
    assert (stop.host, stop.scope, stop.agent_id) == ("codex", "subagent", "x")


def test_the_bytes_of_a_payload_are_kept_as_they_came(tmp_path):
    file = tmp_path / "p.json"
    file.write_bytes(b'\n {"session_id":"s", "hook_event_name": "Stop",\t"cwd": "/x"}\n')
    stop = about(parsed("--payload", file), "/place")
    assert stop.content == file.read_bytes()
    assert stop.origin == str(file)


def test_a_payload_comes_from_stdin(monkeypatch):
    ours, theirs = os.pipe()
    os.write(theirs, b'{"scope": "agent", "host": "notyet", "session_id": "s", "cwd": "/x"}')
    os.close(theirs)
    with open(ours) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert event("--payload", "-").host == "notyet"


def test_a_broken_payload_is_refused_with_its_line_and_column(tmp_path):
    file = tmp_path / "p.json"
    file.write_text('{\n  "session_id": "s",\n  "cwd": oops\n}\n')
    assert refusal("--payload", file).startswith(f"{file}:3:10: invalid JSON: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the payload is empty"),
        (b" \n", "the payload is empty"),
        (b"[1]", "the payload is a list, not an object"),
        (b"null", "the payload is null, not an object"),
        (b"true", "the payload is true or false, not an object"),
        (b"1.5", "the payload is a number, not an object"),
        (b"\xff\xfe", "invalid JSON"),
        (b'{"hook_event_name": "SessionStart", "session_id": "s"}', "SessionStart is no stop"),
        (b'{"session_id": "s", "transcript_path": "/t"}', "this is no stop"),
        (b'{"hook_event_name": "a\\u001b[31mb", "session_id": "s"}', "is no stop"),
    ],
)
def test_a_payload_that_is_no_stop_is_refused(tmp_path, content, said):
    file = tmp_path / "p.json"
    file.write_bytes(content)
    words = refusal("--payload", file)
    assert words.startswith(str(file))
    assert said in words
    assert "\x1b" not in words


def test_a_payload_that_is_too_large_is_refused(tmp_path):
    file = tmp_path / "p.json"
    with file.open("wb") as sparse:
        sparse.truncate(40 * 1024 * 1024)
    assert refusal("--payload", file) == f"{file}: the payload is larger than 32 MB"


def test_a_host_that_copied_claude_code_is_read_as_such(tmp_path):
    file = tmp_path / "p.json"
    sent = {"hook_event_name": "Stop", "session_id": "s", "cwd": "/x", "crons": []}
    file.write_text(json.dumps(sent))
    assert event("--payload", file).host == "claude"
