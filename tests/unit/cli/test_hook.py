"""`notyet hook` from a payload to a reply: which files count, who is told what, what is kept."""

import json
import os

import pytest

from conftest import git
from hook_runs import (
    FAILING,
    HOSTS,
    ask,
    assert_allows,
    gate,
    new_project,
    payload,
    query,
    run_hook,
    stops,
    trust,
)
from notyet.config.caller import acp_mark
from notyet.config.off import switch_off

every_host = pytest.mark.parametrize("host", HOSTS)


def told(reply):
    """Return what the user is told, wherever the host has a place for it."""
    return reply.stderr + (
        json.loads(reply.stdout).get("systemMessage", "") if reply.stdout else ""
    )


@pytest.mark.rule("G6")
@pytest.mark.parametrize("host", ["claude", "codex", "mux", "notyet"])
def test_the_host_is_recognised_from_its_payload(tmp_path, host):
    project = new_project(tmp_path / "p")
    ask(payload(host, project))
    assert query("SELECT host FROM agents") == [(host,)]


@every_host
@pytest.mark.rule("A10")
def test_without_configuration_nothing_is_started_opened_or_written(tmp_path, host):
    project = tmp_path / "p"
    project.mkdir()
    reply = ask(payload(host, project), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert reply.stderr == ""
    assert not os.path.exists(os.environ["XDG_STATE_HOME"])


@pytest.mark.rule("A10")
def test_a_gate_for_others_costs_a_stop_nothing(tmp_path):
    project = new_project(tmp_path / "p", gate("touch ran", **{"for": "subagents"}))
    assert ask(payload("claude", project)).stderr == ""
    assert not (project / "ran").exists()
    assert stops() == []


@every_host
@pytest.mark.rule("E11")
def test_a_hook_inside_a_gate_allows(tmp_path, host):
    project = new_project(tmp_path / "p", FAILING)
    inside = os.environ | {"NOTYET_INSIDE": "1"}
    reply = ask(payload(host, project), "--host", host, environ=inside)
    assert_allows(host, reply.code, reply.stdout)
    assert stops() == [("skipped", "inside")]


def under_supervision():
    return os.environ | {"NOTYET_SUPERVISED": str(os.getppid())}


@every_host
@pytest.mark.rule("A10")
def test_the_main_agent_of_a_supervisor_is_let_go_with_one_record(tmp_path, host):
    project = new_project(tmp_path / "p", FAILING)
    reply = ask(payload(host, project), "--host", host, environ=under_supervision())
    assert_allows(host, reply.code, reply.stdout)
    assert "bad" not in reply.stdout
    assert stops() == [("skipped", "supervised")]
    assert not reply.stderr  # which some hosts show to the user


@pytest.mark.parametrize("transcript", [None, "/nowhere/rollout-1.jsonl"])
def test_a_helper_thread_of_an_agent_behind_a_proxy_is_not_gated(tmp_path, transcript):
    project = new_project(tmp_path / "p", FAILING)
    event = payload("codex", project, transcript_path=transcript)
    environ = os.environ | {"NOTYET_SUPERVISED": acp_mark(os.getppid())}
    ask(event, "--host", "codex", environ=environ)
    is_helper = transcript is None  # and else an agent that the agent started
    assert stops() == [("skipped", "supervised") if is_helper else ("blocked", "bad")]


def test_a_subagent_of_a_supervised_agent_is_gated_all_the_same(tmp_path):
    project = new_project(tmp_path / "p", gate("echo bad; exit 1", **{"for": "all"}))
    event = payload("claude", project, hook_event_name="SubagentStop", agent_id="a1")
    reply = ask(event, environ=under_supervision())
    assert "FAILED g" in reply.stdout
    assert stops() == [("blocked", "g")]


def test_a_supervised_agent_is_told_of_its_gates_by_its_supervisor_only(tmp_path):
    file = gate("exit 1", **{"for": "all"}) + "\n[start]\ntell = true\n"
    project = new_project(tmp_path / "p", file)
    event = payload("claude", project, hook_event_name="SessionStart")
    assert ask(event).stdout
    reply = ask(event, environ=under_supervision())
    assert (reply.stdout, reply.stderr, reply.code) == ("", "", 0)
    child = payload("claude", project, hook_event_name="SubagentStart", agent_id="a1")
    assert "deliver your report" in ask(child, environ=under_supervision()).stdout
    assert stops() == []


@pytest.mark.rule("E7", "H5")
def test_a_gate_runs_in_the_folder_of_its_file_with_its_variables(tmp_path):
    project = new_project(
        tmp_path / "p", gate('pwd > where; env > seen; test "$MINE" = yes', env={})
    )
    text = (project / "notyet.toml").read_text().replace("env = {}", 'env = { MINE = "yes" }')
    new_project(tmp_path / "p", text)
    (project / "below").mkdir()
    here = os.getcwd()
    ask(payload("claude", project / "below", agent_type="x"))
    assert os.getcwd() == here
    assert (project / "where").read_text() == f"{project}\n"
    seen = dict(line.partition("=")[::2] for line in (project / "seen").read_text().splitlines())
    assert seen["NOTYET_CWD"] == f"{project}/below"
    assert seen["NOTYET_PROJECT_DIR"] == str(project)
    assert (seen["NOTYET_EVENT"], seen["NOTYET_HOST"]) == ("stop", "claude")
    assert (seen["NOTYET_BLOCK_COUNT"], seen["NOTYET_MAX_BLOCKS"]) == ("0", "3")
    assert (seen["NOTYET_SESSION_ID"], seen["NOTYET_AGENT_TYPE"]) == ("s1", "x")
    assert (seen["NOTYET_AGENT_ID"], seen["NOTYET_STOP_HOOK_ACTIVE"]) == ("", "false")
    assert stops() == [("passed", "")]


@pytest.mark.rule("E7")
def test_a_gate_of_mux_runs_in_the_root_of_its_project(tmp_path):
    project = tmp_path / "p"
    (project / ".mux").mkdir(parents=True)
    (project / "below").mkdir()
    git(project, "init", "--quiet")
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": f"pwd >> {tmp_path}/where"}]}]}
    settings_file = project / ".mux" / "settings.json"
    settings_file.write_text(json.dumps({"hooks": hooks}))
    trust(settings_file, "mux")
    ask(payload("mux", project / "below"))
    ask(payload("mux", project))
    assert (tmp_path / "where").read_text() == f"{project}\n{project}\n"


@pytest.mark.rule("E10")
@pytest.mark.parametrize(
    ("command", "fields", "outcome"),
    [
        ("exit 0", {}, "passed"),
        ("exit 5", {}, "blocked"),
        ("exit 5", {"pass_codes": [0, 5]}, "passed"),
        ("exit 126", {}, "blocked"),
        ("exit 127", {}, "blocked"),
        ("kill -9 $$", {}, "blocked"),
        ("kill -9 $$", {"if_broken": "allow"}, "failed_open"),
        ("sleep 30", {"timeout": "1s"}, "blocked"),
        ("sleep 30", {"timeout": "1s", "if_broken": "allow"}, "failed_open"),
        ('echo \'{"decision": "block", "reason": "no"}\'', {}, "blocked"),
        ('echo \'{"decision": "allow"}\'; exit 1', {}, "passed"),
        ("echo '{\"continue\": false}'", {}, "halted"),
        ('echo \'{"decision": "perhaps"}\'', {}, "blocked"),
        ("exit 1", {"observe": True}, "observed"),
    ],
)
def test_how_a_native_gate_answers(tmp_path, command, fields, outcome):
    project = new_project(tmp_path / "p", gate(command, **fields))
    ask(payload("claude", project))
    assert [recorded for recorded, _ in stops()] == [outcome]


def test_an_agent_that_reads_stderr_reads_its_prompt_and_nothing_else(tmp_path):
    text = (
        gate("exit 1") + '\n[gates.odd]\nrun = "exit 127"\nif_broken = "allow"\nwhen = "always"\n'
    )
    project = new_project(tmp_path / "p", text)
    done = run_hook(payload("conclaude", project), "--host", "conclaude", "--nonsense")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"nonsense" not in done.stderr
    assert done.stderr.startswith(b"notyet: 1 of 2 checks failed")


def test_the_last_message_comes_from_the_transcript_where_the_host_gives_none(tmp_path):
    project = new_project(tmp_path / "p", gate("cat > seen"))
    line = {
        "type": "assistant",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    }
    (tmp_path / "t.jsonl").write_text(json.dumps(line) + "\n")
    event = payload("claude", project, transcript_path=str(tmp_path / "t.jsonl"))
    del event["last_assistant_message"]
    ask(event)
    assert json.loads((project / "seen").read_text())["last_message"] == "hi"


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_starting_agent_is_told_which_gates_it_will_meet(tmp_path, host):
    project = new_project(tmp_path / "p", gate("exit 1") + "\n[start]\ntell = true\n")
    event = payload(host, project, hook_event_name="SessionStart")
    context = json.loads(ask(event, "--host", host).stdout)["hookSpecificOutput"]
    assert context["hookEventName"] == "SessionStart"
    assert "g: exit 1" in context["additionalContext"]
    event["hook_event_name"] = "SubagentStart"
    assert_allows(host, 0, ask(event, "--host", host).stdout)
    switch_off("", 0.0, os.environ)
    event["hook_event_name"] = "SessionStart"
    assert_allows(host, 0, ask(event, "--host", host).stdout)
    assert stops() == []


@pytest.mark.rule("A10")
def test_an_observer_is_told_also_where_no_gate_applies(tmp_path):
    project = new_project(tmp_path / "p", '[observers.o]\nrun = "cat > seen"\n')
    ask(payload("claude", project))
    assert json.loads((project / "seen").read_text())["decision"]["outcome"] == "skipped"
    assert stops() == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--host", "nobody"], "unknown host 'nobody'; choose one of claude, codex"),
        (["--timeout", "soon"], "--timeout is a number of seconds, not 'soon'"),
        (["--timeout=0"], "--timeout is a number of seconds, not '0'"),
        (["--config"], "--config needs a value"),
        (["--verbose"], "unknown option '--verbose'"),
        (["--timeout=30"], ""),
    ],
)
def test_a_mistake_on_the_command_line_is_said_in_words(tmp_path, argv, words):
    project = new_project(tmp_path / "p")
    reply = ask(payload("claude", project), *argv)
    assert words in reply.stderr
    assert bool(words) == bool(reply.stderr)
    assert stops() == [("passed", "")]
