"""`notyet acp`: what an editor sees of an agent that is sent back, and the races on the way."""

import json
import os
import signal
import time

import pytest

from process_table import processes_in
from support import wait_for

SLEEPS = "echo started > started; sleep 600"


def is_running(folder):
    """Return True while a gate with SLEEPS runs in a folder."""
    return (folder / "started").exists()


def ended(result):
    return result.get("stopReason")


def test_a_passing_turn_reaches_the_client_byte_for_byte(edit, project, stops):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    editor.ask(session, "go")
    last = json.loads(editor.raw[-1])
    assert "_meta" not in json.dumps(last)
    assert "notyet: tests passed" in " ".join(editor.titles())
    assert stops() == [("passed", "")]


def test_a_blocked_agent_gets_the_reason_in_the_same_session(edit, project, stops):
    editor = edit()
    session = editor.new(project.once("the widget is missing").folder)
    result = editor.ask(session, "make a widget")
    assert ended(result) == "end_turn"
    assert result["_meta"]["notyet"] == {"sendBacks": 1, "outcome": "passed", "stop": 2}
    first, second = editor.call("_heard", sessionId=session)
    assert first == "make a widget"
    assert second.startswith("notyet: a check failed (send-back 1 of 3).")
    assert "the widget is missing" in second
    assert [outcome for outcome, _ in stops()] == ["blocked", "passed"]
    titles = editor.titles()
    assert any(title.startswith("notyet: tests failed (exit 1") for title in titles)
    assert "notyet: sent back 1 of 3" in titles
    assert "notyet: passed after 1 send-back" in titles


def test_the_usage_of_a_turn_is_that_of_all_its_runs(edit, project):
    editor = edit()
    result = editor.ask(editor.new(project.once().folder), "go")
    assert result["usage"] == {"inputTokens": 20, "outputTokens": 4, "totalTokens": 24}


@pytest.mark.rule("B1")
def test_an_endless_blocker_ends_at_the_limit_and_the_client_reads_not_passed(edit, project, stops):
    editor = edit("--max-blocks", "2")
    session = editor.new(project.gate("exit 1").folder)
    result = editor.ask(session, "go")
    assert ended(result) == "end_turn"
    assert result["_meta"]["notyet"]["outcome"] == "capped"
    assert "**notyet**: NOT PASSED" in editor.text()
    assert "(notyet log 3)" in editor.text()
    assert len(editor.call("_heard", sessionId=session)) == 3
    assert [outcome for outcome, _ in stops()] == ["blocked", "blocked", "capped"]


@pytest.mark.rule("C4")
def test_a_cancelled_turn_is_answered_while_its_gate_is_ended(edit, project, stops):
    editor = edit()
    folder = project.gate(SLEEPS).folder
    session = editor.new(folder)
    number = editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    editor.send(method="session/cancel", params={"sessionId": session})
    assert ended(editor.end(session, number)) == "cancelled"
    wait_for(lambda: not processes_in(folder))
    wait_for(lambda: stops() == [("skipped", "cancelled")])  # recorded after the answer
    (folder / "started").unlink()
    number = editor.prompt(session, "again")  # the session goes on
    wait_for(lambda: is_running(folder))
    editor.send(method="session/cancel", params={"sessionId": session})
    assert ended(editor.end(session, number)) == "cancelled"


def test_a_follow_up_can_be_cancelled(edit, project):
    editor = edit()
    session = editor.new(project.once("HANG").folder)
    number = editor.prompt(session, "go")
    editor.until(lambda m: "sent back" in json.dumps(m))
    wait_for(lambda: len(editor.call("_heard", sessionId=session)) == 2)
    editor.send(method="session/cancel", params={"sessionId": session})
    assert ended(editor.end(session, number)) == "cancelled"


@pytest.mark.rule("C9")
def test_a_prompt_of_the_user_wins_against_a_gate(edit, project, version):
    editor = edit()
    folder = project.gate(f"test -e {project.folder}/go || {{ {SLEEPS}; }}").folder
    session = editor.new(folder)
    first = editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    (folder / "go").write_text("")
    second = editor.prompt(session, "and this")
    assert ended(editor.end(session, first)) == "end_turn"
    assert ended(editor.end(session, second)) == "end_turn"
    assert editor.call("_heard", sessionId=session) == ["go", "and this"]


