"""The life of one task: a loop over the state that the ledger holds.

Each step looks, waits for one thing, and makes one guarded move. A move that fails means that
somebody was faster (a person, a second signal, another process); then the loop looks again.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.task import ending_of
from notyet.errors import LedgerError, SendError
from notyet.ledger.runs import run_id
from notyet.supervise.context import new_key
from notyet.supervise.gating import Gating
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from notyet.core.event import Ending
    from notyet.core.session import News
    from notyet.core.task import Run
    from notyet.ledger.task_moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life
    from notyet.supervise.settings import ProgressKind

_LOST = "its supervisor died while the agent was at work; what it did is not known"
_UNKNOWN = "its supervisor died while sending a prompt; whether it arrived cannot be known"
_LEFT_IN = {
    "running": _LOST,
    "settling": "its supervisor died before the gates were asked",
    "gating": "its supervisor died before the gates had answered",
    "steering": "its supervisor died before the agent was sent back",
}


class Fenced(Exception):  # noqa: N818  # named after what happened
    """Another process owns the task now."""


class Driver:
    """Drives one task to its end."""

    def __init__(self, context: Context, life: Life) -> None:
        self._context = context
        self._store = context.store
        self._life = life
        self._gating = Gating(context, life)
        self._noted: tuple[object, str] = ({}, "")  # what the ledger knows of the session
        self._steps: dict[str, Callable[[Seen], Awaitable[None]]] = {
            "running": self._run,
            "settling": self._settle,
            "gating": self._gating.gate,
            "steering": self._steer,
        }

    async def drive(self) -> None:
        """Go on until the task has ended, or is no longer ours."""
        if self._life.origin != "here":
            await self._life.abort(self._context.settings.abort_patience)  # the orphan (K18)
        while True:
            self._life.poked.clear()
            seen = await self._look()
            step = self._steps.get(seen.run.state)
            if step is None:
                break
            if self._life.origin == "to end":
                await self._end(seen, "interrupted", seen.run.turn, _LEFT_IN[seen.run.state])
            else:
                await step(seen)
        if self._life.sending is not None:
            await self._life.abort(self._context.settings.abort_patience)

    async def _look(self) -> Seen:
        seen = await self._store.insist(self._store.tasks.look, self._life.task_id)
        if seen is None:
            raise LedgerError(self._store.ledger.path, f"task {self._life.task_id} is gone")
        if seen.owner != self._context.owner:
            raise Fenced
        return seen

    async def _run(self, seen: Seen) -> None:
        """Wait for the turn of the current run; begin it, where nobody has."""
        run = seen.run
        life = self._life
        if life.sending is None or life.key != run.key:
            if not await self._may_send(seen):
                return
            if not await self._store.insist(
                self._store.tasks.mark_sent, run, self._context.owner, "dispatched"
            ):
                return
            run = replace(run, started_at=time.time())  # as it was marked
            self._send(run, run.prompt, run.key)
        sending = life.sending
        assert sending is not None
        left = None
        if seen.task.timeout is not None:
            left = max(0.0, run.started_at + seen.task.timeout - time.time())
        await self._life.first_of(sending, timeout=left)
        if sending.done():
            await self._ended(seen, sending)
        elif not life.poked.is_set():
            await self._timed_out(seen)

    async def _may_send(self, seen: Seen) -> bool:
        """Tell whether a first prompt is to be sent; end the task where that cannot be known."""
        run, life = seen.run, self._life
        if life.session is None:
            await self._end(seen, "interrupted", None, "its session cannot be reopened")
            return False
        if run.sent == "reserved":
            return True
        knows = self._context.knows(life.session, run.key) if run.sent == "dispatched" else True
        if knows is False:
            return True
        await self._end(seen, "interrupted", None, _LOST if knows else _UNKNOWN)
        return False

    def _send(self, run: Run, prompt: str, key: str) -> asyncio.Task[Turn]:
        """Put a prompt to the session, for the run that it begins."""
        self._tell(run, "sent", text=prompt)
        return self._life.send(prompt, key, lambda news: self._hear(run, news))

    def _hear(self, run: Run, news: News) -> None:
        """Take in what a session says while its turn runs."""
        context, life = self._context, self._life
        if news.kind == "ref":
            context.do(self._note_session())
        elif news.kind == "ended" and news.turn is not None:
            context.do(context.finish(life.task_id, run.id, news.turn))
        elif news.kind == "accepted":
            self._tell(run, "accepted")
        elif news.kind in {"text", "tool"}:
            context.tell(
                Progress(
                    task_id=life.task_id,
                    kind="text" if news.kind == "text" else "tool",
                    generation=run.generation,
                    text=news.text,
                    tool=news.tool,
                )
            )

    async def _note_session(self) -> None:
        session = self._life.session
        if session is None:
            return
        now = self._context.ref(session)
        if now is not None and now != self._noted:
            self._noted = now
            await self._store.insist(
                self._store.tasks.note_session, self._life.task_id, self._context.owner, *now
            )

    async def _ended(self, seen: Seen, sending: asyncio.Task[Turn]) -> None:
        """Record how a turn ended by itself."""
        try:
            turn = sending.result()
        except SendError as error:  # which cannot heal: nothing was sent
            turn = Turn(text="", stop_reason="error", error=str(error), turns=0)
            self._life.key = ""
        except asyncio.CancelledError:
            turn = Turn(text="", stop_reason="cancelled", turns=0)
        self._life.sending = None
        await self._note_session()
        ending = ending_of(turn)
        self._tell(seen.run, "turn", turn=turn)
        if ending == "interrupted":  # by its user, inside the agent: no gate is asked (C4)
            await self._end(seen, "interrupted", turn, turn.error)
            return
        await self._finish(seen, turn, ending)

    async def _timed_out(self, seen: Seen) -> None:
        sending = self._life.sending
        stopped = await self._life.abort(self._context.settings.abort_patience)
        error = f"no end after {seen.task.timeout:g} s"
        if not stopped:
            error += ", and it did not stop when it was told to"
        turn = _come_back(sending) or Turn(text="", turns=0)
        await self._finish(seen, replace(turn, stop_reason="error", error=error), "timeout")

    async def _finish(self, seen: Seen, turn: Turn, ending: Ending) -> None:
        await self._store.insist(
            self._store.runs.finish, seen.run.id, turn, ending, self._context.owner
        )

    async def _end(self, seen: Seen, ending: Ending, turn: Turn | None, error: str | None) -> None:
        """End the task, if it is still as it was seen."""
        await self._store.insist(
            self._store.runs.end,
            seen.task.id,
            self._context.owner,
            ending,
            turn=turn,
            error=error,
            run=seen.run,
        )

    async def _settle(self, seen: Seen) -> None:
        """Wait until an error has proved to be one, and until the children are done (K9)."""
        self._tell(seen.run, "settling")
        settings = self._context.settings
        life = self._life
        if seen.run.ending == "error" and settings.grace and life.key == seen.run.key:
            await self._life.first_of(timeout=settings.grace)
            if life.poked.is_set():
                return
        if await self._children_are_done(seen):
            await self._store.insist(
                self._store.runs.settle, seen.run.id, self._context.owner, new_key()
            )

    async def _children_are_done(self, seen: Seen) -> bool:
        """Wait for the children, but no message of the user waits with us; False: look again."""
        tasks, life = self._store.tasks, self._life
        patience = self._context.settings.children_expiry
        loop = asyncio.get_running_loop()
        ends = loop.time() + patience
        waited_for = tasks.unheard if self._context.delivers else tasks.children
        self._gating.overdue = ()
        while children := await self._store.insist(waited_for, seen.task.id):
            if await self._store.insist(tasks.has_word, seen.task.id):
                break
            left = ends - loop.time()
            if left <= 0:
                self._gating.overdue = tuple(children)
                self._context.warn(
                    f"task {seen.task.id} waited {patience:g} s for {len(children)} children, "
                    "and is gated without them"
                )
                break
            await life.first_of(timeout=min(left, self._context.settings.poll))
            if life.poked.is_set():
                life.poked.clear()
                if (await self._look()).run != seen.run:
                    return False
        return True

    async def _steer(self, seen: Seen) -> None:
        """Send the steer that is reserved; a new run begins when it has arrived (K2)."""
        steer, life = seen.steer, self._life
        patience = self._context.settings.abort_patience
        if steer is None:
            raise LedgerError(self._store.ledger.path, f"task {seen.task.id} lost its steer")
        if life.sending is not None and life.key != steer.key and not await life.abort(patience):
            await self._fail(steer.key, f"the agent did not stop within {patience:g} s")
            return
        if life.session is None:
            await self._fail(steer.key, "its session cannot be reopened")
            return
        if steer.phase == "dispatched" and life.key != steer.key:
            knows = self._context.knows(life.session, steer.key)
            if knows is None:
                await self._end(seen, "interrupted", seen.run.turn, _UNKNOWN)
                return
            if knows:
                await self._store.insist(self._store.runs.accept, steer.key, self._context.owner)
                return
        if not await self._store.insist(self._store.runs.dispatch, steer.key, self._context.owner):
            return
        self._tell(seen.run, "steering", text=steer.prompt)
        generation = seen.run.generation + 1
        begun = replace(seen.run, id=run_id(seen.task.id, generation), generation=generation)
        await self._await_acceptance(seen, self._send(begun, steer.prompt, steer.key))

    async def _await_acceptance(self, seen: Seen, sending: asyncio.Task[Turn]) -> None:
        assert seen.steer is not None
        key = seen.steer.key
        accepted = asyncio.ensure_future(self._life.accepted.wait())
        try:
            while not sending.done() and not accepted.done():
                await self._life.first_of(sending, accepted)
                if self._life.poked.is_set() and not accepted.done():
                    self._life.poked.clear()
                    if (await self._look()).run != seen.run:
                        return  # a person was faster
        finally:
            accepted.cancel()
        error = None
        if sending.done() and not sending.cancelled():
            error = sending.exception()
        if error is not None and not self._life.accepted.is_set():
            self._life.sending = None
            await self._fail(key, str(error))
            return
        await self._store.insist(self._store.runs.accept, key, self._context.owner)

    async def _fail(self, key: str, error: str) -> None:
        self._context.warn(f"task {self._life.task_id} could not be steered: {error}")
        await self._store.insist(self._store.runs.fail, key, self._context.owner, error)

    def _tell(self, run: Run, kind: ProgressKind, text: str = "", turn: Turn | None = None) -> None:
        self._context.tell(
            Progress(
                task_id=self._life.task_id,
                kind=kind,
                generation=run.generation,
                text=text,
                turn=turn,
            )
        )


def _come_back(sending: asyncio.Task[Turn] | None) -> Turn | None:
    """Return what an aborted turn has to show."""
    if sending is None or not sending.done() or sending.cancelled() or sending.exception():
        return None
    return sending.result()
