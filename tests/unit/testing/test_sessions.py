"""What the conformance suite for sessions finds, and what it lets pass."""

import asyncio
import os
import sys

import pytest

from notyet.agents import open_session, reopen
from notyet.core.event import Usage
from notyet.core.session import Turn
from notyet.testing import Hang, Say, Scene, Script, ScriptedSession, promises, session_conformance

FAKE = os.path.join(os.path.dirname(__file__), "..", "agents", "fake_cli.py")


def scene(*steps, **settings):
    return Scene(steps=steps, usage=Usage(input=10, total=10), **settings)


def test_the_scripted_session_keeps_every_promise(tmp_path):
    def make(*turns):
        return lambda: ScriptedSession(Script(turns=turns), folder=str(tmp_path))

    session_conformance(
        make(scene(Say("I am there."))),
        slow=make(scene(Hang()), scene(Say("I am there."))),
        refusing=make(scene(Say("I am there."), refuse=1)),
        reopen=reopen,
    )


def test_a_session_with_a_program_keeps_every_promise(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_STATE", str(tmp_path))
    quick, slow = tmp_path / "quick", tmp_path / "slow"
    start = f'exec "{sys.executable}" -I -S "{FAKE}" "$@"\n'
    quick.write_text(f"#!/bin/sh\n{start}")
    # Slow when a conversation begins, and quick when it goes on.
    once = 'case "$*" in *--session-id*) ! [ -e "$0.$6" ] && : > "$0.$6" && exec sleep 60;; esac\n'
    slow.write_text(f"#!/bin/sh\n{once}{start}")
    quick.chmod(0o755)
    slow.chmod(0o755)

    def make(program):
        return lambda: open_session("claude", cwd=str(tmp_path), program=str(program))

    session_conformance(
        make(quick), slow=make(slow), refusing=make(tmp_path / "none"), reopen=reopen
    )


class Broken:
    """A session that breaks about everything."""

    def __init__(self):
        self.id = None
        self.sent = 0
        self.on_news = None

    def ref(self):
        self.sent += 1
        return {"sent": self.sent, "environment": dict(os.environ)}

    async def send(self, prompt, key):
        self.sent += 1
        return Turn(text="x", usage=Usage(total=self.sent), stop_reason="error")

    def knows(self, key):
        return True

    async def abort(self):
        return None

    def transcript(self):
        return "/no/such/file"


class BrokenAndSlow(Broken):
    """The same; its first turn ends when it is aborted."""

    def __init__(self):
        super().__init__()
        self.stopped = asyncio.Event()

    async def send(self, prompt, key):
        if self.sent == 0:
            self.sent += 1
            await self.stopped.wait()
        return await super().send(prompt, key)

    async def abort(self):
        self.stopped.set()


def test_all_that_is_broken_is_told_at_once():
    with pytest.raises(AssertionError) as told:
        session_conformance(
            Broken, slow=BrokenAndSlow, refusing=Broken, reopen=lambda ref: Broken()
        )
    text = str(told.value)
    assert text.startswith("the session breaks 11 of 13 promises:")
    for words in (
        "a turn that is an error does not say which",
        "the session has no id after its first turn",
        "two conversations have the same id, None",
        "it was another one when asked again",
        "it knows a prompt that was not sent yet",
        "it never came",
        "/no/such/file cannot be read: No such file or directory",
        "the aborted turn ended as 'error', not as 'cancelled'",
        "it came back while the other turn ran: it returned Turn(",
        "it raised nothing",
        "its ref is not the one that it was reopened from",
    ):
        assert words in text


class Fine(ScriptedSession):
    """A session that keeps its promises, for the broken ones below to break one of them."""

    def __init__(self, script=None, **settings):
        super().__init__(script or Script(turns=(scene(Say("I am there.")),)), **settings)


def finds(session, message, **others):
    with pytest.raises(AssertionError, match="breaks 1 of") as told:
        session_conformance(session, **others)
    assert message in str(told.value)


def test_figures_that_are_sums_are_found():
    class Adding(Fine):
        total = 0

        async def send(self, prompt, key):
            turn = await super().send(prompt, key)
            self.total += 10
            return Turn(text=turn.text, usage=Usage(output=self.total))

    finds(Adding, "the output tokens of three equal turns are 10, 20 and 30")


def test_a_chat_that_sends_its_history_again_and_counts_it_is_fine():
    cost = 7

    class Chat(Fine):
        history = 0

        async def send(self, prompt, key):
            turn = await super().send(prompt, key)
            self.history += 6
            usage = Usage(input=self.history, output=cost, total=self.history + cost)
            self.history += cost
            return Turn(text=turn.text, usage=usage)

    session_conformance(Chat)


class Queueing(Fine):
    """Lets a second prompt wait."""

    def __init__(self, *turns):
        super().__init__(Script(turns=turns))
        self.lock = asyncio.Lock()

    async def send(self, prompt, key):
        async with self.lock:
            return await super().send(prompt, key)


SLOW = (scene(Hang()), scene(Say("I am there.")))


def test_a_second_prompt_may_wait_for_its_turn():
    session_conformance(lambda: Queueing(scene(Say("I am there."))), slow=lambda: Queueing(*SLOW))


def test_a_second_prompt_that_is_answered_at_once_is_found():
    class Both(Fine):
        async def send(self, prompt, key):
            if self._stop is not None:
                return Turn(text="me too")
            return await super().send(prompt, key)

    finds(Fine, "it returned Turn(text='me too'", slow=lambda: Both(Script(turns=SLOW)))


def test_an_abort_that_hangs_is_told_in_a_sentence(monkeypatch):
    monkeypatch.setattr(promises, "PROMPTLY", 0.2)

    class Hanging(Fine):
        async def abort(self):
            await asyncio.sleep(60)

    finds(Hanging, "`abort` did not come back within 0.2 s")


def test_a_send_that_cannot_be_cancelled_is_found(monkeypatch):
    monkeypatch.setattr(promises, "PROMPTLY", 0.5)

    class Stubborn(Fine):
        async def send(self, prompt, key):
            try:
                return await super().send(prompt, key)
            except asyncio.CancelledError:
                return Turn(text="", stop_reason="cancelled")

    message = "it did not pass on that it was cancelled"
    finds(Fine, message, slow=lambda: Stubborn(Script(turns=SLOW)))


def test_two_conversations_of_one_name_are_found():
    finds(lambda: Fine(session="mine"), "two conversations have the same id, 'mine'")


def test_two_conversations_with_one_transcript_are_found(tmp_path):
    path = tmp_path / "all.jsonl"

    class Sharing(Fine):
        async def send(self, prompt, key):
            turn = await super().send(prompt, key)
            with path.open("a") as file:
                file.write(turn.text)
            return turn

        def transcript(self):
            return str(path)

    finds(Sharing, f"two conversations have the same transcript, {path}")


@pytest.mark.parametrize("content", ["", "Something else.", '{"type": "note", "text": "no"}\n'])
def test_a_transcript_without_the_answer_is_found(content, tmp_path):
    class Elsewhere(Fine):
        def transcript(self):
            path = tmp_path / self.id
            path.write_text(content)
            return str(path)

    finds(Elsewhere, "the answer 'I am there.' is not in")


def test_a_transcript_whose_last_message_is_another_is_found(tmp_path):
    class Behind(Fine):
        def transcript(self):
            path = tmp_path / self.id
            path.write_text('{"type":"assistant","message":{"role":"assistant","content":"No."}}\n')
            return str(path)

    finds(Behind, "its last message is 'No.', not 'I am there.'")


class Late(Fine):
    """Tells of everything at another time."""

    def _notify(self, news):
        if news.kind == "accepted":
            self.later()

    def later(self):
        from notyet.core.session import News

        asyncio.get_running_loop().call_later(0.01, self.on_news or print, News(kind="accepted"))


def test_news_of_a_prompt_that_come_after_its_turn_are_found():
    finds(Late, "it came after the turn had ended")


def test_news_of_a_prompt_that_come_after_the_answer_are_found():
    class Behind(Fine):
        held = None

        def _notify(self, news):
            if news.kind == "accepted":
                self.held = news
                return
            super()._notify(news)
            if news.kind == "text":
                super()._notify(self.held)

    finds(Behind, "it came after the agent had spoken, worked or ended")


def test_reopening_without_a_look_at_the_ref_is_found(tmp_path):
    def make():
        made.append(Fine(folder=str(tmp_path)))
        return made[-1]

    made = []
    finds(make, "its id is", reopen=lambda ref: made[-1])


def test_a_session_without_news_and_transcript_is_fine():
    class Plain:
        def __init__(self):
            self.id, self.keys = os.urandom(4).hex(), set()

        def ref(self):
            return {}

        async def send(self, prompt, key):
            self.keys.add(key)
            return Turn(text="x")

        def knows(self, key):
            return key in self.keys

        async def abort(self):
            return None

        def transcript(self):
            return None

    session_conformance(Plain)
