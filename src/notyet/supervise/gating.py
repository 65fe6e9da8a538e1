"""How a supervised run meets its gates."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from notyet.core.limits import uncounted
from notyet.core.verdict import Allow, Block, Decision
from notyet.errors import LedgerError
from notyet.observers import found_out
from notyet.supervise.context import new_key
from notyet.supervise.events import INTERNAL, stop_event
from notyet.supervise.settings import Progress

if TYPE_CHECKING:
    from notyet.core.event import StopEvent
    from notyet.core.verdict import Report
    from notyet.ledger import Begun
    from notyet.ledger.task_moves import Seen
    from notyet.supervise.context import Context
    from notyet.supervise.life import Life

_MOST_WARNINGS = 10


class Gating:
    """Asks the gates about one task, as often as its agent wants to stop."""

    def __init__(self, context: Context, life: Life) -> None:
        self._context = context
        self._store = context.store
        self._life = life
        self.overdue: tuple[str, ...] = ()  # children that were waited for in vain

    async def gate(self, seen: Seen) -> None:
        """Ask, and record the decision together with what follows from it."""
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
        """Return what the gates decide; None when somebody was faster than they (K6)."""

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
        # A stop that another process still asks about has no place to be counted in.
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
            await engine.tell(event, final)  # those who watch decisions; an ending it is not (C5)

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
    """Return what was decided; a fault of ours lets the agent go, and says so."""
    error = deciding.exception()
    if error is None:
        return deciding.result()
    why = f"the gates could not be asked: {type(error).__name__}: {error}"
    return Decision(verdict=Allow(), outcome="failed_open", why=why, warnings=(why,))
