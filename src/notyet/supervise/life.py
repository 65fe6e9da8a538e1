"""The state of a task that ends with the process, and `Handle`, which waits for its result."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from notyet.core.session import News, Turn
from notyet.errors import SendError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from notyet.core.session import Session
    from notyet.core.task import Result
    from notyet.core.verdict import Decision

    Waiting = Callable[[], Coroutine[Any, Any, Result]]
    Origin = Literal["here", "recovered", "to end"]


class Handle:
    """A task that was started. `await handle` gives its result."""

    def __init__(self, task_id: str, wait: Waiting) -> None:
        self.task_id = task_id
        self._wait = wait

    async def result(self) -> Result:
        """Wait for the result; this acknowledges it, unless `deliver` does."""
        return await self._wait()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    def __repr__(self) -> str:
        return f"Handle({self.task_id!r})"


class Life:
    """The in-process state of a task: its session, the turn in flight, its driver."""

    def __init__(self, task_id: str, session: Session | None, origin: Origin) -> None:
        loop = asyncio.get_running_loop()
        self.task_id = task_id
        self.parent = ""
        self.session = session
        self.origin: Origin = origin  # recovered: a dead process sent what is in flight
        self.poked = asyncio.Event()  # something about the task has changed
        self.accepted = asyncio.Event()  # the agent has the prompt in flight
        self.key = ""  # of the prompt in flight
        self.sending: asyncio.Task[Turn] | None = None
        self.sent_at = 0.0  # by the loop's clock, which does not jump
        self.turn: Turn | None = None  # the last that came back, recorded or not
        self.turn_of = ""  # its run
        self.signals: dict[str, Turn] = {}  # endings of runs that the ledger does not know yet
        self.grace: dict[str, float] = {}  # until when the error of a run may prove transient
        self.decision: Decision | None = None  # the last one
        self.result: asyncio.Future[Result] = loop.create_future()
        self.driver: asyncio.Task[None] | None = None

    def send(self, prompt: str, key: str, on_news: Callable[[News], None]) -> asyncio.Task[Turn]:
        """Send a prompt to the session; the task returns a Turn or raises SendError."""
        self.key = key
        self.accepted.clear()
        self.sent_at = asyncio.get_running_loop().time()

        def hear(news: News) -> None:
            # Words and tools may be the last ones of the turn before.
            if news.kind in {"accepted", "ended"} and self.key == key:
                self.accepted.set()
            on_news(news)

        session = self.session
        assert session is not None
        with suppress(AttributeError):  # not every session has news
            session.on_news = hear  # type: ignore[attr-defined]  # optional
        self.sending = asyncio.ensure_future(_turn(session, prompt, key))
        return self.sending

    def left(self, timeout: float | None) -> float | None:
        """Return the seconds left for the prompt in flight; None for no limit."""
        if timeout is None:
            return None
        return max(0.0, self.sent_at + timeout - asyncio.get_running_loop().time())

    def poke(self) -> None:
        """Make the driver look again."""
        self.poked.set()

    async def first_of(self, *others: asyncio.Future[Any], timeout: float | None = None) -> None:  # noqa: ASYNC109  # not an error
        """Wait for the first of these, for a poke, or for the timeout."""
        poked = asyncio.ensure_future(self.poked.wait())
        try:
            await asyncio.wait(
                {poked, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            poked.cancel()

    def take_turn(self) -> Turn | None:
        """Return the turn in flight if it has ended, once."""
        sending = self.sending
        if sending is None or not sending.done():
            return None
        self.sending = None
        return come_back(sending)

    async def abort(self, patience: float) -> bool:
        """Abort the turn in flight; False if the agent does not stop in time."""
        sending, session = self.sending, self.session
        if session is None:
            return True
        aborting = asyncio.ensure_future(_aborted(session))
        waited_for = {aborting} if sending is None else {aborting, sending}
        _, late = await asyncio.wait(waited_for, timeout=patience)
        for one in late:
            one.cancel()
        if sending is not None and sending.done() and not sending.cancelled():
            sending.exception()  # asyncio reports errors that are never retrieved
        self.sending = None
        return not late


async def _turn(session: Session, prompt: str, key: str) -> Turn:
    """Return the session's turn; an exception of this foreign code becomes one that failed."""
    try:
        turn: object = await session.send(prompt, key)
    except (SendError, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # foreign code
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        turn = _broken(f"the session failed: {said}")
    if not isinstance(turn, Turn):
        turn = _broken(f"the session returned {type(turn).__name__} instead of a Turn")
    return turn


def _broken(error: str) -> Turn:
    return Turn(text="", stop_reason="error", error=error, turns=0)


def come_back(sending: asyncio.Task[Turn] | None) -> Turn | None:
    """Return the turn that a finished `send` returned; None for anything else."""
    if sending is None or not sending.done() or sending.cancelled() or sending.exception():
        return None
    return sending.result()


async def _aborted(session: Session) -> None:
    try:
        await session.abort()
    except Exception as error:  # noqa: BLE001  # foreign code
        logging.getLogger("notyet").warning("a session could not be aborted: %s", error)
