"""Transcripts of ours: what hook scripts find in them, and what they tell after a crash."""

import json
import os
import subprocess
import threading

import pytest

from mux_document import FORCING, SUBAGENT_CHECK, TEST_VERIFICATION
from notyet.agents import reopen
from notyet.agents.script import Say, Scene, Script, Tool
from notyet.agents.scripted import ScriptedSession
from notyet.agents.transcript_writer import SentBefore, Transcript
from notyet.hosts.transcript import last_message

pytestmark = pytest.mark.rule("L5")


def a_session(tmp_path, *steps):
    return ScriptedSession(Script(turns=(Scene(steps=steps),)), folder=str(tmp_path / "t"))


def bash(script, path):
    environ = os.environ | {"MUX_TRANSCRIPT_PATH": path, "MUX_STOP_HOOK_ACTIVE": ""}
    return subprocess.run(["bash", "-c", script], env=environ, capture_output=True).returncode


@pytest.mark.parametrize(
    ("script", "steps", "code"),
    [
        (TEST_VERIFICATION, (Say("I am done."),), 2),
        (TEST_VERIFICATION, (Say("All tests\npass now."),), 0),
        (
            TEST_VERIFICATION,
            (Tool("bash", {"script": "x"}, "echo the test did pass"), Say("Done.")),
            0,
        ),
        (SUBAGENT_CHECK, (Say("I am done."),), 2),
        (SUBAGENT_CHECK, (Tool("read", {"path": "a"}), Say("I am done.")), 0),
        (FORCING, (Tool("bash", {"script": "ls"}), Say("I ran a test.")), 2),
        (FORCING, (Tool("bash", {"timeout": 5, "script": "cd x && npm test"}),), 0),
    ],
)
def test_scripts_that_people_wrote_for_mux_work_unmodified(script, steps, code, tmp_path, run):
    session = a_session(tmp_path, *steps)
    run(session.send("Do it.", "k"))
    assert bash(script, session.transcript()) == code


def test_the_last_message_is_read_from_it_as_from_a_hosts(tmp_path, run):
    session = a_session(tmp_path, Say("first"), Tool("bash", {"script": "x"}), Say("the ländst"))
    run(session.send("Do it.", "k"))
    assert last_message(session.transcript()) == "the ländst"
    assert "the ländst" in (tmp_path / "t" / f"{session.id}.jsonl").read_text(encoding="utf-8")


def test_each_entry_is_one_compact_line_of_bounded_length(tmp_path):
    transcript = Transcript(str(tmp_path / "a" / "b.jsonl"))
    transcript.prompt("k", "x" * 3_000_000)
    transcript.said("\x00\n\ud83d" * 1_000_000)
    transcript.tool("odd", {"given": object(), "deep": [{"n": 1.5}]})
    transcript.tool("long", {"text": "é" * 1_000_000})
    transcript.result("r" * 100_000)
    lines = (tmp_path / "a" / "b.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["type"] for line in lines] == [
        *("user", "assistant", "tool", "tool", "tool_result"),
    ]
    assert max(map(len, lines)) < 8 * 1024 * 1024
    assert len(lines[3]) < 600_000
    assert b'"tool_name":"odd","tool_input":{' in lines[2]
    assert last_message(str(tmp_path / "a" / "b.jsonl"))


def test_lines_of_two_writers_never_mix(tmp_path):
    path = str(tmp_path / "t.jsonl")

    def write(name):
        for number in range(50):
            Transcript(path).prompt(f"{name}-{number}", name * 5000)

    writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(Transcript(path).fates()) == 200


def test_it_tells_what_became_of_each_prompt_also_after_a_crash_in_the_midst(tmp_path):
    path = tmp_path / "t.jsonl"
    transcript = Transcript(str(path))
    assert transcript.fates() is None
    transcript.prompt("a", "x")
    transcript.accepted("a")
    transcript.prompt("b", "x")
    transcript.refused("b")
    transcript.prompt("c", "x")
    with path.open("ab") as file:
        file.write(b'[1]\n{"type":"user","key":7}\n\xff\n{"type":"user","key":"d","mess')
    assert transcript.fates() == {"a": "accepted", "b": "refused", "c": "sent"}


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "t.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"t\.jsonl"):
        Transcript(str(tmp_path / "t.jsonl")).said("x")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.rule("K7")
def test_a_prompt_is_written_once_for_each_key_unless_it_was_refused(tmp_path):
    path = str(tmp_path / "t.jsonl")
    first, second = Transcript(path), Transcript(path)
    first.prompt("k", "go")
    first.accepted("k")
    with pytest.raises(SentBefore, match="another process has sent this prompt"):
        second.prompt("k", "go")
    assert second.fates() == {"k": "accepted"}
    second.prompt("k2", "go")
    second.refused("k2")
    first.prompt("k2", "go")


@pytest.mark.rule("K7")
def test_of_two_processes_that_write_a_prompt_at_once_the_first_in_the_file_sends_it(
    tmp_path, monkeypatch
):
    path = str(tmp_path / "t.jsonl")
    first, second = Transcript(path), Transcript(path)
    looks = iter([lambda: first.prompt("k", "go"), lambda: None])
    real = Transcript._has

    def look(self, key, before=None):
        found = real(self, key, before)
        if self is second:
            next(looks)()
        return found

    monkeypatch.setattr(Transcript, "_has", look)
    with pytest.raises(SentBefore):
        second.prompt("k", "go")


@pytest.mark.rule("K7")
def test_sessions_that_keep_keys_refuse_a_prompt_that_another_process_has_sent(
    tmp_path, fake_claude, run
):
    slow = fake_claude()
    fast = reopen(slow.ref())
    run(fast.send("go", "k"))
    with pytest.raises(SentBefore):
        run(slow.send("go", "k"))
    assert reopen(slow.ref()).knows("k") is True
    scripted = ScriptedSession(Script.saying("One."), folder=str(tmp_path / "f"))
    again = reopen(scripted.ref())
    run(again.send("go", "k"))
    for session in (again, scripted):
        with pytest.raises(SentBefore):
            run(session.send("go", "k"))
