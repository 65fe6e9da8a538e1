"""The agent that follows a script."""

import asyncio
import json
import os
import time

import pytest

from commands import until
from notyet.agents import reopen
from notyet.agents.script import Fail, Garbage, Hang, Say, Scene, Script, Tool, Wait, Write
from notyet.agents.scripted import ScriptedSession
from notyet.core.event import Usage
from notyet.errors import Refused, SendError
from notyet.run.proc import is_gone, start_time


def playing(*steps, **settings):
    return ScriptedSession(Script(turns=(Scene(steps=steps), Scene())), **settings)


def kinds(session):
    heard = []
    session.on_news = lambda news: heard.append((news.kind, news.tool or news.text))
    return heard


def test_it_plays_its_turns_one_by_one_and_then_repeats_the_last(run):
    session = ScriptedSession(Script.saying("One.", "Two."))

    async def talk():
        return [(await session.send("go", f"k{n}")).text for n in range(4)]

    assert run(talk()) == ["One.", "Two.", "Two.", "Two."]
    assert session.prompts == [(f"k{n}", "go") for n in range(4)]


def test_it_can_have_an_end_instead(run):
    session = ScriptedSession(Script(turns=(Scene(),), after="error"))

    async def talk():
        await session.send("go", "k1")
        return await session.send("go", "k2")

    turn = run(talk())
    assert (turn.stop_reason, turn.error) == ("error", "the script has no more turns")


def test_it_says_calls_writes_and_waits_as_it_is_told(run, tmp_path):
    script = Script(
        model="scripted/one",
        turns=(
            Scene(
                steps=(
                    Say("I begin."),
                    Tool("bash", {"script": "pwd"}, "pwd; echo err >&2; exit 3"),
                    Tool("bash", {"script": "x"}, ("printf", "%s", "a b")),
                    Write("src/deep/a.txt", "hello"),
                    Wait(0.01),
                    Say("Done."),
                ),
                usage=Usage(input=9, total=9),
            ),
        ),
    )
    session = ScriptedSession(script, cwd=str(tmp_path), folder=str(tmp_path / "t"))
    heard = kinds(session)
    turn = run(session.send("go", "k"))
    assert (turn.text, turn.tools, turn.tool_calls) == ("Done.", ("bash", "write"), 3)
    assert (turn.usage.input, turn.model, turn.error) == (9, "scripted/one", None)
    assert (tmp_path / "src" / "deep" / "a.txt").read_text() == "hello"
    assert [kind for kind, _ in heard] == [
        *("accepted", "ref", "text", "tool", "tool", "tool", "text"),
    ]
    with open(session.transcript(), "rb") as file:
        entries = [json.loads(line) for line in file]
    results = [entry["output"] for entry in entries if entry["type"] == "tool_result"]
    assert results == [f"{tmp_path}\nerr\nexit code 3", "a b\nexit code 0"]


def test_a_tool_can_be_a_function_of_python_which_may_be_awaited(run):
    calls = []

    async def search(query):
        await asyncio.sleep(0)
        calls.append(query)
        return 42

    session = playing(
        Tool("search", {"query": "a"}),
        Tool("note", {"text": "b"}),
        Tool("nobody"),
        tools={"search": search, "note": lambda text: calls.append(text) or ""},
    )
    assert run(session.send("go", "k")).tool_calls == 3
    assert calls == ["a", "b"]


def test_a_tool_that_raises_is_an_error_of_the_turn(run):
    turn = run(playing(Tool("x"), Say("no"), tools={"x": lambda: 1 / 0}).send("go", "k"))
    assert (turn.stop_reason, turn.text) == ("error", "")
    assert turn.error == "the tool failed: ZeroDivisionError: division by zero"


@pytest.mark.rule("K19")
def test_an_answer_can_be_empty_and_can_be_garbage(run):
    session = ScriptedSession(Script(turns=(Scene(), Scene(steps=(Garbage(500),)))))

    async def talk():
        return await session.send("go", "k1"), await session.send("go", "k2")

    empty, garbage = run(talk())
    assert (empty.text, empty.stop_reason) == ("", "end_turn")
    assert len(garbage.text) == 500
    assert "\x1b" in garbage.text


