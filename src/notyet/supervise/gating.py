"""Running the gates of a supervised agent: its events, the decision, what follows from it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.event import BackgroundTask, StartEvent, StopEvent
from notyet.core.limits import uncounted
from notyet.core.record import replace
from notyet.core.session import Turn
from notyet.core.verdict import Allow, Block, Decision, skipped
from notyet.engine.observers import found_out
from notyet.errors import LedgerError
from notyet.supervise.context import new_key
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from notyet.core.session import Session
    from notyet.core.task import Result, Task
    from notyet.core.verdict import Report
    from notyet.ledger import Begun
    from notyet.ledger.moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life

HOST = "notyet"
_SAID_BY_ENDING = frozenset({"end_turn", "error", "cancelled"})  # the ending says the same
# Internal helpers are not gated (C7).
INTERNAL = skipped("internal")


def stop_event(
    seen: Seen, own: str | None, parents: str | None = None, overdue: tuple[str, ...] = ()
) -> StopEvent:
    """Return the stop of a run whose turn has ended. All figures are of this run (K3).

    `own` and `parents` are the transcripts of the agent and of its parent.
    """
    task, run = seen.task, seen.run
    turn = run.turn or Turn(text="", turns=0)
    is_subagent = task.scope == "subagent"
    return StopEvent(
        scope=task.scope,
        host=HOST,
        session_id=seen.session_id or task.id,
        turn_id=f"{task.id}/{seen.user_turn}",
        run_id=run.id,
        task_id=task.id,
        agent_id=task.id if is_subagent else None,
        agent_type=task.agent_type,
        parent_session_id=(task.parent_session or None) if is_subagent else None,
        internal=task.internal,
        cwd=task.cwd,
        workspace=task.workspace,
        ending=run.ending or "done",
        end_reason=turn.stop_reason if turn.stop_reason not in _SAID_BY_ENDING else None,
        error=turn.error,
        task=task.prompt,
        label=task.label,
        last_message=turn.text or None,
        transcript_path=parents if is_subagent else own,
        agent_transcript_path=own if is_subagent else None,
        stop_hook_active=run.source == "gate",
        usage=turn.usage,
        turns=turn.turns,
        tool_calls=turn.tool_calls,
        tools_used=turn.tools,
        duration_ms=turn.duration_ms,
        model=turn.model,
        # Overdue, not running: the parent is gated all the same (K9).
        background_tasks=tuple(
            BackgroundTask(id=child, type="subagent", status="overdue") for child in overdue
        ),
    )


def ended_event(seen: Seen, result: Result, transcript: str | None) -> StopEvent:
    """Return the event of a task's end, for observers."""
    event = stop_event(seen, transcript)
    return replace(
        event, ending=result.ending, error=result.error, last_message=result.text or None
    )


def ended_decision(result: Result) -> Decision:
    """Return a decision for the observers of an end without gates."""
    return Decision(
        verdict=Allow(), outcome=result.outcome, why=result.stop_reason or result.ending
    )


def start_event(task: Task, session: Session, *, is_new: bool) -> StartEvent:
    """Return the start of a task: of a subagent, or of a main agent's session."""
    is_subagent = task.scope == "subagent"
    return StartEvent(
        scope=task.scope,
        host=HOST,
        session_id=session.id or task.id,
        agent_id=task.id if is_subagent else None,
        agent_type=task.agent_type,
        parent_session_id=(task.parent_session or None) if is_subagent else None,
        cwd=task.cwd,
        workspace=task.workspace,
        source="startup" if is_new else "resume",
        transcript_path=session.transcript(),
    )


_MOST_WARNINGS = 10


class Gating:
    """Runs the gates of one task, each time its agent wants to stop."""

    def __init__(self, context: Context, life: Life) -> None:
        self._context = context
        self._store = context.store
        self._life = life
        self.overdue: tuple[str, ...] = ()  # children that did not end in time

    async def gate(self, seen: Seen) -> None:
        """Run the gates, and record the decision together with what follows from it."""
        parent = self._context.lives.get(seen.task.parent)
        parents = self._context.transcript(parent.session if parent is not None else None)
        own = self._context.transcript(self._life.session)
        event = stop_event(seen, own, parents, self.overdue)
        engine = self._context.engine
        if seen.task.internal:
            await self._record(seen, event, None, INTERNAL)
        elif not engine.asks(event):
            await self._record(seen, event, None, await engine.decide(event))
        else:
            self._tell(seen, "gating")
            begun = await self._store.insist(self._store.ledger.begin, event)
            decision = await self._decide(seen, event, begun)
            if decision is not None:
                counted = None if begun.repeats else begun
                await self._record(seen, event, counted, decision)
            if begun.overridden:
                await engine.tell(event, found_out(begun.overridden, begun.history.turn - 1))

    async def _decide(self, seen: Seen, event: StopEvent, begun: Begun) -> Decision | None:
        """Return the gates' decision; None if a person or another process was faster (K6)."""

        def keep(report: Report) -> str:
            try:
                return self._store.ledger.keep_output(begun, report)
            except LedgerError as error:
                self._context.warn(f"{error} (the whole output of {report.gate} was not kept)")
                return ""

        engine = self._context.engine
        deciding = asyncio.ensure_future(engine.decide(event, begun.history, keep=keep))
        try:
            while not deciding.done():
                await self._life.first_of(deciding)
                if self._life.poked.is_set() and await self._is_overtaken(seen):
                    return None
            decision = _decided(deciding)
        finally:
            if not deciding.done():
                deciding.cancel()
                await asyncio.wait({deciding}, timeout=self._context.settings.abort_patience)
                await self._store(self._store.ledger.give_up, begun)
        # A repetition of a stop that is being decided elsewhere is not counted.
        return uncounted(decision, "an equal stop is being asked") if begun.repeats else decision

    async def _is_overtaken(self, seen: Seen) -> bool:
        self._life.poked.clear()
        now = await self._store.insist(self._store.tasks.look, seen.task.id)
        return now is None or now.run != seen.run or now.owner != self._context.owner

    async def _record(
        self, seen: Seen, event: StopEvent, begun: Begun | None, decision: Decision
    ) -> None:
        engine = self._context.engine
        final = await self._store.insist(
            self._store.runs.decide,
            seen.run.id,
            self._context.owner,
            decision,
            begun=begun,
            ceiling=engine.limits.session_ceiling,
            key=new_key(),
        )
        if final is None:
            return
        self._life.decision = final
        for warning in final.warnings[:_MOST_WARNINGS]:
            self._context.warn(warning)
        self._tell(seen, "decided", final)
        if isinstance(final.verdict, Block):
            await engine.tell(event, final)  # a decision, but no ending (C5)

    def _tell(self, seen: Seen, kind: str, decision: Decision | None = None) -> None:
        self._context.tell(
            Progress(
                task_id=seen.task.id,
                kind="gating" if kind == "gating" else "decided",
                generation=seen.run.generation,
                decision=decision,
            )
        )


def _decided(deciding: asyncio.Future[Decision]) -> Decision:
    """Return the decision; an internal error allows the stop, with a warning."""
    error = deciding.exception()
    if error is None:
        return deciding.result()
    why = f"the gates could not be asked: {type(error).__name__}: {error}"
    return Decision(verdict=Allow(), outcome="failed_open", why=why, warnings=(why,))
