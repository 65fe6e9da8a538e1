"""The conformance suite for sessions: what every session promises, with a proof of each."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from notyet.core.session import News, Session, Turn
from notyet.errors import SendError
from notyet.hosts.transcript import last_message
from notyet.testing.promises import Promises, failure, must, raise_broken, settle, within

Make = Callable[[], Session]
Reopen = Callable[[Mapping[str, object]], Session]

_PROMPT = "Say that you are there."
_SOON = 0.3  # seconds after which a slow turn is under way
_SECRET = "a-value-of-the-environment-"  # noqa: S105  # planted, to see that the ref omits it
_SHORTLY = 0.05  # seconds in which late news would arrive
_STOPS = ("end_turn", "max_tokens", "max_turns", "refusal", "cancelled", "error")
_PROMISES = Promises()


def session_conformance(
    make_session: Make,
    *,
    slow: Make | None = None,
    refusing: Make | None = None,
    reopen: Reopen | None = None,
) -> None:
    """Raise one AssertionError that lists every promise of `Session` this session breaks.

    `make_session` returns a new conversation at each call, whose agent gives short answers of
    about the same length. `slow` returns one whose first turn takes a minute or more, and whose
    later ones are quick. `refusing` returns one that cannot hand over its first prompt. `reopen`
    makes a session of a `ref`. What is not given is not tried. Everything is called in threads
    with event loops of their own, while these run.
    """
    arguments: dict[str, tuple[Any, ...]] = {
        "": (make_session,),
        "slow": (slow,) if slow else (),
        "refusing": (refusing,) if refusing else (),
        "reopen": (make_session, reopen) if reopen else (),
    }
    tried = [promise for promise in _PROMISES if arguments[promise.needs]]
    raise_broken(
        "the session",
        {says: failure(proof, *arguments[needs]) for _, says, needs, proof in tried},
    )


async def _begun(make: Make, key: str = "") -> Session:
    """Return a conversation that has had its first turn."""
    session = make()
    await session.send(_PROMPT, key or _new_key())
    return session


async def _under_way(session: Session) -> asyncio.Task[Turn]:
    """Send a prompt and return while its turn runs."""
    sending = asyncio.create_task(session.send(_PROMPT, _new_key()))
    await asyncio.wait({sending}, timeout=_SOON)
    is_slow = not sending.done()
    must(is_slow, f"its first turn is not slow, so this cannot be tried: {_outcome(sending)}")
    return sending


def _outcome(task: asyncio.Task[Turn]) -> str:
    """Describe how a `send` ended."""
    if not task.done():
        return "it still runs"
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    if error is None:
        return f"it returned {task.result()!r}"[:300]
    return f"it raised {type(error).__name__}: {error}"


def _is_refused(task: asyncio.Task[Turn]) -> bool:
    """Return True if a finished `send` raised SendError."""
    return not task.cancelled() and isinstance(task.exception(), SendError)


def _new_key() -> str:
    """Return an unused key."""
    return uuid.uuid4().hex


@_PROMISES.add("`send` returns a Turn that says how it ended, with figures that are not below zero")
async def _returns_turns(make: Make) -> None:
    turn = await make().send(_PROMPT, _new_key())
    must(isinstance(turn, Turn), f"it returned a {type(turn).__name__}, not a Turn")
    must(turn.stop_reason in _STOPS, f"unknown stop reason {turn.stop_reason!r}")
    must(turn.stop_reason != "error" or turn.error, "a turn that is an error does not say which")
    must(turn.stop_reason == "error" or not turn.error, "a turn with an error is not called one")
    figures = (*vars(turn.usage).values(), turn.tool_calls, turn.turns, turn.duration_ms)
    must(min(figures) >= 0, f"the figure {min(figures)} is below zero")


@_PROMISES.add("a second `send` continues the same conversation, and its figures are its own")
async def _continues(make: Make) -> None:
    session, turns, names = make(), [], []
    for _ in range(3):
        turns.append(await session.send(_PROMPT, _new_key()))
        names.append(session.id)
    must(names[0], "the session has no id after its first turn")
    must(len(set(names)) == 1, f"the id changed between turns: {names}")
    # Input may grow, because the history is sent again; what the agent writes does not.
    first, second, third = (turn.usage.output for turn in turns)
    adds_up = 0 < 2 * first <= second and 3 * first <= third
    says_more = len(turns[2].text) > 2 * len(turns[0].text)
    must(
        not adds_up or says_more,
        f"the output tokens of three equal turns are {first}, {second} and {third}: they seem to "
        "be sums over the conversation, and not of each turn",
    )


@_PROMISES.add("every conversation has an id and a transcript of its own")
async def _are_two(make: Make) -> None:
    one, two = await _begun(make), await _begun(make)
    must(one.id != two.id, f"two conversations have the same id, {one.id!r}")
    path = one.transcript()
    is_shared = path is not None and path == two.transcript()
    must(not is_shared, f"two conversations have the same transcript, {path}")


@_PROMISES.add("`ref` is JSON, stays as it is while nothing happens, and keeps no environment")
async def _has_ref(make: Make) -> None:
    value = _SECRET + uuid.uuid4().hex
    os.environ["NOTYET_CONFORMANCE"] = value
    try:
        session = make()
        before = session.ref()
        must(session.ref() == before, "it was another one when asked again")
        await session.send(_PROMPT, _new_key())
        text = json.dumps(session.ref())
    finally:
        del os.environ["NOTYET_CONFORMANCE"]
    must(json.loads(text) == session.ref(), "it is another one when it was written and read")
    must(value not in text, "a value of the environment is in it")


@_PROMISES.add("`knows` says True or None of a prompt that arrived, False or None of another")
async def _knows(make: Make) -> None:
    session, key = make(), _new_key()
    must(session.knows(key) in (False, None), "it knows a prompt that was not sent yet")
    await session.send(_PROMPT, key)
    must(session.knows(key) in (True, None), "it does not know a prompt that was answered")
    must(session.knows(_new_key()) in (False, None), "it knows a prompt that was never sent")


@_PROMISES.add("news of kind 'accepted' comes once for each prompt, before its turn ends")
async def _tells(make: Make) -> None:
    session = make()
    if not hasattr(session, "on_news"):
        return
    heard: list[str] = []

    def hear(news: News) -> None:
        heard.append(news.kind)

    session.on_news = hear
    for _ in range(2):
        heard.clear()
        await session.send(_PROMPT, _new_key())
        in_time = heard.count("accepted")
        await asyncio.sleep(_SHORTLY)
        came = heard.count("accepted")
        must(in_time, "it came after the turn had ended" if came else "it never came")
        must(came == 1, f"it came {came} times for one prompt")
        said = [heard.index(kind) for kind in ("text", "tool", "ended") if kind in heard]
        is_first = heard.index("accepted") < min(said, default=len(heard))
        must(is_first, "it came after the agent had spoken, worked or ended")


@_PROMISES.add("`transcript` is None or a file that can be read, and ends with the answer")
async def _writes(make: Make) -> None:
    session = make()
    turn = await session.send(_PROMPT, _new_key())
    path = session.transcript()
    if path is not None:
        _ends_with(path, turn.text.strip())


@_PROMISES.add("`abort` does nothing when nothing runs")
async def _aborts_nothing(make: Make) -> None:
    session = make()
    await within("`abort`", session.abort())
    turn = await session.send(_PROMPT, _new_key())
    await within("`abort`", session.abort())
    must(turn.stop_reason != "cancelled", "the turn after it was cancelled")


@_PROMISES.add("`abort` ends a turn as cancelled, and the session can be used again", needs="slow")
async def _aborts(make: Make) -> None:
    session = make()
    sending = await _under_way(session)
    await within("`abort`", session.abort())
    first = await within("the aborted `send`", sending)
    ended = first.stop_reason
    must(ended == "cancelled", f"the aborted turn ended as {ended!r}, not as 'cancelled'")
    second = await within("the next `send`", session.send(_PROMPT, _new_key()))
    must(second.stop_reason != "cancelled", "the next turn was cancelled, too")


@_PROMISES.add(
    "a `send` while another turn runs raises SendError or waits for its turn", needs="slow"
)
async def _takes_one(make: Make) -> None:
    session = make()
    first = await _under_way(session)
    second = asyncio.create_task(session.send(_PROMPT, _new_key()))
    await asyncio.wait({second}, timeout=_SOON)
    try:
        must(not first.done(), "the turn that ran was ended by it")
        is_fine = not second.done() or _is_refused(second)
        must(is_fine, f"it came back while the other turn ran: {_outcome(second)}")
    finally:
        await within("`abort`", session.abort())
        await settle(first, second)
    must(first.done(), "the turn that ran never ended")
    must(second.done(), "the `send` that waited never had its turn")
    is_fine = second.cancelled() or second.exception() is None or _is_refused(second)
    must(is_fine, f"it did not raise SendError: {_outcome(second)}")


@_PROMISES.add("a cancelled `send` ends its turn, and the session can be used again", needs="slow")
async def _can_be_cancelled(make: Make) -> None:
    session = make()
    sending = await _under_way(session)
    sending.cancel()
    await settle(sending)
    must(sending.done(), "it did not end when it was cancelled")
    must(sending.cancelled(), "it did not pass on that it was cancelled")
    turn = await within("the next `send`", session.send(_PROMPT, _new_key()))
    must(turn.stop_reason != "cancelled", "the next turn was cancelled, too")


@_PROMISES.add("a prompt that did not arrive raises SendError, and is not known", needs="refusing")
async def _refuses(make: Make) -> None:
    session, key = make(), _new_key()
    try:
        await session.send(_PROMPT, key)
    except SendError as error:
        must(str(error).strip(), "the SendError does not say why")
    else:
        raise AssertionError("it raised nothing")
    must(session.knows(key) in (False, None), "the prompt is known all the same")


@_PROMISES.add(
    "a session reopened from its ref continues, and knows what arrived (K7)", needs="reopen"
)
async def _reopens(make: Make, reopen: Reopen) -> None:
    keys = (_new_key(), _new_key())
    sessions = [await _begun(make, key) for key in keys]
    for session, key, other in zip(sessions, keys, reversed(keys), strict=True):
        ref = json.dumps(session.ref())
        again = reopen(json.loads(ref))
        must(again.id == session.id, f"its id is {again.id!r}, and was {session.id!r}")
        must(again.ref() == json.loads(ref), "its ref is not the one that it was reopened from")
        must(again.transcript() == session.transcript(), "its transcript is another file")
        must(again.knows(key) in (True, None), "it does not know the prompt that arrived")
        must(again.knows(other) in (False, None), "it knows a prompt of another conversation")
        must(again.knows(_new_key()) in (False, None), "it knows a prompt that was never sent")
        await again.send(_PROMPT, _new_key())
        must(again.id == session.id, f"its id after another turn is {again.id!r}")


def _ends_with(path: str, answer: str) -> None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            content = file.read()
    except OSError as error:
        raise AssertionError(f"{path} cannot be read: {error.strerror}") from None
    found = last_message(path)
    if not answer:
        return
    if found is not None:
        must(found.strip() == answer, f"its last message is {found[:200]!r}, not {answer[:200]!r}")
    else:  # a format that we do not know: then the words must be there, as they are or as JSON
        line = max(answer.splitlines(), key=len)
        forms = (line, json.dumps(line)[1:-1], json.dumps(line, ensure_ascii=False)[1:-1])
        must(any(form in content for form in forms), f"the answer {line[:200]!r} is not in {path}")
