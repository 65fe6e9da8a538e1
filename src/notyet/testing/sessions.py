"""`session_conformance`: does a session of your own keep what the supervisor relies on?

    def test_my_session():
        session_conformance(MySession, slow=lambda: MySession(prompt_that_takes_long))

It needs no test framework. All that is broken is told at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from functools import partial

from notyet.core.session import Turn
from notyet.dialects.transcript import last_message
from notyet.errors import SendError
from notyet.testing.promises import Promise, check_all, expect, into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.core.session import News, Session

    Make = Callable[[], Session]
    Reopen = Callable[[Mapping[str, object]], Session]

__all__ = ["session_conformance"]

_PROMPT = "Say that you are there."
_SECRET = "a-value-of-the-environment-"  # noqa: S105  # planted, to see that nobody keeps it
_PROMPTLY = 15.0  # seconds for an abort
_SOON = 0.3  # seconds after which a slow turn is under way
_STOPS = ("end_turn", "max_tokens", "max_turns", "refusal", "cancelled", "error")

_ALWAYS: list[Promise] = []
_SLOW: list[Promise] = []
_DURABLE: list[Promise] = []
_REFUSING: list[Promise] = []
_promise = into(_ALWAYS)
_promise_if_slow = into(_SLOW)
_promise_if_durable = into(_DURABLE)
_promise_if_refusing = into(_REFUSING)


def session_conformance(
    make_session: Make,
    *,
    slow: Make | None = None,
    refusing: Make | None = None,
    reopen: Reopen | None = None,
) -> None:
    """Raise one AssertionError that lists every promise of `Session` this session breaks.

    `make_session` returns a new conversation at each call, whose agent answers two prompts at
    about the same cost. `slow` returns one whose first turn takes a minute or more, and whose
    later ones are quick. `refusing` returns one that cannot hand over its first prompt. `reopen`
    makes a session of a `ref`. What is not given is not tried. Everything is called in threads
    with event loops of their own.
    """

    def proof(promise: Promise, make: Make, *more: object) -> Callable[[], None]:
        return lambda: promise.keeps(make, *more)

    proofs = [(each.says, proof(each, make_session)) for each in _ALWAYS]
    if slow is not None:
        proofs += [(each.says, proof(each, slow)) for each in _SLOW]
    if refusing is not None:
        proofs += [(each.says, proof(each, refusing)) for each in _REFUSING]
    if reopen is not None:
        proofs += [(each.says, proof(each, make_session, reopen)) for each in _DURABLE]
    check_all("the session", proofs)


@_promise("`send` returns a Turn that says how it ended, with figures that are not below zero")
def _returns_turns(make: Make) -> None:
    turn = asyncio.run(make().send(_PROMPT, _key()))
    expect("what it returns", type(turn).__name__, Turn.__name__)
    expect("its stop reason is one we know", turn.stop_reason in _STOPS, True)
    expect("an error has a text", (turn.stop_reason == "error") == bool(turn.error), True)
    figures = (*vars(turn.usage).values(), turn.tool_calls, turn.turns, turn.duration_ms)
    expect("its lowest figure is below zero", min(figures) < 0, False)


@_promise("a second `send` continues the same conversation, and its figures are its own")
def _continues(make: Make) -> None:
    session = make()

    async def talk() -> tuple[Turn, str | None, Turn]:
        first = await session.send(_PROMPT, _key())
        return first, session.id, await session.send(_PROMPT, _key())

    first, name, second = asyncio.run(talk())
    expect("the session has an id after its first turn", bool(name), True)
    expect("the id after the second turn", session.id, name)
    added = second.usage.total >= 2 * first.usage.total > 0
    expect("the second turn's usage counts the first one again", added, False)


@_promise("`ref` is JSON, stays as it is while nothing happens, and keeps no environment")
def _has_ref(make: Make) -> None:
    value = _SECRET + uuid.uuid4().hex
    os.environ["NOTYET_CONFORMANCE"] = value
    try:
        session = make()
        before = session.ref()
        expect("the ref, asked again", session.ref(), before)
        asyncio.run(session.send(_PROMPT, _key()))
        text = json.dumps(session.ref())
    finally:
        del os.environ["NOTYET_CONFORMANCE"]
    expect("the ref, written and read", json.loads(text), session.ref())
    expect("a value of the environment is in it", value in text, False)


@_promise("`knows` says True or None of a prompt that arrived, False or None of another")
def _knows(make: Make) -> None:
    session, key = make(), _key()
    expect("before", session.knows(key) in (False, None), True)
    asyncio.run(session.send(_PROMPT, key))
    expect("after", session.knows(key) in (True, None), True)
    expect("of another", session.knows(_key()) in (False, None), True)


@_promise("news of kind 'accepted' comes once for each prompt, before its turn ends")
def _tells(make: Make) -> None:
    session = make()
    if not hasattr(session, "on_news"):
        return
    heard: list[str] = []

    def hear(news: News) -> None:
        heard.append(news.kind)

    session.on_news = hear
    asyncio.run(session.send(_PROMPT, _key()))
    expect("how often it came", heard.count("accepted"), 1)


@_promise("`transcript` is None or a file that can be read, and ends with the answer")
def _writes(make: Make) -> None:
    session = make()
    turn = asyncio.run(session.send(_PROMPT, _key()))
    path = session.transcript()
    if path is None:
        return
    with open(path, "rb") as file:
        file.read(1)
    found = last_message(path)
    if found is not None and turn.text.strip():
        expect("its last message", found.strip(), turn.text.strip())


@_promise("`abort` does nothing when nothing runs")
def _aborts_nothing(make: Make) -> None:
    session = make()

    async def talk() -> str:
        await asyncio.wait_for(session.abort(), _PROMPTLY)
        turn = await session.send(_PROMPT, _key())
        await asyncio.wait_for(session.abort(), _PROMPTLY)
        return turn.stop_reason

    expect("the turn between is cancelled", asyncio.run(talk()) == "cancelled", False)


@_promise_if_slow("`abort` ends a turn as cancelled, and the session can be used again")
def _aborts(make: Make) -> None:
    session = make()

    async def talk() -> tuple[Turn, Turn]:
        sending = asyncio.create_task(session.send(_PROMPT, _key()))
        await asyncio.sleep(_SOON)
        await asyncio.wait_for(session.abort(), _PROMPTLY)
        first = await asyncio.wait_for(sending, _PROMPTLY)
        return first, await session.send(_PROMPT, _key())

    first, second = asyncio.run(talk())
    expect("how the aborted turn ended", first.stop_reason, "cancelled")
    expect("the next one is cancelled, too", second.stop_reason == "cancelled", False)


@_promise_if_slow("a prompt that is sent while another turn runs raises SendError")
def _takes_one(make: Make) -> None:
    session = make()

    async def talk() -> str:
        sending = asyncio.create_task(session.send(_PROMPT, _key()))
        await asyncio.sleep(_SOON)
        try:
            await asyncio.wait_for(session.send(_PROMPT, _key()), _PROMPTLY)
        except SendError:
            return "SendError"
        finally:
            await session.abort()
            await sending
        return "nothing"

    expect("what it raised", asyncio.run(talk()), "SendError")


@_promise_if_slow("a cancelled `send` ends its turn, and the session can be used again")
def _can_be_cancelled(make: Make) -> None:
    session = make()

    async def talk() -> str:
        sending = asyncio.create_task(session.send(_PROMPT, _key()))
        await asyncio.sleep(_SOON)
        sending.cancel()
        await asyncio.wait({sending}, timeout=_PROMPTLY)
        expect("it was cancelled", sending.cancelled(), True)
        turn = await asyncio.wait_for(session.send(_PROMPT, _key()), _PROMPTLY)
        return turn.stop_reason

    expect("the next turn is cancelled, too", asyncio.run(talk()) == "cancelled", False)


@_promise_if_refusing("a prompt that did not arrive raises SendError, and is not known")
def _refuses(make: Make) -> None:
    session, key = make(), _key()
    try:
        asyncio.run(session.send(_PROMPT, key))
    except SendError as error:
        expect("it says why", bool(str(error).strip()), True)
    else:
        raise AssertionError("it raised nothing")
    expect("it is known", session.knows(key) in (False, None), True)


@_promise_if_durable("a session reopened from its ref continues, and knows what arrived (K7)")
def _reopens(make: Make, reopen: Reopen) -> None:
    session, key = make(), _key()
    asyncio.run(session.send(_PROMPT, key))
    ref = partial(json.loads, json.dumps(session.ref()))
    again = reopen(ref())
    expect("its id", again.id, session.id)
    expect("its ref", again.ref(), ref())
    expect("the prompt is known", again.knows(key) in (True, None), True)
    expect("another is known", again.knows(_key()) in (False, None), True)
    asyncio.run(again.send(_PROMPT, _key()))
    expect("its id after another turn", again.id, session.id)


def _key() -> str:
    return uuid.uuid4().hex
