"""The state of a task that ends with the process, and `Handle`, which waits for its result."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from notyet.core.session import News, Turn
from notyet.errors import SendError
from notyet.supervise.context import retrieve_error

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from notyet.core.session import Session
    from notyet.core.task import Result, Task
    from notyet.core.verdict import Decision
    from notyet.engine.engine import Engine
    from notyet.ledger.transitions import Seen
    from notyet.supervise.context import Context

    Waiting = Callable[[], Coroutine[Any, Any, Result]]
    Origin = Literal["here", "recovered", "to end"]


class Handle:
    """A task that was started. `await handle` gives its result."""

    def __init__(self, task_id: str, wait: Waiting, ending: asyncio.Future[Result]) -> None:
        self.task_id = task_id
        self._wait = wait
        self._ending = ending

    async def result(self) -> Result:
        """Wait for the result; this acknowledges it, unless `deliver` does."""
        return await self._wait()

    async def ended(self) -> None:
        """Wait until it has ended, and leave its result to others. Raises Refused if it moved."""
        await asyncio.shield(self._ending)

    def __await__(self) -> Generator[Any, None, Result]:
        return self._wait().__await__()

    def __repr__(self) -> str:
        return f"Handle({self.task_id!r})"


class LiveTask:
    """The in-process state of a task: its session, the turn in flight, its loop."""

    def __init__(
        self,
        context: Context,
        task: Task,
        session: Session | None,
        origin: Origin,
        *,
        engine: Engine,
    ) -> None:
        self._context = context
        self.engine = engine
        self.task = task
        self.task_id = task.id
        self.seen: Seen | None = None  # as this process has just entered it
        self.session = session
        self.origin: Origin = origin  # recovered: a dead process sent what is in flight
        self.poked = asyncio.Event()  # something about the task has changed
        self.accepted = asyncio.Event()  # the agent has the prompt in flight
        self.marked = ""  # the key of a prompt that may be marked as dispatched, and was not sent
        self.key = ""  # of the prompt in flight
        self.sending: asyncio.Task[Turn] | None = None
        self.trouble = ""  # the last error that the agent reported, if nothing came after it
        self.sent_at = 0.0  # by the loop's clock, which does not jump
        self.turn: Turn | None = None  # the last that came back, recorded or not
        self.turn_of = ""  # its run
        self.signals: dict[str, Turn] = {}  # endings of runs that the ledger does not know yet
        self.grace: dict[str, float] = {}  # until when the error of a run may prove transient
        self.overdue: tuple[str, ...] = ()  # children that did not end in time
        self.decision: Decision | None = None  # the last one
        self.result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.result.add_done_callback(retrieve_error)
        self.loop: asyncio.Task[None] | None = None

    # -- the session, which is foreign code

    def transcript(self) -> str | None:
        """Return the path of the session's transcript, if it has one."""
        path: object = self._ask("transcript")
        return path if isinstance(path, str) else None

    def knows(self, key: str) -> bool | None:
        """Return whether a prompt arrived, as the session says; None if it cannot tell."""
        known: object = self._ask("knows", key)
        return known if isinstance(known, bool) else None

    def ref(self) -> tuple[dict[str, object], str] | None:
        """Return how the session is reopened, and its id; None if that is not JSON."""
        ref: object = self._ask("ref")
        try:
            ref = json.loads(json.dumps(ref, allow_nan=False))  # the session may change its own
        except (TypeError, ValueError, RecursionError) as error:
            self._context.warn(f"the ref of a session is not JSON and was not stored: {error}")
            return None
        return (ref, self.session_id) if isinstance(ref, dict) else None

    @property
    def session_id(self) -> str:
        """The id of the session; empty while it is unknown."""
        session_id: object = None if self.session is None else self.session.id
        return session_id if isinstance(session_id, str) else ""

    def _ask(self, method: str, *args: object) -> Any:
        if self.session is None:
            return None
        fault = f"a session's {method} failed"
        return self._context.call(fault, getattr(self.session, method), *args)

    # -- the turn in flight

    def send(self, prompt: str, key: str, on_news: Callable[[News], None]) -> asyncio.Task[Turn]:
        """Send a prompt to the session; the task returns a Turn or raises SendError."""
        self.key, self.marked = key, ""
        self.accepted.clear()
        self.trouble = ""
        self.sent_at = asyncio.get_running_loop().time()

        def on_session_news(news: News) -> None:
            # Words and tools may be the last ones of the turn before.
            if news.kind in {"accepted", "ended"} and self.key == key:
                self.accepted.set()
            on_news(news)

        assert self.session is not None
        with suppress(AttributeError):  # not every session has news
            self.session.on_news = on_session_news  # type: ignore[attr-defined]  # optional
        self.sending = asyncio.ensure_future(_turn(self.session, prompt, key))
        return self.sending

    def left(self, timeout: float | None) -> float | None:
        """Return the seconds left for the prompt in flight; None for no limit."""
        if timeout is None:
            return None
        return max(0.0, self.sent_at + timeout - asyncio.get_running_loop().time())

    async def first_of(self, *others: asyncio.Future[Any], within: float | None = None) -> None:
        """Wait for the first of these, for a poke, or for so many seconds."""
        poked = asyncio.ensure_future(self.poked.wait())
        try:
            await asyncio.wait(
                {poked, *others}, timeout=within, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            poked.cancel()

    async def abort(self) -> bool:
        """Abort the turn in flight; False if the agent does not stop in time."""
        sending, session = self.sending, self.session
        if session is None:
            return True
        guarded = self._context.guarded("a session could not be aborted", _abort(session))
        aborting = asyncio.ensure_future(guarded)
        waited_for = {aborting} if sending is None else {aborting, sending}
        _, late = await asyncio.wait(waited_for, timeout=self._context.settings.abort_patience)
        for one in late:
            one.cancel()
        if sending is not None and sending.done():
            retrieve_error(sending)
        self.sending = None
        return not late

    def fail(self, error: BaseException) -> None:
        """Raise an error for those who wait for the result."""
        if not self.result.done():
            self.result.set_exception(error)


async def _abort(session: Session) -> None:
    await session.abort()


async def _turn(session: Session, prompt: str, key: str) -> Turn:
    """Return the session's turn; an exception of this foreign code becomes one that failed."""
    try:
        turn: object = await session.send(prompt, key)
    except (SendError, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001  # foreign code
        said = f"{type(error).__name__}: {error}".rstrip(": ")
        return failed_turn(f"the session failed: {said}")
    if not isinstance(turn, Turn):
        return failed_turn(f"the session returned {type(turn).__name__} instead of a Turn")
    return turn


def failed_turn(error: str) -> Turn:
    """Return a turn without an answer."""
    return Turn(text="", stop_reason="error", error=error, turns=0)


def returned(sending: asyncio.Task[Turn] | None) -> Turn | None:
    """Return the turn that a finished `send` returned; None for anything else."""
    if sending is None or not sending.done() or sending.cancelled() or sending.exception():
        return None
    return sending.result()
