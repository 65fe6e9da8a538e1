"""A session with a program: what it is given, how its turns end, and what crashes leave."""

import asyncio
import json
import os
import signal
import stat

import pytest

from commands import until
from notyet.agents import open_session, reopen
from notyet.run import agent_program as running
from notyet.run.proc import is_gone, start_time


def news_of(session):
    heard = []
    session.on_news = heard.append
    return heard


def said(turn):
    return json.loads(turn.text)


@pytest.mark.rule("K2")
def test_a_conversation_goes_on_in_another_process_of_ours_with_its_whole_history(fake_claude, run):
    session = fake_claude()
    first = run(session.send("one", "k1"))
    assert said(first)["prompts"] == 1
    assert (first.model, first.usage.total, first.stop_reason) == ("fake-1", 15, "end_turn")
    again = reopen(json.loads(json.dumps(session.ref())))
    assert said(run(again.send("two", "k2")))["prompts"] == 2
    assert again.id == session.id


def test_the_program_has_a_group_of_its_own_and_knows_that_it_is_supervised(fake_claude, run):
    session = fake_claude()
    turn = said(run(session.send("x", "k")))
    assert (turn["group"], turn["supervised"]) == (True, f"{os.getpid()}:{session.id}")


@pytest.mark.parametrize("prompt", ["-p", "--help", "'$(x)\"\n", "é\0", "x" * 1_000_000])
def test_a_prompt_arrives_as_it_is_whatever_it_looks_like(prompt, fake_claude, run):
    turn = said(run(fake_claude().send(prompt, "k")))
    assert (turn["length"], turn["last"]) == (len(prompt), prompt[:20])


def test_news_tell_of_the_process_the_prompt_the_words_and_the_end(fake_claude, run):
    session = fake_claude()
    heard = news_of(session)
    refs = []
    session.on_news = lambda news: (heard.append(news), refs.append(session.ref()))
    turn = run(session.send("x", "k"))
    assert [news.kind for news in heard] == ["ref", "accepted", "ref", "text", "ref"]
    assert heard[3].text == turn.text
    assert refs[0]["pid"] > 0
    assert refs[0]["started"]
    assert (refs[2]["begun"], refs[-1]["pid"]) == (True, 0)


def test_a_watcher_that_raises_ends_nothing(fake_claude, run):
    session = fake_claude()
    session.on_news = lambda news: 1 / 0
    problems = []

    async def talk():
        handler = lambda loop, context: problems.append(context["message"])
        asyncio.get_running_loop().set_exception_handler(handler)
        return await session.send("x", "k")

    assert run(talk()).stop_reason == "end_turn"
    assert set(problems) == {"on_news failed"}


@pytest.mark.rule("E2")
def test_an_aborted_turn_is_cancelled_its_processes_are_gone_and_the_next_works(
    fake_claude, run, aborted
):
    session = fake_claude()
    heard = news_of(session)

    async def talk():
        first = await aborted(session, "slow child", "text")
        return first, await session.send("go on", "k2")

    first, second = run(talk())
    assert (first.stop_reason, first.error) == ("cancelled", None)
    child = next(int(news.text) for news in heard if news.kind == "text")
    assert until(lambda: is_gone(child, start_time(child)))
    assert said(second)["prompts"] == 2


@pytest.mark.rule("E2")
def test_what_an_agent_leaves_in_its_group_ends_with_it(fake_claude, run):
    session = fake_claude()
    heard = news_of(session)
    run(session.send("child", "k"))
    child = next(int(news.text) for news in heard if news.kind == "text")
    assert until(lambda: is_gone(child, start_time(child)))


def test_a_first_turn_that_was_aborted_before_it_was_kept_is_begun_again(fake_claude, run, aborted):
    session = fake_claude()

    async def talk():
        first = await aborted(session, "early", "ref")
        return first, await session.send("go on", "k2")

    first, second = run(talk())
    assert first.stop_reason == "cancelled"
    assert session.knows("slow") is None
    assert said(second)["prompts"] == 1


def test_a_conversation_that_is_there_although_we_did_not_see_it_begin_is_continued(
    fake_claude, run
):
    session = fake_claude()
    run(session.send("one", "k1"))
    stale = session.ref() | {"begun": False}
    assert said(run(reopen(stale).send("two", "k2")))["prompts"] == 2


def test_a_conversation_that_is_not_there_although_it_began_is_begun_again(
    fake_claude, run, tmp_path
):
    session = fake_claude()
    run(session.send("one", "k1"))
    os.unlink(tmp_path / "state" / session.id)
    assert said(run(session.send("two", "k2")))["prompts"] == 1


@pytest.mark.usefixtures("impatient")
def test_an_agent_that_does_not_listen_is_ended_by_force(fake_claude, run, aborted):
    assert run(aborted(fake_claude(), "deaf")).stop_reason == "cancelled"


def test_a_second_abort_does_not_wait(fake_claude, run, monkeypatch):
    # The first one would become less polite only after all that this test has.
    monkeypatch.setattr(running, "STEPS", ((signal.SIGINT, 60.0), (signal.SIGTERM, 60.0)))
    session = fake_claude()
    heard = news_of(session)

    async def talk():
        sending = asyncio.create_task(session.send("deaf", "k"))
        while "accepted" not in [news.kind for news in heard]:
            await asyncio.sleep(0.01)
        polite = asyncio.create_task(session.abort())
        await asyncio.sleep(0.1)
        assert not polite.done()
        await session.abort()
        await polite
        return (await sending).stop_reason

    assert run(talk()) == "cancelled"


def test_a_cancelled_send_leaves_no_process_behind(fake_claude, run):
    session = fake_claude()
    heard = []
    session.on_news = lambda news: heard.append(session.ref())

    async def talk():
        sending = asyncio.create_task(session.send("slow", "k"))
        while not heard:
            await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.wait({sending})
        assert is_gone(heard[0]["pid"], heard[0]["started"])
        return await session.send("go on", "k2")

    assert run(talk()).stop_reason == "end_turn"


@pytest.mark.rule("L5")
def test_the_transcript_is_ours_and_for_our_eyes_only(fake_claude, run, tmp_path):
    session = fake_claude()
    run(session.send("x", "k"))
    path = session.transcript()
    assert os.path.dirname(path) == str(tmp_path / "transcripts")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    session.discard()
    assert not os.path.exists(path)


def test_a_transcript_lies_beside_the_ledger_unless_a_folder_is_given(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    session = open_session("claude", cwd=".")
    assert session.transcript().startswith(str(tmp_path / "notyet" / "sessions" / "claude-"))


def test_many_turns_leave_no_descriptor_open(fake_claude, run, aborted):
    async def talk():
        session = fake_claude()
        await session.send("x", "k0")
        before = len(os.listdir("/dev/fd"))
        for number in range(3):
            await session.send("child", f"k{number + 1}")
        await aborted(session, "slow")
        return before, len(os.listdir("/dev/fd"))

    before, after = run(talk())
    assert after == before
