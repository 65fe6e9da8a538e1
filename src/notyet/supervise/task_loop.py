"""The loop that drives one supervised task.

    running   send the prompt (marked as dispatched first), wait for the turn  ─► settling
    settling  wait out a transient error, and the children                     ─► gating
    gating    run the gates, record the decision                               ─► steering or ended
    steering  send the agent back, wait until the prompt has arrived           ─► a new run
    ended     notify the observers and deliver the result (`delivery`)

The state is in the *ledger*. Each step waits for one thing, makes one guarded move and returns the
task as it is then. A move does in one transaction all that needs no waiting: a turn that ended well
goes on to its gates, a steer that is sent next is marked as dispatched. A move that fails has lost
a race against a person, a second signal or another process; then the loop looks again. So recovery
after a crash is the same loop, started by another process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.limits import uncounted
from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.task import ending_of
from notyet.core.verdict import Allow, Block, Decision, skipped
from notyet.engine.observers import EVERY_DECISION, found_out
from notyet.engine.stop import keep_in, warn_all
from notyet.errors import LedgerError, NotyetError, Refused, SendError
from notyet.ledger.transitions import run_id
from notyet.supervise.context import FencedError, new_key
from notyet.supervise.events import stop_event
from notyet.supervise.live_task import failed_turn, returned
from notyet.supervise.settling import Settling

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from notyet.core.event import Ending, StopEvent
    from notyet.core.session import News
    from notyet.core.task import Run, Sent
    from notyet.ledger import Begun
    from notyet.ledger.transitions import Phase, Seen
    from notyet.supervise.context import Context
    from notyet.supervise.delivery import Delivery
    from notyet.supervise.live_task import LiveTask
    from notyet.supervise.settings import ProgressKind

_LOST = "its supervisor died while the agent was at work; what it did is not known"
_UNKNOWN = "its supervisor died while sending a prompt; whether it arrived cannot be known"
_NO_SESSION = "its session cannot be reopened"
_LEFT_IN = {
    "running": _LOST,
    "settling": "its supervisor died before the gates ran",
    "gating": "its supervisor died before the gates had answered",
    "steering": "its supervisor died before the agent was sent back",
}


class TaskLoop:
    """Drives one task to its end."""

    def __init__(self, context: Context, live: LiveTask, delivery: Delivery) -> None:
        self._context = context
        self._live = live
        self._delivery = delivery
        self._store = context.store
        self._insist = context.store.insist
        self._tasks = context.store.tasks
        self._runs = context.store.runs
        self._noted = None if live.seen is None else (live.seen.ref, live.seen.session_id)
        self._noting = asyncio.Lock()
        self._settling = Settling(context, live, self._is_overtaken)
        self._steps: dict[str, Callable[[Seen], Awaitable[Seen | None]]] = {
            "running": self._run,
            "settling": self._settle,
            "gating": self._gate,
            "steering": self._steer,
        }

    async def drive(self) -> None:
        """Drive the task to its end and hand out its result, or an error."""
        context, live = self._context, self._live
        try:
            seen = await self._loop()
            context.release(live)  # its session can take another task
            await self._delivery.conclude(live, seen)
        except FencedError:
            if live.sending is not None:  # only a turn that we started is ours to end
                await self._stop_agent()
            live.fail(Refused(f"another process took over task {live.task_id}"))
        except asyncio.CancelledError:
            live.fail(Refused(f"the supervisor of task {live.task_id} was closed"))
            raise
        except LedgerError as error:
            context.warn(f"task {live.task_id} is left to recovery: {error}")
            await self._stop_agent()
            if live.turn is not None:  # for a later `recover` of this process
                context.unrecorded[live.task_id] = {live.turn_of: live.turn}
                error.add_note(f"the agent's answer was: {live.turn.text}")
            live.fail(error)
        except Exception as error:  # noqa: BLE001  # a handle waits for it
            await self._stop_agent()
            await self._give_up(error)
        finally:
            context.live.pop(live.task_id, None)
            context.release(live)

    async def _loop(self) -> Seen:
        live, seen = self._live, self._live.seen
        if live.origin != "here":
            await live.abort()  # the orphan (K18)
            seen = None
        while True:
            if seen is None:
                live.poked.clear()
                seen = await self._context.look(live.task_id)
            step = self._steps.get(seen.run.state)
            if step is None:
                break
            if live.origin == "to end":
                left = _LEFT_IN[seen.run.state]
                seen = await self._end(seen, "interrupted", seen.run.turn, left)
            else:
                seen = await step(seen)
        await self._cut_off(seen.run)
        return seen

    async def _stop_agent(self) -> None:
        """Abort the agent, unless its session works on another task by now."""
        if self._context.at_work.get(id(self._live.session)) == self._live.task_id:
            await self._live.abort()

    async def _give_up(self, error: Exception) -> None:
        """End a task that cannot be driven: another process could not either."""
        context, live = self._context, self._live
        said = f"internal error: {type(error).__name__}: {error}"
        context.warn(f"task {live.task_id}: {said}")
        end, owner = self._runs.end, context.owner
        try:
            await self._store(end, live.task_id, owner, "interrupted", turn=live.turn, error=said)
            await self._delivery.conclude(live)
        except NotyetError as again:
            context.warn(f"task {live.task_id} is left to recovery: {again}")
        finally:
            live.fail(error)

    # -- running

    async def _run(self, seen: Seen) -> Seen | None:
        """Wait for the turn of the current run, after sending its prompt if that was not done."""
        run, live = seen.run, self._live
        early = live.signals.pop(run.id, None)
        if early is not None:  # it ended before the ledger knew that it had begun
            return await self._finish(seen, early, ending_of(early))
        sending = live.sending
        if sending is None or live.key != run.key:
            if live.marked != run.key and not await self._mark_first(seen):
                return None
            if not await self._holds(seen):
                return None
            sending = self._send(run, run.prompt, run.key)
        await live.first_of(sending, within=live.left(seen.task.timeout))
        if sending.done():
            return await self._ended(seen, sending)
        if not live.poked.is_set():
            return await self._timed_out(seen)
        return None

    async def _mark_first(self, seen: Seen) -> bool:
        """Mark a first prompt as dispatched, if it is to be sent; False: look again."""
        if not await self._may_send(seen):
            return False
        mark, owner = self._tasks.mark_sent, self._context.owner
        is_marked = await self._insist(mark, seen.run, owner, "dispatched")
        self._live.marked = seen.run.key if is_marked else ""
        return is_marked

    async def _may_send(self, seen: Seen) -> bool:
        """Return True if the first prompt must be sent; end the task if that is unknown."""
        run, live = seen.run, self._live
        if live.session is None:
            await self._end(seen, "interrupted", None, _NO_SESSION)
            return False
        if run.sent == "reserved" and live.origin == "here":
            return True
        knows = True if run.sent == "accepted" else live.knows(run.key)
        # A power cut may have taken the mark that it was dispatched; a process's death cannot.
        if knows is False or (knows is None and run.sent == "reserved"):
            return True
        await self._end(seen, "interrupted", None, _LOST if knows else _UNKNOWN)
        return False

    async def _holds(self, seen: Seen) -> bool:
        """Return True if the task is still ours and as it was seen, right before a prompt is sent.

        The mark that it is dispatched was a guarded move, so it is, unless something came since:
        a poke, or the end of our lease while this process was suspended. The moment between this
        and the sending remains; an agent that keeps keys refuses the second prompt.
        """
        if self._context.has_lease and not self._live.poked.is_set():
            return True
        self._live.poked.clear()
        return _is_same(seen, await self._context.look(seen.task.id))

    def _send(self, run: Run, prompt: str, key: str) -> asyncio.Task[Turn]:
        """Send a prompt to the session, for the run that it starts."""
        self._report(run, "sent", text=prompt)
        return self._live.send(prompt, key, lambda news: self._on_news(run, news))

    def _on_news(self, run: Run, news: News) -> None:
        """Handle news that a session reports during its turn."""
        if news.kind == "ref":
            self._context.do(self._note_session())
        elif news.kind == "ended" and news.turn is not None:
            self._context.do(self._ended_elsewhere(run.id, news.turn))
        elif news.kind == "accepted":
            self._report(run, "accepted")
        elif news.kind in {"text", "tool", "error"}:
            self._live.trouble = news.text if news.kind == "error" else ""
            self._report(run, news.kind, text=news.text, tool=news.tool)

    async def _note_session(self) -> None:
        async with self._noting:  # the newest is written last
            now = self._live.ref()
            if now is not None and now != self._noted:
                note, task = self._tasks.note_session, self._live.task_id
                await self._insist(note, task, self._context.owner, *now)
                self._noted = now

    async def _ended_elsewhere(self, run: str, turn: Turn) -> None:
        while not await self._context.finish(self._live.task_id, run, turn):
            try:
                seen = await self._context.look(self._live.task_id)
            except FencedError:
                return
            if seen.run.id != run or seen.run.state != "running":  # else it was entered just now
                if seen.run.state == "steering":  # the run that ended is not in the ledger yet
                    self._live.signals[run] = turn
                return

    async def _ended(self, seen: Seen, sending: asyncio.Task[Turn]) -> Seen | None:
        """Record how a turn ended by itself."""
        live = self._live
        try:
            turn = sending.result()
        except SendError as error:  # not transient: nothing was sent
            turn = failed_turn(str(error))
            live.key = ""
        except asyncio.CancelledError:
            turn = Turn(text="", stop_reason="cancelled", turns=0)
        live.sending = None
        live.turn, live.turn_of = turn, seen.run.id
        await self._note_session()
        self._report(seen.run, "turn", turn=turn)
        ending = ending_of(turn)
        if ending == "interrupted":  # by its user, inside the agent: gates do not run (C4)
            return await self._end(seen, "interrupted", turn, turn.error)
        if ending == "error":
            return await self._finish(seen, turn, ending)
        self._report(seen.run, "settling")
        return await self._move_on(seen, turn)

    async def _timed_out(self, seen: Seen) -> Seen | None:
        sending = self._live.sending
        error = f"no end after {seen.task.timeout:g} s"
        if not await self._live.abort():
            error += ", and it did not stop when aborted"
        if self._live.trouble:
            error += f"; its last error: {self._live.trouble}"
        turn = returned(sending) or Turn(text="", turns=0)
        return await self._finish(seen, replace(turn, stop_reason="error", error=error), "timeout")

    # -- settling

    async def _settle(self, seen: Seen) -> Seen | None:
        """Wait out the grace of an error, and for the children (K9); then move on."""
        self._report(seen.run, "settling")
        if seen.run.ending == "error" and not await self._settling.grace_is_over(seen):
            return None
        if not await self._settling.children_are_done(seen, self._until):
            return None
        return await self._move_on(seen)

    async def _move_on(self, seen: Seen, turn: Turn | None = None) -> Seen | None:
        """Move a run to its gates, or to a steer with queued messages; after a `turn`, at once.

        It is `settling` afterwards if it has to wait for its children.
        """
        if turn is not None:
            self._live.overdue = ()
        transcripts = self._transcripts()

        def event(settled: Seen) -> StopEvent | None:
            stop = stop_event(settled, *transcripts, self._live.overdue)
            return stop if self._is_asked(stop) else None

        self._live.marked = new_key()
        return await self._insist(
            self._runs.settle,
            seen.run.id,
            self._context.owner,
            self._live.marked,
            turn=turn,
            until=self._until,
            overdue=self._live.overdue,
            phase=self._phase,
            event=event,
        )

    # -- gating

    async def _gate(self, seen: Seen) -> Seen | None:
        """Run the gates, and record the decision together with what follows from it."""
        engine = self._live.engine
        event = stop_event(seen, *self._transcripts(), self._live.overdue)
        if seen.task.internal:
            return await self._record(seen, event, None, skipped("internal"))  # (C7)
        if not self._is_asked(event):
            return await self._record(seen, event, None, await engine.decide(event))
        self._report(seen.run, "gating")
        begun = seen.begun
        if begun is None:
            begun = await self._insist(self._store.ledger.begin, event)
        decision = await self._decide(seen, event, begun)
        after = None
        if decision is not None:
            counted = None if begun.repeats else begun
            after = await self._record(seen, event, counted, decision)
        if begun.overridden:
            await engine.tell(event, found_out(begun.overridden, begun.history.turn - 1))
        return after

    def _is_asked(self, event: StopEvent) -> bool:
        return not event.internal and self._live.engine.asks(event)

    def _transcripts(self) -> tuple[str | None, str | None]:
        """Return the transcripts of the agent and of its parent."""
        parent = self._context.live.get(self._live.task.parent)
        return self._live.transcript(), parent.transcript() if parent is not None else None

    async def _decide(self, seen: Seen, event: StopEvent, begun: Begun) -> Decision | None:
        """Return the gates' decision; None if a person or another process was faster (K6)."""
        context, ledger = self._context, self._store.ledger
        keep = keep_in(ledger, begun, context.warn)
        progress = context.gate_progress(seen.task.id)
        deciding = asyncio.ensure_future(
            self._live.engine.decide(event, begun.history, keep=keep, progress=progress)
        )
        try:
            while not deciding.done():
                await self._live.first_of(deciding)
                if await self._is_overtaken(seen):
                    return None
        finally:
            if not deciding.done():
                deciding.cancel()
                await asyncio.wait({deciding}, timeout=context.settings.abort_patience)
                await self._store(ledger.give_up, begun)
        error = deciding.exception()
        if error is not None:  # our own failure never blocks
            why = f"the gates could not run: {type(error).__name__}: {error}"
            return Decision(verdict=Allow(), outcome="failed_open", why=why, warnings=(why,))
        if begun.repeats:  # a repetition of a stop that is being decided elsewhere is not counted
            return uncounted(deciding.result(), "the same stop is still being checked")
        return deciding.result()

    async def _record(
        self, seen: Seen, event: StopEvent, begun: Begun | None, decision: Decision
    ) -> Seen | None:
        engine = self._live.engine
        self._live.marked = new_key()
        after = await self._insist(
            self._runs.decide,
            seen.run.id,
            self._context.owner,
            decision,
            begun=begun,
            ceiling=engine.limits.session_ceiling,
            key=self._live.marked,
            phase=self._phase,
            **self._delivery.marks(self._live),
        )
        if after is None or after.decision is None:
            return None
        final = self._live.decision = after.decision
        warn_all(final.warnings, self._context.warn)
        self._report(seen.run, "decided", decision=final)
        if isinstance(final.verdict, Block):
            await engine.tell(event, final)  # a decision, but no ending (C5)
        return after if after.run.state != seen.run.state else None  # a worker begins it again

    # -- steering

    async def _steer(self, seen: Seen) -> Seen | None:
        """Send the steer that is reserved; a new run begins when it has arrived (K2)."""
        steer, live = seen.steer, self._live
        patience = self._context.settings.abort_patience
        if steer is None:
            raise LedgerError(self._store.ledger.path, f"task {seen.task.id} lost its steer")
        if live.key != steer.key and not await self._cut_off(seen.run):
            return await self._fail(steer.key, f"the agent did not stop within {patience:g} s")
        if live.session is None:
            return await self._fail(steer.key, _NO_SESSION)
        prompt = self._with_task(seen.run, steer.prompt)
        if live.marked != steer.key or steer.phase == "reserved":
            if live.key != steer.key and (steer.phase == "dispatched" or live.origin != "here"):
                knows = live.knows(steer.key)
                if knows is None and steer.phase == "dispatched":
                    return await self._end(seen, "interrupted", seen.run.turn, _UNKNOWN)
                if knows:
                    return await self._accept(steer.key)
            if not await self._insist(self._runs.dispatch, steer.key, self._context.owner):
                return None
            live.marked = steer.key
        if not await self._holds(seen):
            return None
        self._report(seen.run, "steering", text=steer.prompt)
        generation = seen.run.generation + 1
        begun = replace(seen.run, id=run_id(seen.task.id, generation), generation=generation)
        return await self._await_acceptance(seen, steer.key, self._send(begun, prompt, steer.key))

    def _with_task(self, run: Run, prompt: str) -> str:
        """Return a steer's prompt, after the task's own if that did not arrive."""
        if run.turn is None and run.sent == "dispatched":
            live = self._live
            if live.marked == run.key or live.knows(run.key) is False:
                return f"{run.prompt}\n\n{prompt}"
        return prompt

    async def _await_acceptance(
        self, seen: Seen, key: str, sending: asyncio.Task[Turn]
    ) -> Seen | None:
        live, timeout = self._live, seen.task.timeout
        accepted = asyncio.ensure_future(live.accepted.wait())
        try:
            while not sending.done() and not accepted.done():
                await live.first_of(sending, accepted, within=live.left(timeout))
                if sending.done() or accepted.done():
                    break
                if live.left(timeout) == 0:
                    return await self._not_accepted(key, f"within {timeout:g} s")
                if await self._is_overtaken(seen):
                    return None  # a person was faster
        finally:
            accepted.cancel()
        if sending.done() and not sending.cancelled() and (error := sending.exception()):
            live.sending = None  # a SendError: nothing arrived, whatever the news said
            return await self._fail(key, str(error), sent="reserved")
        return await self._accept(key)

    async def _not_accepted(self, key: str, within: str) -> Seen | None:
        """Settle a steer that was not acknowledged in time: failed, or accepted."""
        if self._live.knows(key) is not False:
            return await self._accept(key)  # it is this run that has no time left
        await self._live.abort()
        error = f"the agent did not take the prompt {within}"
        return await self._fail(key, error, sent="reserved")

    # -- moves: each returns the task as it is then, or None: look again

    async def _finish(self, seen: Seen, turn: Turn, ending: Ending) -> Seen | None:
        return await self._insist(self._runs.finish, seen.run.id, turn, ending, self._context.owner)

    async def _accept(self, key: str) -> Seen | None:
        return await self._insist(self._runs.accept, key, self._context.owner)

    async def _fail(self, key: str, error: str, sent: Sent | None = None) -> Seen | None:
        """Record that a steer failed; `sent` overrides what the ledger knows of its prompt."""
        self._context.warn(f"task {self._live.task_id} could not be steered: {error}")
        await self._insist(self._runs.fail, key, self._context.owner, error, sent=sent)
        return None

    async def _end(
        self, seen: Seen, ending: Ending, turn: Turn | None, error: str | None
    ) -> Seen | None:
        """End the task, if it is still as it was seen."""
        end, owner = self._runs.end, self._context.owner
        await self._insist(end, seen.task.id, owner, ending, turn=turn, error=error, run=seen.run)
        return None

    @property
    def _phase(self) -> Phase:
        """How a steer is reserved: as dispatched, if it can be sent right after that."""
        live, observed = self._live, self._live.engine.observed
        is_next = live.session is not None and live.sending is None
        return "dispatched" if is_next and EVERY_DECISION not in observed else "reserved"

    @property
    def _until(self) -> str:
        """What of its children a task waits for (K9)."""
        return "notified" if self._context.deliver is None else "delivered"

    async def _is_overtaken(self, seen: Seen) -> bool:
        """Return True if, after a poke, the run is no longer as it was seen."""
        if not self._live.poked.is_set():
            return False
        self._live.poked.clear()
        now = await self._insist(self._tasks.look, seen.task.id)
        return now is None or now.owner != self._context.owner or not _is_same(seen, now)

    async def _cut_off(self, run: Run) -> bool:
        """Abort a turn in flight, and report it for its cost; False if the agent does not stop."""
        sending = self._live.sending
        if sending is None:
            return True
        has_stopped = await self._live.abort()
        turn = returned(sending)
        if turn is not None:
            self._report(run, "turn", turn=turn)
            await self._insist(self._runs.note_cut_off, run, turn, self._context.owner)
        return has_stopped

    def _report(self, run: Run, kind: ProgressKind, **details: object) -> None:
        self._context.report(self._live.task_id, kind, run.generation, **details)


def _is_same(seen: Seen, now: Seen) -> bool:
    """Return True if a task is in the same state as before."""
    before, after = seen.run, now.run
    is_same_run = (before.id, before.state, before.ending) == (after.id, after.state, after.ending)
    return is_same_run and (seen.steer and seen.steer.key) == (now.steer and now.steer.key)
