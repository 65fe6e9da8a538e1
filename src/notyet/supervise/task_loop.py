"""The loop that drives one supervised task.

    running   send the prompt (marked as dispatched first), wait for the turn  ─► settling
    settling  wait out a transient error, and the children                     ─► gating
    gating    run the gates, record the decision                               ─► steering or ended
    steering  send the agent back, wait until the prompt has arrived           ─► a new run
    ended     notify the observers and deliver the result (`delivery`)

The state is in the *ledger*. Each step waits for one thing and makes one guarded move. A move that
fails has lost a race against a person, a second signal or another process; then the loop looks
again. So recovery after a crash is the same loop, started by another process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.limits import uncounted
from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.task import FINAL, ending_of
from notyet.core.verdict import Allow, Block, Decision, skipped
from notyet.engine.observers import found_out
from notyet.engine.stop import keep_in, warn_all
from notyet.errors import LedgerError, NotyetError, Refused, SendError
from notyet.ledger.transitions import run_id
from notyet.supervise.context import FencedError, new_key
from notyet.supervise.events import stop_event
from notyet.supervise.live_task import failed_turn, returned

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from notyet.core.event import Ending, StopEvent
    from notyet.core.session import News
    from notyet.core.task import Run, Sent
    from notyet.ledger import Begun
    from notyet.ledger.transitions import Seen
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
        self._noted: object = None  # what the ledger knows of the session
        self._steps: dict[str, Callable[[Seen], Awaitable[None]]] = {
            "running": self._run,
            "settling": self._settle,
            "gating": self._gate,
            "steering": self._steer,
        }

    async def drive(self) -> None:
        """Drive the task to its end and hand out its result, or an error."""
        context, live = self._context, self._live
        try:
            await self._loop()
            context.release(live)  # its session can take another task
            await self._delivery.conclude(live)
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

    async def _loop(self) -> None:
        live = self._live
        if live.origin != "here":
            await live.abort()  # the orphan (K18)
        while True:
            live.poked.clear()
            seen = await self._context.look(live.task_id)
            step = self._steps.get(seen.run.state)
            if step is None:
                break
            if live.origin == "to end":
                await self._end(seen, "interrupted", seen.run.turn, _LEFT_IN[seen.run.state])
            else:
                await step(seen)
        await self._cut_off(seen.run)

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

    async def _run(self, seen: Seen) -> None:
        """Wait for the turn of the current run, after sending its prompt if that was not done."""
        run, live = seen.run, self._live
        early = live.signals.pop(run.id, None)
        if early is not None:  # it ended before the ledger knew that it had begun
            await self._finish(seen, early, ending_of(early))
            return
        sending = live.sending
        if sending is None or live.key != run.key:
            if not await self._may_send(seen):
                return
            mark, owner = self._tasks.mark_sent, self._context.owner
            if not await self._insist(mark, run, owner, "dispatched") or not await self._holds(run):
                return
            sending = self._send(run, run.prompt, run.key)
        await live.first_of(sending, within=live.left(seen.task.timeout))
        if sending.done():
            await self._ended(seen, sending)
        elif not live.poked.is_set():
            await self._timed_out(seen)

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

    async def _holds(self, run: Run) -> bool:
        """Return True if the task is still ours and at this run; look right before sending.

        A process that was suspended after its mark may have lost its lease. The moment between
        this look and the sending remains; an agent that keeps keys refuses the second prompt.
        """
        now = await self._context.look(run.task)
        return now.run.id == run.id and now.run.state not in FINAL

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
        now = self._live.ref()
        if now is not None and now != self._noted:
            self._noted = now
            note, task = self._tasks.note_session, self._live.task_id
            await self._insist(note, task, self._context.owner, *now)

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

    async def _ended(self, seen: Seen, sending: asyncio.Task[Turn]) -> None:
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
            await self._end(seen, "interrupted", turn, turn.error)
        else:
            await self._finish(seen, turn, ending)

    async def _timed_out(self, seen: Seen) -> None:
        sending = self._live.sending
        error = f"no end after {seen.task.timeout:g} s"
        if not await self._live.abort():
            error += ", and it did not stop when aborted"
        if self._live.trouble:
            error += f"; its last error: {self._live.trouble}"
        turn = returned(sending) or Turn(text="", turns=0)
        await self._finish(seen, replace(turn, stop_reason="error", error=error), "timeout")

    # -- settling

    async def _settle(self, seen: Seen) -> None:
        """Wait out the grace of an error, and for the children (K9); then move on."""
        self._report(seen.run, "settling")
        if seen.run.ending == "error" and not await self._grace_is_over(seen):
            return
        if await self._children_are_done(seen):
            settle, owner = self._runs.settle, self._context.owner
            await self._insist(settle, seen.run.id, owner, new_key(), self._live.overdue)

    async def _grace_is_over(self, seen: Seen) -> bool:
        """Wait until an error can no longer be transient; False: look again."""
        live, loop = self._live, asyncio.get_running_loop()
        if live.key != seen.run.key:  # nothing is in flight that could still succeed
            return True
        ends = live.grace.setdefault(seen.run.id, loop.time() + self._context.settings.grace)
        while (left := ends - loop.time()) > 0:
            if await self._insist(self._tasks.has_user_message, seen.task.id):
                break  # the user sent a message
            await live.first_of(*([live.sending] if live.sending else ()), within=left)
            if live.sending is not None and live.sending.done():
                turn, live.sending = returned(live.sending), None
                if turn is not None and ending_of(turn) == "done":  # seen as an error elsewhere
                    await self._context.finish(seen.task.id, seen.run.id, turn)
            if await self._is_overtaken(seen):
                return False
        return True

    async def _children_are_done(self, seen: Seen) -> bool:
        """Wait for the children, unless the user sent a message; False: look again."""
        context, live, loop = self._context, self._live, asyncio.get_running_loop()
        patience = context.settings.children_expiry
        ends = loop.time() + patience
        waited_for = (
            self._tasks.children if context.deliver is None else self._tasks.undelivered_children
        )
        live.overdue = ()
        while children := await self._insist(waited_for, seen.task.id):
            if await self._insist(self._tasks.has_user_message, seen.task.id):
                break
            left = ends - loop.time()
            if left <= 0:
                live.overdue = tuple(children)
                context.warn(
                    f"task {seen.task.id} waited {patience:g} s for {len(children)} children, "
                    "and is gated without them"
                )
                break
            await live.first_of(within=min(left, context.settings.poll))
            if await self._is_overtaken(seen):
                return False
        return True

    # -- gating

    async def _gate(self, seen: Seen) -> None:
        """Run the gates, and record the decision together with what follows from it."""
        engine = self._live.engine
        parent = self._context.live.get(seen.task.parent)
        parents = parent.transcript() if parent is not None else None
        event = stop_event(seen, self._live.transcript(), parents, self._live.overdue)
        if seen.task.internal:
            await self._record(seen, event, None, skipped("internal"))  # (C7)
        elif not engine.asks(event):
            await self._record(seen, event, None, await engine.decide(event))
        else:
            self._report(seen.run, "gating")
            begun = await self._insist(self._store.ledger.begin, event)
            decision = await self._decide(seen, event, begun)
            if decision is not None:
                counted = None if begun.repeats else begun
                await self._record(seen, event, counted, decision)
            if begun.overridden:
                await engine.tell(event, found_out(begun.overridden, begun.history.turn - 1))

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
    ) -> None:
        engine = self._live.engine
        final = await self._insist(
            self._runs.decide,
            seen.run.id,
            self._context.owner,
            decision,
            begun=begun,
            ceiling=engine.limits.session_ceiling,
            key=new_key(),
        )
        if final is None:
            return
        self._live.decision = final
        warn_all(final.warnings, self._context.warn)
        self._report(seen.run, "decided", decision=final)
        if isinstance(final.verdict, Block):
            await engine.tell(event, final)  # a decision, but no ending (C5)

    # -- steering

    async def _steer(self, seen: Seen) -> None:
        """Send the steer that is reserved; a new run begins when it has arrived (K2)."""
        steer, live = seen.steer, self._live
        patience = self._context.settings.abort_patience
        if steer is None:
            raise LedgerError(self._store.ledger.path, f"task {seen.task.id} lost its steer")
        if live.key != steer.key and not await self._cut_off(seen.run):
            await self._fail(steer.key, f"the agent did not stop within {patience:g} s")
            return
        if live.session is None:
            await self._fail(steer.key, _NO_SESSION)
            return
        if live.key != steer.key and (steer.phase == "dispatched" or live.origin != "here"):
            knows = live.knows(steer.key)
            if knows is None and steer.phase == "dispatched":
                await self._end(seen, "interrupted", seen.run.turn, _UNKNOWN)
                return
            if knows:
                await self._accept(steer.key)
                return
        if not await self._insist(self._runs.dispatch, steer.key, self._context.owner):
            return
        if not await self._holds(seen.run):
            return
        self._report(seen.run, "steering", text=steer.prompt)
        generation = seen.run.generation + 1
        begun = replace(seen.run, id=run_id(seen.task.id, generation), generation=generation)
        sending = self._send(begun, self._with_task(seen.run, steer.prompt), steer.key)
        await self._await_acceptance(seen, steer.key, sending)

    def _with_task(self, run: Run, prompt: str) -> str:
        """Return a steer's prompt, after the task's own if that did not arrive."""
        if run.turn is None and run.sent == "dispatched" and self._live.knows(run.key) is False:
            return f"{run.prompt}\n\n{prompt}"
        return prompt

    async def _await_acceptance(self, seen: Seen, key: str, sending: asyncio.Task[Turn]) -> None:
        live, timeout = self._live, seen.task.timeout
        accepted = asyncio.ensure_future(live.accepted.wait())
        try:
            while not sending.done() and not accepted.done():
                await live.first_of(sending, accepted, within=live.left(timeout))
                if sending.done() or accepted.done():
                    break
                if live.left(timeout) == 0:
                    await self._not_accepted(key, f"within {timeout:g} s")
                    return
                if await self._is_overtaken(seen):
                    return  # a person was faster
        finally:
            accepted.cancel()
        if sending.done() and not sending.cancelled() and (error := sending.exception()):
            live.sending = None  # a SendError: nothing arrived, whatever the news said
            await self._fail(key, str(error), sent="reserved")
        else:
            await self._accept(key)

    async def _not_accepted(self, key: str, within: str) -> None:
        """Settle a steer that was not acknowledged in time: failed, or accepted."""
        if self._live.knows(key) is False:
            await self._live.abort()
            await self._fail(key, f"the agent did not take the prompt {within}", sent="reserved")
        else:  # then it is this run that has no time left
            await self._accept(key)

    # -- moves

    async def _finish(self, seen: Seen, turn: Turn, ending: Ending) -> None:
        await self._insist(self._runs.finish, seen.run.id, turn, ending, self._context.owner)

    async def _accept(self, key: str) -> None:
        await self._insist(self._runs.accept, key, self._context.owner)

    async def _fail(self, key: str, error: str, sent: Sent | None = None) -> None:
        """Record that a steer failed; `sent` overrides what the ledger knows of its prompt."""
        self._context.warn(f"task {self._live.task_id} could not be steered: {error}")
        await self._insist(self._runs.fail, key, self._context.owner, error, sent=sent)

    async def _end(self, seen: Seen, ending: Ending, turn: Turn | None, error: str | None) -> None:
        """End the task, if it is still as it was seen."""
        end, owner = self._runs.end, self._context.owner
        await self._insist(end, seen.task.id, owner, ending, turn=turn, error=error, run=seen.run)

    async def _is_overtaken(self, seen: Seen) -> bool:
        """Return True if, after a poke, the run is no longer as it was seen."""
        if not self._live.poked.is_set():
            return False
        self._live.poked.clear()
        now = await self._insist(self._tasks.look, seen.task.id)
        return now is None or now.run != seen.run or now.owner != self._context.owner

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
