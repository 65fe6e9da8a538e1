"""The driver of one task: a loop over its state in the ledger.

Each step looks, waits for one thing, and makes one guarded move. A move that fails has lost a race
against a person, a second signal or another process; then the loop looks again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.task import ending_of
from notyet.errors import LedgerError, SendError
from notyet.ledger.runs import run_id
from notyet.supervise.context import Fenced, new_key
from notyet.supervise.gating import Gating
from notyet.supervise.life import come_back
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from notyet.core.event import Ending
    from notyet.core.session import News
    from notyet.core.task import Run, Sent
    from notyet.ledger.moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life
    from notyet.supervise.settings import ProgressKind


class Settling:
    """Between the end of a turn and the gates: an error may heal, and children come first."""

    def __init__(self, context: Context, life: Life, gating: Gating) -> None:
        self._context = context
        self._store = context.store
        self._life = life
        self._gating = gating

    async def settle(self, seen: Seen) -> None:
        """Wait out the grace of an error, and for the children (K9); then move on."""
        self._context.tell(
            Progress(task_id=seen.task.id, kind="settling", generation=seen.run.generation)
        )
        if seen.run.ending == "error" and not await self._is_over(seen):
            return
        if await self._children_are_done(seen):
            owner, overdue = self._context.owner, self._gating.overdue
            await self._store.insist(
                self._store.runs.settle, seen.run.id, owner, new_key(), overdue
            )

    async def _is_over(self, seen: Seen) -> bool:
        """Wait until an error can no longer be transient; False: look again."""
        life, loop = self._life, asyncio.get_running_loop()
        if life.key != seen.run.key:  # nothing is in flight that could still succeed
            return True
        ends = life.grace.setdefault(seen.run.id, loop.time() + self._context.settings.grace)
        while (left := ends - loop.time()) > 0:
            if await self._store.insist(self._store.tasks.has_word, seen.task.id):
                break  # the user sent a message
            await life.first_of(*([life.sending] if life.sending else ()), timeout=left)
            turn = life.take_turn()
            if turn is not None and ending_of(turn) == "done":  # seen as an error elsewhere
                await self._context.finish(seen.task.id, seen.run.id, turn)
            if life.poked.is_set():
                life.poked.clear()
                if (await self._context.look(seen.task.id)).run != seen.run:
                    return False
        return True

    async def _children_are_done(self, seen: Seen) -> bool:
        """Wait for the children, unless the user sent a message; False: look again."""
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
                if (await self._context.look(seen.task.id)).run != seen.run:
                    return False
        return True


_LOST = "its supervisor died while the agent was at work; what it did is not known"
_UNKNOWN = "its supervisor died while sending a prompt; whether it arrived cannot be known"
_LEFT_IN = {
    "running": _LOST,
    "settling": "its supervisor died before the gates were asked",
    "gating": "its supervisor died before the gates had answered",
    "steering": "its supervisor died before the agent was sent back",
}


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
            "settling": Settling(context, life, self._gating).settle,
            "gating": self._gating.gate,
            "steering": self._steer,
        }

    async def drive(self) -> None:
        """Go on until the task has ended, or is no longer ours."""
        if self._life.origin != "here":
            await self._life.abort(self._context.settings.abort_patience)  # the orphan (K18)
        while True:
            self._life.poked.clear()
            seen = await self._context.look(self._life.task_id)
            step = self._steps.get(seen.run.state)
            if step is None:
                break
            if self._life.origin == "to end":
                await self._end(seen, "interrupted", seen.run.turn, _LEFT_IN[seen.run.state])
            else:
                await step(seen)
        sending = self._life.sending
        if sending is not None:
            await self._life.abort(self._context.settings.abort_patience)
            self._tell_cut_off(seen.run, sending)

    def _tell_cut_off(self, run: Run, sending: asyncio.Task[Turn]) -> None:
        """Report an aborted turn, for its cost."""
        turn = come_back(sending)
        if turn is not None:
            self._tell(run, "turn", turn=turn)

    async def _run(self, seen: Seen) -> None:
        """Wait for the turn of the current run, after sending its prompt if that was not done."""
        run = seen.run
        life = self._life
        early = life.signals.pop(run.id, None)
        if early is not None:  # it ended before the ledger knew that it had begun
            await self._finish(seen, early, ending_of(early))
            return
        if life.sending is None or life.key != run.key:
            if not await self._may_send(seen):
                return
            if not await self._store.insist(
                self._store.tasks.mark_sent, run, self._context.owner, "dispatched"
            ):
                return
            self._send(run, run.prompt, run.key)
        sending = life.sending
        assert sending is not None
        await life.first_of(sending, timeout=life.left(seen.task.timeout))
        if sending.done():
            await self._ended(seen, sending)
        elif not life.poked.is_set():
            await self._timed_out(seen)

    async def _may_send(self, seen: Seen) -> bool:
        """Return True if the first prompt must be sent; end the task if that is unknown."""
        run, life = seen.run, self._life
        if life.session is None:
            await self._end(seen, "interrupted", None, "its session cannot be reopened")
            return False
        if run.sent == "reserved" and life.origin == "here":
            return True
        knows = True if run.sent == "accepted" else self._context.knows(life.session, run.key)
        # A power cut may have taken the mark that it was dispatched; a process's death cannot.
        if knows is False or (knows is None and run.sent == "reserved"):
            return True
        await self._end(seen, "interrupted", None, _LOST if knows else _UNKNOWN)
        return False

    def _send(self, run: Run, prompt: str, key: str) -> asyncio.Task[Turn]:
        """Send a prompt to the session, for the run that it starts."""
        self._tell(run, "sent", text=prompt)
        return self._life.send(prompt, key, lambda news: self._hear(run, news))

    def _hear(self, run: Run, news: News) -> None:
        """Handle news that a session reports during its turn."""
        context, life = self._context, self._life
        if news.kind == "ref":
            context.do(self._note_session())
        elif news.kind == "ended" and news.turn is not None:
            context.do(self._ended_elsewhere(run.id, news.turn))
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

    async def _ended_elsewhere(self, run: str, turn: Turn) -> None:
        while not await self._context.finish(self._life.task_id, run, turn):
            try:
                seen = await self._context.look(self._life.task_id)
            except Fenced:
                return
            if seen.run.id != run or seen.run.state != "running":  # else it was entered just now
                if seen.run.state == "steering":  # the run that ended is not in the ledger yet
                    self._life.signals[run] = turn
                return

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
        except SendError as error:  # not transient: nothing was sent
            turn = Turn(text="", stop_reason="error", error=str(error), turns=0)
            self._life.key = ""
        except asyncio.CancelledError:
            turn = Turn(text="", stop_reason="cancelled", turns=0)
        self._life.sending = None
        self._life.turn, self._life.turn_of = turn, seen.run.id
        await self._note_session()
        ending = ending_of(turn)
        self._tell(seen.run, "turn", turn=turn)
        if ending == "interrupted":  # by its user, inside the agent: gates do not run (C4)
            await self._end(seen, "interrupted", turn, turn.error)
            return
        await self._finish(seen, turn, ending)

    async def _timed_out(self, seen: Seen) -> None:
        sending = self._life.sending
        stopped = await self._life.abort(self._context.settings.abort_patience)
        error = f"no end after {seen.task.timeout:g} s"
        if not stopped:
            error += ", and it did not stop when it was told to"
        turn = come_back(sending) or Turn(text="", turns=0)
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

    async def _steer(self, seen: Seen) -> None:
        """Send the steer that is reserved; a new run begins when it has arrived (K2)."""
        steer, life = seen.steer, self._life
        patience = self._context.settings.abort_patience
        if steer is None:
            raise LedgerError(self._store.ledger.path, f"task {seen.task.id} lost its steer")
        if life.sending is not None and life.key != steer.key:
            sending = life.sending
            if not await life.abort(patience):
                await self._fail(steer.key, f"the agent did not stop within {patience:g} s")
                return
            self._tell_cut_off(seen.run, sending)
        if life.session is None:
            await self._fail(steer.key, "its session cannot be reopened")
            return
        if life.key != steer.key and (steer.phase == "dispatched" or life.origin != "here"):
            knows = self._context.knows(life.session, steer.key)
            if knows is None and steer.phase == "dispatched":
                await self._end(seen, "interrupted", seen.run.turn, _UNKNOWN)
                return
            if knows:
                await self._store.insist(self._store.runs.accept, steer.key, self._context.owner)
                return
        if not await self._store.insist(self._store.runs.dispatch, steer.key, self._context.owner):
            return
        self._tell(seen.run, "steering", text=steer.prompt)
        prompt = self._with_task(seen, steer.prompt)
        generation = seen.run.generation + 1
        begun = replace(seen.run, id=run_id(seen.task.id, generation), generation=generation)
        await self._await_acceptance(seen, self._send(begun, prompt, steer.key))

    def _with_task(self, seen: Seen, prompt: str) -> str:
        """Return a steer's prompt, after the task's own if that did not arrive."""
        run, session = seen.run, self._life.session
        if run.turn is not None or run.sent != "dispatched" or session is None:
            return prompt
        is_lost = self._context.knows(session, run.key) is False
        return f"{run.prompt}\n\n{prompt}" if is_lost else prompt

    async def _await_acceptance(self, seen: Seen, sending: asyncio.Task[Turn]) -> None:
        assert seen.steer is not None
        key = seen.steer.key
        accepted = asyncio.ensure_future(self._life.accepted.wait())
        try:
            while not sending.done() and not accepted.done():
                await self._life.first_of(
                    sending, accepted, timeout=self._life.left(seen.task.timeout)
                )
                if sending.done() or accepted.done():
                    break
                if self._life.left(seen.task.timeout) == 0:
                    await self._out_of_time(seen, key)
                    return
                if self._life.poked.is_set() and not accepted.done():
                    self._life.poked.clear()
                    if (await self._context.look(self._life.task_id)).run != seen.run:
                        return  # a person was faster
        finally:
            accepted.cancel()
        error = None
        if sending.done() and not sending.cancelled():
            error = sending.exception()
        if error is not None:  # a SendError: nothing arrived, whatever the news said
            self._life.sending = None
            await self._fail(key, str(error), sent="reserved")
            return
        await self._store.insist(self._store.runs.accept, key, self._context.owner)

    async def _out_of_time(self, seen: Seen, key: str) -> None:
        """Settle a steer that was not acknowledged in time: failed, or accepted."""
        session = self._life.session
        if session is not None and self._context.knows(session, key) is False:
            await self._life.abort(self._context.settings.abort_patience)
            said = f"the agent did not take the prompt within {seen.task.timeout:g} s"
            await self._fail(key, said, sent="reserved")
        else:  # then it is this run that has no time left
            await self._store.insist(self._store.runs.accept, key, self._context.owner)

    async def _fail(self, key: str, error: str, sent: Sent | None = None) -> None:
        """Record that a steer failed; `sent` overrides what the ledger knows of its prompt."""
        self._context.warn(f"task {self._life.task_id} could not be steered: {error}")
        owner = self._context.owner
        await self._store.insist(self._store.runs.fail, key, owner, error, sent=sent)

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