def test_a_prompt_of_the_user_wins_against_a_send_back(edit, project, version):
    editor = edit()
    session = editor.new(project.once("SLOW").folder)
    first = editor.prompt(session, "go")
    editor.until(lambda m: "sent back" in json.dumps(m))
    wait_for(lambda: len(editor.call("_heard", sessionId=session)) == 2)
    second = editor.prompt(session, "stop that")
    if version == 1:
        assert ended(editor.end(session, second)) == "end_turn"
        assert ended(editor.end(session, first)) == "end_turn"
    else:  # one end for both
        assert ended(editor.end(session, second)) == "end_turn"


def test_requests_of_the_agent_reach_the_client_during_a_send_back(edit, project):
    editor = edit()
    session = editor.new(project.once("ASK").folder)
    number = editor.prompt(session, "go")
    asked = editor.until(lambda m: m.get("method") == "session/request_permission")
    outcome = {"outcome": {"outcome": "selected", "optionId": "yes"}}
    editor.send(id=asked["id"], result=outcome)
    assert ended(editor.end(session, number)) == "end_turn"
    assert '"optionId": "yes"' in editor.text()


def test_several_sessions_are_gated_at_once(edit, tmp_path, project, version):
    editor = edit()
    folder = project.gate("sleep 0.5; pwd").folder
    sessions = [editor.new(folder) for _ in range(5)]
    numbers = [editor.prompt(session, "go") for session in sessions]
    left = set(sessions)

    def is_last(message):
        for session, number in zip(sessions, numbers, strict=True):
            params = message.get("params") or {}
            is_end = message.get("id") == number and "result" in message
            is_idle = params.get("update", {}).get("state") == "idle"
            if (version == 1 and is_end) or (params.get("sessionId") == session and is_idle):
                left.discard(session)
        return not left

    editor.until(is_last)


def test_an_agent_that_dies_in_a_send_back_ends_the_turn(edit, project, version):
    editor = edit()
    session = editor.new(project.once("CRASH").folder)
    number = editor.prompt(session, "go")
    end = editor.end(session, number)
    if version == 1:
        assert end["error"]["message"] == "the agent ended in its turn (exit code 7)"
    else:
        assert ended(end) == "end_turn"
    assert editor.process.wait(20) == 7


def test_a_held_end_is_delivered_if_the_agent_dies_while_its_gate_runs(edit, project, stops):
    editor = edit()
    folder = project.gate(SLEEPS).folder
    session = editor.new(folder)
    number = editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    agent = int(session.rpartition("-")[2])
    os.kill(agent, signal.SIGKILL)
    assert ended(editor.end(session, number)) == "end_turn"
    assert editor.process.wait(20) == 128 + signal.SIGKILL
    assert not processes_in(folder)
    assert stops() == [("skipped", "cancelled")]


@pytest.mark.rule("M2", "E2")
def test_a_client_that_leaves_leaves_no_process_behind(edit, project, stops):
    editor = edit()
    folder = project.gate(SLEEPS).folder
    session = editor.new(folder)
    editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    agent = int(session.rpartition("-")[2])
    assert editor.close() == 0
    wait_for(lambda: not processes_in(folder))
    wait_for(lambda: not os.path.exists(f"/proc/{agent}"))
    assert stops() == [("skipped", "cancelled")]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_gates_and_the_agent(edit, project, number):
    editor = edit()
    folder = project.gate(SLEEPS).folder
    session = editor.new(folder)
    editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    agent = int(session.rpartition("-")[2])
    editor.process.send_signal(number)
    expected = -number if number == signal.SIGKILL else 128 + number
    assert editor.process.wait(20) == expected
    wait_for(lambda: not processes_in(folder))
    wait_for(lambda: not os.path.exists(f"/proc/{agent}"))


def test_a_line_of_20_mb_arrives_whole(edit, project):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    editor.ask(session, "HUGE")
    assert max(map(len, editor.raw)) > 20_000_000


