"""Which stop `check` and `status --why` are about, as their options say it."""

import argparse
import json
from pathlib import Path

import pytest

from notyet.cli.stop_options import add_event_options, described_stop, read_stop
from notyet.errors import NotyetError
from notyet.hosts import HOSTS, host_named

PAYLOADS = Path(__file__).parents[2] / "vectors" / "payloads"


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_event_options(parser)
    return parser.parse_args([str(word) for word in words])


def event(*words, cwd="/place", environ=None):
    return read_stop(described_stop(parsed(*words), cwd), environ or {})


def refusal(*words):
    with pytest.raises(NotyetError) as caught:
        event(*words)
    return str(caught.value)


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


def test_a_main_agent_can_have_a_type_by_option():
    stop = event("--event", "stop", "--agent-type", "coder")
    assert (stop.scope, stop.agent_type) == ("agent", "coder")


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
    stop = described_stop(parsed("--payload", file), "/place")
    assert stop.content == file.read_bytes()
    assert stop.origin == str(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the payload is empty"),
        (b" \n", "the payload is empty"),
        (b"[1]", "the payload is a list, not an object"),
        (b"null", "the payload is null, not an object"),
        (b"true", "the payload is true or false, not an object"),
        (b"1.5", "the payload is a number, not an object"),
        (b"\xff\xfe", "the payload is not JSON"),
        (b'{"hook_event_name": "SessionStart", "session_id": "s"}', "SessionStart is not a stop"),
        (b'{"session_id": "s", "transcript_path": "/t"}', "this is not a stop"),
        (b'{"hook_event_name": "a\\u001b[31mb", "session_id": "s"}', "is not a stop"),
    ],
)
def test_a_payload_that_is_no_stop_is_refused(tmp_path, content, said):
    file = tmp_path / "p.json"
    file.write_bytes(content)
    words = refusal("--payload", file)
    assert words.startswith(str(file))
    assert said in words
    assert "\x1b" not in words


def test_a_payload_that_does_not_tell_its_host_is_read_by_the_usual_names(tmp_path):
    file = tmp_path / "p.json"
    sent = {"hook_event_name": "Stop", "session_id": "s", "working_dir": "/x"}
    file.write_text(json.dumps(sent))
    found = event("--payload", file)
    assert (found.host, found.session_id, found.cwd) == ("unknown", "s", "/x")
