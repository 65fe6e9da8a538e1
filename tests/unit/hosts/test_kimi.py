"""Kimi Code: the files of a session tell which of its agents stops."""

import json
import threading
from pathlib import Path

import pytest

from notyet.hosts import host_named, kimi
from notyet.hosts.transcript import last_message_of

VECTORS = Path(__file__).parents[2] / "vectors"
KIMI = host_named("kimi")
STOP = json.loads((VECTORS / "payloads" / "kimi" / "Stop.in-subagent.json").read_text())


@pytest.fixture
def agents(tmp_path):
    """Return the folder of the session's agents in a scratch home."""
    folder = tmp_path / ".kimi-code" / "sessions" / "wd_proj_0" / STOP["session_id"] / "agents"
    folder.mkdir(parents=True)
    (tmp_path / ".kimi-code" / "sessions" / "wd_other_1").mkdir()
    return folder


def write(agents, **files):
    for name, recorded in files.items():
        (agents / name.replace("_", "-")).mkdir()
        text = (VECTORS / "transcripts" / f"{recorded}.jsonl").read_text()
        (agents / name.replace("_", "-") / "wire.jsonl").write_text(text)


def read(agents, **environ):
    return KIMI.read_event(STOP, {"HOME": str(agents.parents[4]), **environ})


def test_a_stop_is_that_of_the_agent_whose_file_ends_with_its_turn(agents):
    write(agents, main="kimi-parent", agent_0="kimi-subagent")
    event = read(agents)
    assert (event.scope, event.agent_id, event.agent_type) == ("subagent", "agent-0", "coder")
    assert event.session_id == STOP["session_id"]
    assert event.agent_transcript_path == str(agents / "agent-0" / "wire.jsonl")
    assert event.transcript_path == str(agents / "main" / "wire.jsonl")
    assert last_message_of(event).startswith("SUBANSWER0 long enough")


def test_the_main_agent_comes_first(agents):
    write(agents, main="kimi", agent_0="kimi-subagent")
    event = read(agents, KIMI_CODE_HOME=str(agents.parents[3]))
    assert (event.scope, event.agent_id) == ("agent", None)
    assert last_message_of(event) == "ANSWER-1"


@pytest.mark.rule("B4", "B8")
def test_each_stop_is_the_first_of_a_turn_in_which_one_block_counts(agents):
    event = read(agents)
    assert (event.scope, event.transcript_path) == ("agent", None)
    assert (event.stop_hook_active, event.host_cap) == (False, 2)


def test_a_subagent_whose_file_does_not_say_its_type_has_none(agents):
    write(agents, agent_0="kimi-subagent")
    file = agents / "agent-0" / "wire.jsonl"
    file.write_text(file.read_text().partition("\n")[2].rpartition('"profile.bind"')[2])
    assert read(agents).agent_type is None


def test_a_session_id_leads_nowhere_else(agents):
    write(agents, main="kimi")
    strange = STOP | {"session_id": f"x/../{STOP['session_id']}"}
    event = KIMI.read_event(strange, {"HOME": str(agents.parents[4])})
    assert event.transcript_path is None


def test_the_end_of_a_turn_that_is_written_a_moment_later_is_waited_for(agents):
    write(agents, main="kimi-parent", agent_0="kimi-subagent")
    file = agents / "agent-0" / "wire.jsonl"
    whole = file.read_text()
    file.write_text(whole.rstrip("\n").rpartition("\n")[0] + "\n")
    late = threading.Timer(0.1, file.write_text, (whole,))
    late.start()
    assert read(agents).agent_id == "agent-0"
    late.join()


def test_where_no_turn_has_ended_the_main_agent_stops(agents, monkeypatch):
    monkeypatch.setattr(kimi, "_LAG", 0.0)
    write(agents, main="kimi-parent")
    assert read(agents).scope == "agent"