def test_a_failure_can_be_followed_by_the_news_of_a_success(run):
    session = playing(Say("half"), Fail("overloaded", "It went well.", 0.05), Say("never"))
    told = []
    session.on_news = lambda news: told.append(news) if news.kind == "ended" else None

    async def talk():
        turn = await session.send("go", "k")
        while not told:
            await asyncio.sleep(0.01)
        return turn

    turn = run(talk())
    assert (turn.stop_reason, turn.error, turn.text) == ("error", "overloaded", "half")
    assert [(news.turn.text, news.turn.error) for news in told] == [("It went well.", None)]


async def forever():
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "step",
    [Hang(), Wait(60), Tool("x", {}, "sleep 60"), Tool("forever"), Tool("deaf", {}, "sleep 60")],
)
def test_an_abort_ends_whatever_it_does_at_once(step, run):
    session = playing(Say("so far"), step, Say("never"), tools={"forever": forever})
    heard = kinds(session)
    last = "tool" if isinstance(step, Tool) else "text"

    async def talk():
        sending = asyncio.create_task(session.send("go", "k1"))
        while last not in [kind for kind, _ in heard]:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        await session.abort()
        turn = await sending
        return turn, time.monotonic() - began, await session.send("go", "k2")

    turn, seconds, again = run(talk())
    assert (turn.stop_reason, turn.text, turn.error) == ("cancelled", "so far", None)
    assert seconds < 10
    assert again.stop_reason == "end_turn"


@pytest.mark.rule("E2")
def test_a_cancelled_send_leaves_no_command_behind(run, tmp_path):
    session = playing(Tool("x", {}, "echo $$ > pid; sleep 60"), cwd=str(tmp_path))

    async def talk():
        sending = asyncio.create_task(session.send("go", "k1"))
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.wait({sending})
        return (await session.send("go", "k2")).stop_reason

    assert run(talk()) == "end_turn"
    pid = int((tmp_path / "pid").read_text())
    assert until(lambda: is_gone(pid, start_time(pid)))


@pytest.mark.rule("K7")
def test_a_reopened_session_knows_what_arrived_and_goes_on_with_the_next_turn(run, tmp_path):
    script = Script(turns=(Scene(steps=(Say("One."),)), Scene(steps=(Say("Two."),))))
    session = ScriptedSession(script, folder=str(tmp_path / "t"))
    run(session.send("go", "k1"))
    again = reopen(json.loads(json.dumps(session.ref())))
    assert (again.knows("k1"), again.knows("k2")) == (True, False)
    assert run(again.send("go", "k2")).text == "Two."
    assert session.knows("k2") is False  # this object did not see it
    again.discard()
    assert os.listdir(tmp_path / "t") == []


@pytest.mark.rule("K7")
def test_refusals_are_counted_across_processes(run, tmp_path):
    script = Script(turns=(Scene(steps=(Say("One."),), refuse=2),))
    for _ in range(2):
        session = ScriptedSession(script, folder=str(tmp_path), session="s")
        with pytest.raises(SendError, match="refuses this prompt"):
            run(session.send("go", "k"))
        assert session.knows("k") is False
    session = ScriptedSession(script, folder=str(tmp_path), session="s")
    assert run(session.send("go", "k")).text == "One."
    assert reopen(session.ref()).knows("k") is True


def test_a_folder_that_cannot_be_written_means_that_nothing_arrived(run, tmp_path):
    (tmp_path / "t").write_text("in the way")
    session = ScriptedSession(Script.saying("One."), folder=str(tmp_path / "t"))
    with pytest.raises(SendError, match="cannot be written"):
        run(session.send("go", "k"))
    assert session.knows("k") is False


def test_a_transcript_that_cannot_be_read_is_said_when_a_session_is_reopened(tmp_path):
    session = ScriptedSession(Script.saying("x"), folder=str(tmp_path))
    os.mkdir(session.transcript())
    with pytest.raises(
        Refused, match="cannot be read, so it is unknown which prompts arrived: Is a"
    ):
        reopen(session.ref())
