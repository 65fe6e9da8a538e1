"""Sending prompts to a session that may be broken, and saying in a sentence what came of it."""

from __future__ import annotations

import asyncio
import uuid

from notyet.errors import SendError
from notyet.testing.promises import must

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from notyet.core.session import Session, Turn

    T = TypeVar("T")
    Make = Callable[[], Session]

PROMPT = "Say that you are there."
PROMPTLY = 15.0  # seconds for an abort
SOON = 0.3  # seconds after which a slow turn is under way


async def begun(make: Make, key: str = "") -> Session:
    """Return a conversation that has had its first turn."""
    session = make()
    await session.send(PROMPT, key or new_key())
    return session


async def under_way(session: Session) -> asyncio.Task[Turn]:
    """Send a prompt and return while its turn runs."""
    sending = asyncio.create_task(session.send(PROMPT, new_key()))
    await asyncio.wait({sending}, timeout=SOON)
    is_slow = not sending.done()
    must(is_slow, f"its first turn is not slow, so this cannot be tried: {outcome(sending)}")
    return sending


async def within(what: str, call: Awaitable[T]) -> T:
    """Wait for a call, but not for long."""
    try:
        return await asyncio.wait_for(call, PROMPTLY)
    except TimeoutError:
        raise AssertionError(f"{what} did not come back within {PROMPTLY:g} s") from None


def outcome(task: asyncio.Task[Turn]) -> str:
    """Say what a `send` came to."""
    if not task.done():
        return "it still runs"
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    if error is None:
        return f"it returned {task.result()!r}"[:300]
    return f"it raised {type(error).__name__}: {error}"


def is_refused(task: asyncio.Task[Turn]) -> bool:
    """Tell whether a `send` that came back raised SendError."""
    return not task.cancelled() and isinstance(task.exception(), SendError)


def new_key() -> str:
    """Return a key that nobody used."""
    return uuid.uuid4().hex
