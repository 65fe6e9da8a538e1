"""`Handle`: how whoever started a task waits for its result."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from notyet.core.session import News, Turn

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
        """Wait for the result; taking it is what acknowledges it, where nobody else delivers."""
        return await self._wait()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    def __repr__(self) -> str:
        return f"Handle({self.task_id!r})"


class Life:
    """What the ledger cannot know of a task, because it ends with the process."""

    def __init__(self, task_id: str, session: Session | None, origin: Origin) -> None:
        loop = asyncio.get_running_loop()
        self.task_id = task_id
        self.parent = ""
        self.session = session
        self.origin: Origin = origin  # recovered: whatever is in flight was sent by the dead
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
        """Put a prompt to the session; what comes back is always a Turn, or SendError."""
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
            session.on_news = hear  # type: ignore[attr-defined]  # as above
        self.sending = asyncio.ensure_future(_turn(session, prompt, key))
        return self.sending

    def left(self, timeout: float | None) -> float | None:
        """Return how long the prompt in flight may still take, None for ever."""
        if timeout is None:
            return None
        return max(0.0, self.sent_at + timeout - asyncio.get_running_loop().time())

    def poke(self) -> None:
        """Let the driver look again."""
        self.poked.set()

    async def first_of(self, *others: asyncio.Future[Any], timeout: float | None = None) -> None:  # noqa: ASYNC109  # not an error
        """Wait for one of these, for somebody to poke us, or until the time is over."""
        poked = asyncio.ensure_future(self.poked.wait())
        try:
            await asyncio.wait(
                {poked, *others}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            poked.cancel()

    def take_turn(self) -> Turn | None:
        """Return the turn in flight, if it has come back by now and nobody took it."""
        sending = self.sending
        if sending is None or not sending.done():
            return None
        self.sending = None
        return come_back(sending)

    async def abort(self, patience: float) -> bool:
        """End the turn in flight; False when the agent does not stop in time."""
        sending, session = self.sending, self.session
        if session is None:
            return True
        aborting = asyncio.ensure_future(_aborted(session))
        waited_for = {aborting} if sending is None else {aborting, sending}
        _, late = await asyncio.wait(waited_for, timeout=patience)
        for one in late:
            one.cancel()
        if sending is not None and sending.done() and not sending.cancelled():
            sending.exception()  # looked at, so that nobody is told that nobody did
        self.sending = None
        return not late


async def _turn(session: Session, prompt: str, key: str) -> Turn:
    """Wait for a turn; a session is foreign code, so whatever it raises is an ending too."""
    from notyet.errors import SendError

    try:
        turn: object = await session.send(prompt, key)
    except (SendError, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # foreign code; somebody waits for this
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        turn = _broken(f"the session failed: {said}")
    if not isinstance(turn, Turn):
        turn = _broken(f"the session returned {type(turn).__name__} instead of a Turn")
    return turn


def _broken(error: str) -> Turn:
    return Turn(text="", stop_reason="error", error=error, turns=0)


def come_back(sending: asyncio.Task[Turn] | None) -> Turn | None:
    """Return what came back, if it is a turn."""
    if sending is None or not sending.done() or sending.cancelled() or sending.exception():
        return None
    return sending.result()


async def _aborted(session: Session) -> None:
    try:
        await session.abort()
    except Exception as error:  # noqa: BLE001  # foreign code; that the agent still runs is seen
        import logging

        logging.getLogger("notyet").warning("a session could not be aborted: %s", error)