def test_what_is_not_understood_is_passed_on_as_it_is(edit, project):
    editor = edit()
    editor.send(id=77, method="_odd", params={})
    editor.until(lambda m: m.get("id") == 77)
    assert editor.raw[-1] == b'{ "weird" :  "\\u00e9", "jsonrpc":"2.0","id":77,"result":1}\n'
    editor.send(method="_garbage", params={})
    editor.until(lambda m: m == {})
    assert editor.raw[-1] == b"this is not JSON\n"


def test_errors_and_other_stop_reasons_are_not_gated(edit, project, version, stops):
    editor = edit()
    session = editor.new(project.gate("exit 1").folder)
    if version == 1:
        assert editor.ask(session, "FAIL")["error"]["message"] == "the model failed"
    number = editor.prompt(session, "HANG")
    wait_for(lambda: "HANG" in editor.call("_heard", sessionId=session))
    editor.send(method="session/cancel", params={"sessionId": session})
    assert ended(editor.end(session, number)) == "cancelled"
    assert stops() == []


def test_a_turn_without_a_word_is_a_failed_call_and_is_recorded(edit, project, stops):
    editor = edit()
    session = editor.new(project.gate("exit 1").folder)
    assert ended(editor.ask(session, "SILENT")) == "end_turn"
    assert stops() == [("skipped", "model-error")]
    assert "**notyet**: NOT CHECKED: the agent ended its turn without a word" in editor.text()


def test_a_turn_without_tokens_where_they_are_reported_is_a_failed_call(edit, project, stops):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    editor.ask(session, "go")
    editor.ask(session, "NOUSAGE")
    assert [why for _, why in stops()] == ["", "model-error"]


def test_an_agent_that_refuses_the_send_back_ends_the_turn(edit, project):
    editor = edit()
    result = editor.ask(editor.new(project.once("REFUSE").folder), "go")
    assert ended(result) == "end_turn"
    assert "the agent did not take the send-back: no more prompts" in editor.text()


@pytest.mark.parametrize("version", [1], indirect=True)
def test_an_answer_with_another_id_ends_the_turn_unchecked(edit, project):
    editor = edit()
    result = editor.ask(editor.new(project.once("ODD").folder), "go")
    assert ended(result) == "end_turn"
    assert "NOT CHECKED: the agent answered the send-back with an unknown id" in editor.text()


@pytest.mark.parametrize("version", [1], indirect=True)
def test_a_cancelled_request_is_answered_as_such_while_its_gate_runs(edit, project):
    editor = edit()
    folder = project.gate(SLEEPS).folder
    session = editor.new(folder)
    number = editor.prompt(session, "go")
    wait_for(lambda: is_running(folder))
    editor.send(method="$/cancel_request", params={"requestId": number})
    assert editor.end(session, number)["error"]["code"] == -32800
    wait_for(lambda: not processes_in(folder))


@pytest.mark.parametrize("version", [1], indirect=True)
def test_a_cancelled_request_names_our_prompt_during_a_send_back(edit, project):
    editor = edit()
    session = editor.new(project.once("HANG").folder)
    number = editor.prompt(session, "go")
    wait_for(lambda: len(editor.call("_heard", sessionId=session)) == 2)
    editor.send(method="$/cancel_request", params={"requestId": number})
    seen = editor.until(lambda m: m.get("method") == "_saw_cancel")
    assert seen["params"]["requestId"].startswith("notyet-")


@pytest.mark.parametrize("version", [1], indirect=True)
def test_of_two_prompts_in_flight_the_newest_is_gated(edit, project, stops):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    first, second = editor.prompt(session, "SLOW"), editor.prompt(session, "SLOW SLOW")
    assert ended(editor.end(session, first)) == "end_turn"
    assert ended(editor.end(session, second)) == "end_turn"
    assert [outcome for outcome, _ in stops()] == ["passed"]


