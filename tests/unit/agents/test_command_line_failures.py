"""What can go wrong with an agent that is a program: missing, garbled, dead, or left behind."""

import asyncio
import json
import os
import signal

import pytest

from commands import until
from notyet.agents import command_line, open_session, reopen
from notyet.errors import SendError
from notyet.run import agent_program as orphans
from notyet.run.proc import is_gone, start_time


def said(turn):
    return json.loads(turn.text)


def test_a_program_that_is_missing_is_said_with_what_to_install(tmp_path, run, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    session = open_session("codex", cwd=str(tmp_path))
    with pytest.raises(SendError, match="not found on the PATH; npm install -g @openai/codex"):
        run(session.send("x", "k"))
    assert session.knows("k") is False
    assert reopen(session.ref()).knows("k") is False


def test_without_a_journal_nothing_is_sent(fake_claude, run, tmp_path):
    (tmp_path / "transcripts").write_text("in the way")
    session = fake_claude()
    with pytest.raises(SendError, match="cannot be written, so nothing was sent"):
        run(session.send("x", "k"))
    assert os.listdir(tmp_path / "state") == []


def test_output_of_nothing_but_garbage_is_an_error_that_says_so(fake_claude, run):
    turn = run(fake_claude().send("only garbage huge", "k"))
    assert turn.stop_reason == "error"
    assert "without an answer (exit code 0): 5 lines of its output could not be read" in turn.error


def test_a_crash_is_an_error_with_the_end_of_what_it_complained_about(fake_claude, run):
    turn = run(fake_claude().send("crash", "k"))
    assert turn.stop_reason == "error"
    assert turn.error == (
        "claude ended without an answer (exit code 1): something terrible happened"
    )


def test_a_death_by_signal_is_told_as_such(tmp_path, run):
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nkill -KILL $$\n")
    program.chmod(0o755)
    session = open_session("claude", cwd=str(tmp_path), program=str(program))
    assert "(signal 9)" in run(session.send("x", "k")).error


@pytest.mark.rule("K19")
def test_an_empty_answer_is_an_answer(fake_claude, run):
    turn = run(fake_claude().send("empty", "k"))
    assert (turn.text, turn.stop_reason) == ("", "end_turn")


def test_an_agent_that_does_not_end_after_its_answer_is_ended(fake_claude, run, monkeypatch):
    monkeypatch.setattr(command_line, "_LINGER", 0.3)
    turn = run(fake_claude().send("linger", "k"))
    assert (said(turn)["prompts"], turn.stop_reason) == (1, "end_turn")


def test_an_agent_whose_hooks_come_after_its_answer_is_not_ended(tmp_path, run, monkeypatch):
    monkeypatch.setattr(command_line, "_LINGER", 0.0)
    said = '{"kind": "MessageEvent", "source": "agent", "llm_message": {"content": "%s"}}'
    program = tmp_path / "openhands"
    first, second = (f"echo '{said % words}'" for words in ("Done.", "Now it is."))
    program.write_text(f"#!/bin/sh\n{first}; sleep 0.3; {second}\n")
    program.chmod(0o755)
    session = open_session("openhands", cwd=str(tmp_path), program=str(program))
    turn = run(session.send("x", "k"))
    assert (turn.text, turn.stop_reason) == ("Now it is.", "end_turn")


@pytest.mark.parametrize("missing", [("pidfd_open",), ("pidfd_open", "waitid")])
def test_it_works_where_the_system_does_not_tell_of_an_exit(
    missing, fake_claude, run, aborted, monkeypatch
):
    for name in missing:
        monkeypatch.delattr(os, name)
    session = fake_claude()

    async def talk():
        return await session.send("child", "k1"), await aborted(session, "slow")

    first, second = run(talk())
    assert (first.stop_reason, second.stop_reason) == ("end_turn", "cancelled")


def test_an_abort_while_an_orphan_is_ended_starts_nothing(fake_claude, run, tmp_path, monkeypatch):
    monkeypatch.setattr(orphans, "STEPS", ((signal.SIGINT, 30.0), (signal.SIGKILL, 10.0)))
    script = "trap ': > told' INT; : > deaf; while ! [ -e go ]; do sleep 0.01; done"
    argv = ["sh", "-c", f'cd "$0"; {script}', str(tmp_path)]
    pid = os.posix_spawn("/bin/sh", argv, os.environ, setsid=True)

    async def talk():
        sending = asyncio.create_task(session.send("x", "slow"))
        while not (tmp_path / "told").exists():
            await asyncio.sleep(0.01)
        await session.abort()
        (tmp_path / "go").touch()
        return await sending

    try:
        assert until((tmp_path / "deaf").exists)
        session = reopen(fake_claude().ref() | {"pid": pid, "started": start_time(pid)})
        turn = run(talk())
    finally:
        os.waitpid(pid, 0)
    assert (turn.stop_reason, session.knows("slow")) == ("cancelled", False)


@pytest.mark.rule("K7")
def test_a_reopened_session_knows_what_arrived_what_did_not_and_what_cannot_be_known(
    fake_claude, run, aborted
):
    session = fake_claude()

    async def talk():
        await session.send("one", "arrived")
        return await aborted(session, "early", "ref")

    run(talk())
    again = reopen(session.ref())
    assert again.knows("arrived") is True
    assert again.knows("slow") is None
    assert again.knows("never sent") is False
    session.discard()
    assert again.knows("arrived") is None


@pytest.mark.rule("K7")
@pytest.mark.usefixtures("impatient")
def test_a_reopened_session_ends_the_agent_that_was_left_behind(fake_claude, run, tmp_path):
    program = tmp_path / "left behind"
    program.write_text("#!/bin/sh\ntrap '' INT\nsleep 60 & sleep 60\n")
    program.chmod(0o755)
    pid = os.posix_spawn(program, [str(program)], os.environ, setsid=True)
    try:
        left = fake_claude().ref() | {"pid": pid, "started": start_time(pid)}
        other = left | {"started": "1"}
        run(reopen(other).abort())
        assert not is_gone(pid, left["started"])
        session = reopen(left)
        run(session.abort())
        assert is_gone(pid, left["started"])
        assert session.ref()["pid"] == 0
    finally:
        os.waitpid(pid, 0)


@pytest.mark.rule("K7", "E2")
def test_the_agent_ends_when_this_process_is_killed(fake_claude, tmp_path):
    ref = fake_claude().ref()
    child = os.fork()
    if child == 0:
        session = reopen(ref)

        def note(news):
            if news.kind == "accepted":
                (tmp_path / "pid.part").write_text(json.dumps(session.ref()))
                os.rename(tmp_path / "pid.part", tmp_path / "pid")

        session.on_news = note
        asyncio.run(session.send("slow child", "k"))
        os._exit(0)
    assert until((tmp_path / "pid").exists)
    os.kill(child, 9)
    os.waitpid(child, 0)
    left = json.loads((tmp_path / "pid").read_text())
    assert until(lambda: is_gone(left["pid"], left["started"]))
