"""What command-line agents wrote, replayed by a program that writes the same.

It was recorded with the real programs; only Cursor's follows its documentation.
"""

import json
import os
import shlex
import subprocess

import pytest

from notyet.agents import open_session, reopen
from notyet.agents.formats import READERS
from notyet.errors import SendError
from notyet.hosts.known_programs import headless
from notyet.hosts.transcript import last_message

VECTORS = os.path.join(os.path.dirname(__file__), "..", "..", "vectors", "agents")
with open(os.path.join(VECTORS, "turns.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)["turns"]


def replaying(tmp_path, agent, name, code=0):
    """Return a program that writes what the agent wrote."""
    path = tmp_path / agent
    vector = shlex.quote(os.path.abspath(os.path.join(VECTORS, agent, f"{name}.jsonl")))
    path.write_text(f'#!/bin/sh\ncat > prompt; echo "$@" > words; cat {vector}; exit {code}\n')
    path.chmod(0o755)
    return str(path)


def a_session(tmp_path, agent, name, code=0, **settings):
    program = replaying(tmp_path, agent, name, code)
    return open_session(
        agent, cwd=str(tmp_path), program=program, folder=str(tmp_path / "t"), **settings
    )


def shown(turn):
    usage = {name: value for name, value in vars(turn.usage).items() if value}
    found = {"text": turn.text, "stop_reason": turn.stop_reason, "usage": usage}
    found |= {"tools": list(turn.tools), "tool_calls": turn.tool_calls, "turns": turn.turns}
    return found | {"model": turn.model, "error": turn.error}


@pytest.mark.parametrize("case", EXPECTED, ids=lambda case: f"{case['agent']}-{case['file']}")
def test_a_real_output_is_read_as_the_turn_that_it_was(case, tmp_path, run):
    session = a_session(tmp_path, case["agent"], case["file"], code=case["code"])
    chosen = session.id  # where its output names no session
    assert shown(run(session.send("hello", "k"))) == case["turn"]
    assert session.id == (case["session"] or chosen)


@pytest.mark.parametrize("agent", headless())
def test_every_agent_has_outputs_of_a_start_a_continuation_and_an_error(agent):
    assert {"start", "resume", "error"} <= {c["file"] for c in EXPECTED if c["agent"] == agent}


@pytest.mark.rule("K2")
@pytest.mark.parametrize("agent", headless())
def test_the_second_turn_names_the_conversation_that_the_first_one_began(agent, tmp_path, run):
    session = a_session(tmp_path, agent, "start", args=("--mine", "x y"))
    run(session.send("hello", "k1"))
    begun = session.id
    run(session.send("-again", "k2"))
    words = (tmp_path / "words").read_text().split()
    assert begun in words
    assert "--mine" in words
    # Where it takes none on stdin.
    is_last = words[-2:] == ["--", "-again"]
    is_argument = is_last or bool({"--prompt=-again", "--task=-again"} & {*words})
    assert (tmp_path / "prompt").read_text() == ("" if is_argument else "-again")


@pytest.mark.rule("L5")
@pytest.mark.parametrize("agent", headless())
def test_shell_commands_of_every_agent_are_written_as_scripts_for_mux_look_for_them(
    agent, tmp_path, run
):
    session = a_session(tmp_path, agent, "start")
    turn = run(session.send("hello", "k"))
    wanted = '"tool_name":"bash".*"script":".*echo'
    assert subprocess.run(["grep", "-q", wanted, session.transcript()]).returncode == 0
    assert subprocess.run(["grep", "-q", '"output":"hi', session.transcript()]).returncode == 0
    assert last_message(session.transcript()) == turn.text


def test_sums_over_a_whole_conversation_become_the_figures_of_each_turn(tmp_path, run):
    session = a_session(tmp_path, "codex", "start")
    assert run(session.send("one", "k1")).usage.total == 20
    replaying(tmp_path, "codex", "resume")  # whose sum is 50
    again = reopen(json.loads(json.dumps(session.ref())))
    usage = run(again.send("two", "k2")).usage
    assert (usage.input, usage.output, usage.cache_read, usage.total) == (15, 9, 6, 30)


def test_of_a_conversation_that_others_began_no_sum_is_taken_for_a_turns_figures(tmp_path, run):
    session = a_session(tmp_path, "codex", "resume", session="11111111-2222-4333-8444-555555555555")
    assert run(session.send("one", "k1")).usage.total == 0
    assert run(session.send("two", "k2")).usage.total == 0


def test_a_conversation_that_codex_lost_is_a_prompt_that_was_not_sent(tmp_path, run):
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\necho 'Error: no rollout found for thread id x' >&2; exit 1\n")
    program.chmod(0o755)
    session = open_session(
        "codex",
        cwd=str(tmp_path),
        session="11111111-2222-4333-8444-555555555555",
        program=str(program),
    )
    with pytest.raises(SendError, match="does not have the conversation 1111"):
        run(session.send("hello", "k"))
    assert session.knows("k") is False


def spoken(tmp_path, run, agent, *entries, code=0, prompt="x" * 300_000):
    """Return the turn that a few lines come to."""
    program = tmp_path / agent
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    text = shlex.quote("\n".join(lines))
    program.write_text(f"#!/bin/sh\nexec 0<&-; printf '%s\\n' {text}; exit {code}\n")
    program.chmod(0o755)
    session = open_session(agent, cwd=str(tmp_path), program=str(program))
    return run(session.send(prompt, "k"))  # which nobody reads


def test_a_call_of_cursor_may_be_a_function_and_a_result_may_be_an_error(tmp_path, run):
    call = {"function": {"name": "search", "arguments": '{"query": "x"}'}}
    started = {"type": "tool_call", "subtype": "started", "tool_call": call}
    ended = {"type": "result", "is_error": True, "result": "out of credits"}
    turn = spoken(tmp_path, run, "cursor", started, ended, prompt="x")
    assert (turn.tools, turn.stop_reason, turn.error) == (("search",), "error", "out of credits")


def test_messages_of_goose_end_with_their_ids_and_its_errors_are_told(tmp_path, run):
    def said(number, text, role="assistant"):
        content = [{"type": "text", "text": text}, {"type": "systemNotification", "msg": "x"}]
        metadata = {"inference": {"requestedModel": "m"}}
        about = {"id": f"m{number}", "role": role, "content": content, "metadata": metadata}
        return {"type": "message", "message": about}

    first = [said(1, "Do"), said(1, "ne!"), said(2, "Stop hook blocked", "user")]
    done = {"type": "complete", "total_tokens": 20, "output_tokens": 3}
    done |= {"cache_read_input_tokens": 5, "input_tokens": 17}
    turn = spoken(tmp_path, run, "goose", *first, said(3, "Ran into this error: "), done)
    assert (turn.text, turn.stop_reason) == ("Ran into this error: ", "end_turn")
    assert (turn.usage.input, turn.usage.cache_read, turn.usage.total) == (12, 5, 20)
    failed = spoken(tmp_path, run, "goose", {"type": "error", "error": "no money"}, done)
    assert (failed.stop_reason, failed.error) == ("error", "no money")


def message(text, **fields):
    return {"type": "assistant", "message": {"content": [{"type": "text", "text": text}]}} | fields


def test_claude_tells_that_its_turns_are_used_up_and_that_is_no_error(tmp_path, run):
    result = {"type": "result", "subtype": "error_max_turns", "is_error": True, "num_turns": 9}
    turn = spoken(tmp_path, run, "claude", message("half"), result)
    assert (turn.stop_reason, turn.text, turn.turns, turn.error) == ("max_turns", "half", 9, None)


def test_of_claudes_subagents_neither_words_nor_tools_are_taken_for_its_own(tmp_path, run):
    theirs = message("theirs", parent_tool_use_id="t1")
    theirs["message"]["content"].append({"type": "tool_use", "name": "Bash", "input": {}})
    turn = spoken(tmp_path, run, "claude", message("mine"), theirs, {"type": "result"})
    assert (turn.text, turn.tools) == ("mine", ())


def test_a_result_of_claude_counts_more_than_what_came_before(tmp_path, run):
    result = {"type": "result", "result": "the end", "stop_reason": "refusal"}
    turn = spoken(tmp_path, run, "claude", message("before"), result)
    assert (turn.text, turn.stop_reason) == ("the end", "refusal")


def test_an_item_of_codex_is_one_call_whether_or_not_its_beginning_is_told(tmp_path, run):
    call = {"id": "i1", "type": "mcp_tool_call", "tool": "search", "arguments": {"q": 1}}
    edit = {"id": "i2", "type": "file_change", "changes": []}
    turn = spoken(
        tmp_path,
        run,
        "codex",
        {"type": "item.started", "item": call},
        {"type": "item.completed", "item": call},
        {"type": "item.completed", "item": edit},
        {"type": "item.completed", "item": {"id": "i3", "type": "reasoning", "text": "hm"}},
        {"type": "turn.completed"},
    )
    assert (turn.tools, turn.tool_calls) == (("search", "file_change"), 2)


def test_the_errors_that_codex_reports_while_it_tries_again_are_news(tmp_path, run):
    session = a_session(tmp_path, "codex", "error", code=1)
    heard = []
    session.on_news = lambda news: heard.append((news.kind, news.text))
    run(session.send("hello", "k"))
    errors = [text for kind, text in heard if kind == "error"]
    assert errors == [
        "We\u2019re currently experiencing high demand, which may cause temporary errors."
    ]


def test_an_answer_of_gemini_in_pieces_is_one_answer(tmp_path, run):
    pieces = [
        {"type": "message", "role": "assistant", "content": text, "delta": True}
        for text in ("One ", "and ", "two.")
    ]
    warning = {"type": "error", "severity": "warning", "message": "loop"}
    done = {"type": "result", "status": "success"}
    turn = spoken(tmp_path, run, "gemini", *pieces, warning, done)
    assert (turn.text, turn.error) == ("One and two.", None)


def test_an_exit_code_that_copilot_tells_is_an_error(tmp_path, run):
    turn = spoken(tmp_path, run, "copilot", {"type": "result", "exitCode": 3})
    assert turn.error == "copilot says that it failed with exit code 3"


def test_an_answer_that_was_cut_off_is_an_error_and_is_kept(tmp_path, run):
    turn = spoken(tmp_path, run, "claude", message("half"), code=7)
    assert (turn.stop_reason, turn.text) == ("error", "half")
    assert "(exit code 7)" in turn.error


def test_a_reader_that_raises_loses_its_line_and_no_other(tmp_path, run, monkeypatch):
    def read(entry, reading):
        reading.say(entry["text"])
        reading.finish()

    monkeypatch.setitem(READERS, "claude-stream", read)
    turn = spoken(tmp_path, run, "claude", {"no": "text"}, {"text": "there"}, {"no": "text"})
    assert (turn.text, turn.error) == ("there", None)
    turn = spoken(tmp_path, run, "claude", {"no": "text"})
    assert "a line of its output could not be read" in turn.error


@pytest.mark.parametrize("depth", [500, 900, 990, 100_000])
def test_a_line_that_is_nested_deeply_does_not_cost_us_the_answer_after_it(depth, tmp_path, run):
    program = tmp_path / "claude"
    given = "[" * depth + "]" * depth
    block = '{"type": "tool_use", "name": "x", "input": ' + given + "}"
    deep = '{"type": "assistant", "message": {"content": [' + block + "]}}"
    done = json.dumps({"type": "result", "result": "there"})
    (tmp_path / "out").write_text(f"{deep}\n{done}\n")
    program.write_text("#!/bin/sh\ncat out\n")
    program.chmod(0o755)
    session = open_session("claude", cwd=str(tmp_path), program=str(program))
    turn = run(session.send("x", "k"))
    assert (turn.text, turn.stop_reason) == ("there", "end_turn")


def test_an_agent_that_renames_its_conversations_is_marked_by_our_process_alone(tmp_path, run):
    session = a_session(tmp_path, "droid", "start")
    run(session.send("hello", "k1"))
    program = tmp_path / "droid"
    program.write_text(program.read_text().replace("cat > prompt", 'echo "$NOTYET_SUPERVISED" > m'))
    run(session.send("again", "k2"))
    assert (tmp_path / "m").read_text() == f"{os.getpid()}\n"


def test_a_prompt_that_is_an_argument_stays_one_word_whatever_it_says(tmp_path, run):
    program = tmp_path / "kimi"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@" > words\n')
    program.chmod(0o755)
    session = open_session("kimi", cwd=str(tmp_path), program=str(program))
    turn = run(session.send("say {id} and\n{args}", "k"))
    words = ["--output-format", "stream-json", "--prompt=say {id} and\n{args}", ""]
    assert (tmp_path / "words").read_text().split("|") == words
    assert turn.stop_reason == "error"


def test_a_call_of_kimi_whose_arguments_are_no_json_is_a_call(tmp_path, run):
    call = {"function": {"name": "Bash", "arguments": "echo hi"}}
    hint = {"role": "meta", "type": "session.resume_hint", "session_id": "s"}
    entry = {"role": "assistant", "content": "Done.", "tool_calls": [call]}
    turn = spoken(tmp_path, run, "kimi", entry, hint, prompt="x")
    assert (turn.text, turn.tools, turn.stop_reason) == ("Done.", ("Bash",), "end_turn")


def test_openhands_that_reached_its_most_iterations_did_not_fail(tmp_path, run):
    action = {"kind": "ActionEvent", "source": "agent", "tool_name": "terminal"}
    action |= {"action": {"command": "ls"}, "thought": [{"text": "I look."}]}
    end = {"kind": "ConversationErrorEvent", "code": "MaxIterationsReached", "detail": "500"}
    turn = spoken(tmp_path, run, "openhands", action, end, prompt="x")
    assert (turn.text, turn.stop_reason, turn.error) == ("I look.", "max_turns", None)


def test_openhands_that_ended_after_a_hook_sent_it_back_gave_no_answer(tmp_path, run):
    said = {"kind": "MessageEvent", "source": "agent", "llm_message": {"content": "Done."}}
    sent_back = {"kind": "MessageEvent", "source": "environment"}
    turn = spoken(tmp_path, run, "openhands", said, sent_back, prompt="x")
    assert turn.stop_reason == "error"
    assert turn.error.startswith("openhands ended without an answer (exit code 0)")
