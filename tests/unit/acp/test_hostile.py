"""`notyet acp` between a client and an agent that break the protocol, or go at a bad time."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from acp_editor import AGENT
from notyet.acp.marks import Marks
from process_table import processes_in
from support import wait_for

ONLY_V1 = pytest.mark.parametrize("version", [1], indirect=True)
ONLY_V2 = pytest.mark.parametrize("version", [2], indirect=True)


def outcomes(stops):
    return [outcome for outcome, _ in stops()]


@ONLY_V1
@pytest.mark.parametrize("odd", ["BARE", "LIST", "NULL"])
def test_an_odd_answer_to_a_send_back_is_its_end(edit, project, odd, stops):
    editor = edit()
    result = editor.ask(editor.new(project.once(odd).folder), "NOUSAGE")
    assert result["stopReason"] == "end_turn"
    assert outcomes(stops) == ["blocked", "passed"]


@ONLY_V1
@pytest.mark.parametrize("odd", ["BARE", "LIST", "NULL"])
def test_an_odd_answer_to_a_prompt_is_gated(edit, project, odd, stops):
    editor = edit("--max-blocks", "1")
    editor.ask(editor.new(project.gate("exit 1").folder), odd)
    assert outcomes(stops) == ["blocked", "capped"]


@ONLY_V1
def test_a_prompt_that_is_answered_with_another_id_ends_unchecked(edit, project, stops):
    editor = edit()
    result = editor.ask(editor.new(project.gate("exit 1").folder), "ODD")
    assert result["stopReason"] == "end_turn"
    assert "NOT CHECKED: the agent answered the prompt with an unknown id" in editor.text()


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_send_back_that_does_not_come_to_its_gates_is_not_passed(edit, project, reason, stops):
    editor = edit()
    result = editor.ask(editor.new(project.once(f"STOP={reason}").folder), "go")
    assert result["stopReason"] == reason
    words = f"**notyet**: NOT PASSED: the agent was sent back, and ended with {reason}"
    assert words in editor.text()


@ONLY_V2
def test_an_agent_that_does_not_say_that_it_works_is_gated(edit, project, stops):
    editor = edit()
    editor.ask(editor.new(project.gate("true").folder), "QUIET")
    assert outcomes(stops) == ["passed"]


@ONLY_V2
def test_an_end_that_is_said_twice_is_held(edit, project, stops):
    editor = edit()
    editor.ask(editor.new(project.gate("sleep 0.5").folder), "TWICE")
    assert outcomes(stops) == ["passed"]


@ONLY_V2
def test_an_agent_that_goes_on_by_itself_while_gates_run_is_gated_at_its_end(edit, project, stops):
    editor = edit()
    script = f"test -e {project.folder}/ran && exit 0; touch {project.folder}/ran; sleep 600"
    editor.ask(editor.new(project.gate(script).folder), "AGAIN")
    assert outcomes(stops) == ["skipped", "passed"]


@ONLY_V2
@pytest.mark.rule("B10")
def test_an_agent_is_gated_when_its_background_work_has_ended(edit, project, stops):
    editor = edit("--max-blocks", "1")
    session = editor.new(project.gate("exit 1").folder)
    assert editor.ask(session, "BEHIND")["background"]
    assert stops() == [("skipped", "background")]
    assert editor.end(session, None)["_meta"]["notyet"]["outcome"] == "capped"


@ONLY_V1
def test_an_older_prompt_that_ends_last_is_gated_too(edit, project, stops):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    older, newer = editor.prompt(session, "WAIT=2"), editor.prompt(session, "go")
    editor.end(session, newer)
    editor.end(session, older)
    assert outcomes(stops) == ["passed", "passed"]


@ONLY_V1
def test_a_cancellation_during_a_gate_reaches_an_agent_that_works_on_another_prompt(edit, project):
    editor = edit()
    session = editor.new(project.gate("sleep 600").folder)
    older, newer = editor.prompt(session, "HANG"), editor.prompt(session, "go")
    editor.until(lambda m: "notyet: tests" in str(m))
    editor.send(method="session/cancel", params={"sessionId": session})
    assert editor.end(session, newer)["stopReason"] == "cancelled"
    assert editor.end(session, older)["stopReason"] == "cancelled"


def test_a_client_that_dies_while_its_agent_reads_nothing_leaves_nothing_behind(edit, project):
    editor = edit()
    session = editor.new(project.gate("true").folder)
    agent = int(session.rpartition("-")[2])
    editor.send(method="_lose", params={})

    def flood():
        with suppress(OSError, ValueError):
            editor.send(method="x", params={"x": "y" * 10_000_000})

    threading.Thread(target=flood, daemon=True).start()
    time.sleep(1)  # by then the proxy reads no more
    descriptor = editor.process.stdin.fileno()
    os.set_blocking(descriptor, False)  # so that the thread gives up
    time.sleep(0.2)
    os.close(descriptor)
    assert editor.process.wait(20) == 0
    wait_for(lambda: not os.path.exists(f"/proc/{agent}"))


def test_a_turn_that_ends_after_its_client_left_runs_no_gate(edit, project, stops):
    editor = edit(agent=(sys.executable, AGENT, "--stays"))
    session = editor.new(project.gate("touch ran").folder)
    editor.prompt(session, "WAIT=1")
    wait_for(lambda: editor.call("_heard", sessionId=session))
    editor.close()
    assert not (project.folder / "ran").exists()
    assert stops() == []


@pytest.mark.parametrize("stdin", ["/dev/null", "&-"])
def test_a_stdin_that_is_no_pipe_is_refused_in_words(stdin):
    command = f"exec {sys.executable} -m notyet acp -- {sys.executable} {AGENT} <{stdin}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert b"speaks to it over pipes; stdin is closed, or a device" in done.stderr


def test_an_untrusted_file_beside_gates_that_run_is_said_once(edit, project, stops, tmp_path):
    config = tmp_path / "config"
    (config / "notyet").mkdir(parents=True)
    (config / "notyet" / "notyet.toml").write_text('[gates.mine]\nrun = "true"\nwhen = "always"\n')
    editor = edit(environ={"XDG_CONFIG_HOME": str(config)})
    session = editor.new(project.gate("exit 1", trusted=False).folder)
    editor.ask(session, "go")
    editor.ask(session, "go on")
    assert editor.text().count("notyet.toml is not trusted; run: notyet trust") == 1


def test_a_mark_of_another_proxy_stays(tmp_path):
    marks = Marks(str(tmp_path))
    marks.add("s1", "s1")
    (file,) = (tmp_path / "acp").iterdir()
    file.write_text("1\ns1")  # as another proxy writes it that has loaded the session
    marks.remove()
    assert file.exists()


def test_an_agent_that_closes_its_stdout_ends_the_turn(edit, project):
    editor = edit()
    session = editor.new(project.once("DEAF").folder)
    editor.prompt(session, "go")
    assert editor.process.wait(20) == 128 + signal.SIGTERM
    wait_for(lambda: "NOT PASSED: the agent was sent back, and ended" in all_text(editor))


def all_text(editor):
    with suppress(EOFError):
        editor.until(lambda _: False, patience=5)
    return editor.text()


def test_what_left_the_group_of_a_gate_ends_with_the_proxy(edit, project):
    editor = edit()
    folder = project.gate("setsid sleep 600 & sleep 0.5").folder
    editor.ask(editor.new(folder), "go")
    editor.close()
    assert not processes_in(folder)