def test_a_loaded_session_keeps_its_count(edit, project, version, stops):
    folder = project.gates(
        "[limits]\nmax_blocks = 5\nstuck_after = 0\nsession_ceiling = 3\n"
        '[gates.tests]\nrun = "exit 1"\nwhen = "always"\n'
    ).folder
    editor = edit("--max-blocks", "2")
    session = editor.new(folder)
    editor.ask(session, "go")
    again = edit()
    load = "session/load" if version == 1 else "session/resume"
    again.call(load, sessionId=session, cwd=str(folder), mcpServers=[])
    again.ask(session, "go on")
    outcomes = [outcome for outcome, _ in stops()]
    assert outcomes == ["blocked", "blocked", "capped", "blocked", "capped"]


def test_a_fork_has_no_new_budget(edit, project, stops):
    folder = project.gates(
        "[limits]\nstuck_after = 0\nsession_ceiling = 3\n"
        '[gates.tests]\nrun = "exit 1"\nwhen = "always"\n'
    ).folder
    editor = edit()
    session = editor.new(folder)
    editor.ask(session, "go")
    fork = editor.call("session/fork", sessionId=session, cwd=str(folder))["sessionId"]
    editor.ask(fork, "go")
    again = edit()  # another process knows it, too
    again.call("session/resume", sessionId=fork, cwd=str(folder), mcpServers=[])
    again.ask(fork, "go")
    assert [outcome for outcome, _ in stops()] == ["blocked"] * 3 + ["capped"] * 3


@pytest.mark.rule("N1")
def test_a_question_that_changes_no_file_costs_no_gate(edit, project, stops):
    folder = project.gates('[gates.tests]\nrun = "exit 1"\n').folder
    editor = edit()
    session = editor.new(folder)
    assert ended(editor.ask(session, "what is this?")) == "end_turn"
    assert stops() == [("skipped", "unchanged")]
    editor.ask(session, f"EDIT={folder}/a.txt")
    assert stops()[1][0] == "blocked"


def test_an_edit_right_after_the_session_began_is_seen(edit, project, stops):
    folder = project.gates('[limits]\nmax_blocks = 0\n[gates.tests]\nrun = "exit 1"\n').folder
    editor = edit()
    session = editor.new(folder)
    editor.ask(session, f"EDIT={folder}/a.txt")
    assert [outcome for outcome, _ in stops()] == ["capped"]


@pytest.mark.rule("N5")
def test_untrusted_gates_are_said_at_the_start_and_at_the_end(edit, project, stops):
    editor = edit()
    session = editor.new(project.gates('[gates]\ntests = "exit 1"\n', trusted=False).folder)
    wait_for(lambda: any("is not trusted" in line for line in editor.errors))
    editor.ask(session, "go")
    assert "**notyet**: NOT CHECKED" in editor.text()
    assert stops() == [("skipped", "untrusted")]


def test_gates_that_are_off_are_recorded(edit, project, stops):
    editor = edit(environ={"NOTYET_DISABLE": "1"})
    editor.ask(editor.new(project.gate("exit 1").folder), "go")
    assert stops() == [("skipped", "off")]


def test_an_agent_of_a_gate_is_not_gated(edit, project, stops):
    editor = edit(environ={"NOTYET_INSIDE": "1"})
    editor.ask(editor.new(project.gate("exit 1").folder), "go")
    assert stops() == []


def test_a_client_that_reads_nothing_holds_up_the_agent_only(edit, project):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    for _ in range(3):
        editor.prompt(session, "HUGE")
    time.sleep(1)
    assert editor.close() == 0


def test_the_agents_words_after_its_last_tool_call_are_its_last_message(edit, project):
    said = project.folder / "said"
    folder = project.gate(f"cat > {said}").folder
    editor = edit()
    editor.ask(editor.new(folder), "STEPS")
    event = json.loads(said.read_text())
    assert event["last_message"] == "prompts=1"
    assert (event["tool_calls"], event["tools_used"]) == (1, ["Run tests"])
    assert event["usage"]["total"] == 12
    assert event["task"] == "STEPS"


def test_a_client_that_never_reads_stderr_holds_up_nothing(edit, project):
    editor = edit(reads_errors=False)
    session = editor.new(project.gate("true").folder)
    assert ended(editor.ask(session, "NOISE")) == "end_turn"
