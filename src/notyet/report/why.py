"""Why a stop would meet these gates and not the others, and what would come of it now."""

from __future__ import annotations

import os
from contextlib import suppress

from notyet.core.event import child_key
from notyet.core.gate import EVERY_AGENT, fits, why_not
from notyet.core.limits import History, Limits, limit_in_force, open_turn
from notyet.core.plan import plan, select
from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger import sql
from notyet.ledger.rows import history_of, key_text
from notyet.report.gated import DEFAULT, limits_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.setup import Setup
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.ledger.sqlite import Ledger
    from notyet.report.spared import Spared


class GateWhy(Record, kw_only=True):
    """One gate, and whether a stop would meet it."""

    gate: str
    file: str = ""
    line: int = 0
    applies: bool
    because: str
    asked: bool = False  # now; else it does not apply, or is spared
    spared: Spared | None = None  # whether files changed that it depends on


class Why(Record, kw_only=True):
    """What would become of a stop."""

    host: str
    scope: str
    session_id: str
    agent: str  # how its names are written down; empty for a main agent
    gates: tuple[GateWhy, ...]
    skipped: str = ""  # why nothing is asked, whatever the gates are
    used: int = 0  # send-backs in this turn
    limit: int = 0
    limit_source: str = ""  # the setting, and where it is set
    warnings: tuple[str, ...] = ()


def explained(
    event: StopEvent,
    setup: Setup,
    history: History,
    environ: Mapping[str, str],
    spared: Mapping[str, Spared],
) -> Why:
    """Say for every gate that is in force why it applies, or why not."""
    gates = select(event, setup.gates)
    planned = plan(event, gates, history, Limits(**setup.limits), setup.gates)
    limit = limit_in_force(Limits(**setup.limits), history, event.host_cap)
    known = {gate.name for stage in planned.stages for gate in stage}
    return Why(
        host=event.host,
        scope=event.scope,
        session_id=event.session_id,
        agent=child_key(event) if event.scope == "subagent" else "",
        gates=tuple(_gate(gate, event, known, spared) for gate in setup.gates),
        skipped=_skipped(event, gates, planned.skipped),
        used=history.blocks,
        limit=limit.number,
        limit_source=_source(limit.source, setup, environ),
        warnings=planned.warnings,
    )


def _gate(gate: Gate, event: StopEvent, known: set[str], spared: Mapping[str, Spared]) -> GateWhy:
    because = "it is a gate's own work" if event.internal else why_not(gate, event)
    applies, is_met = not because, gate.name in known
    if applies:
        because = (
            _matched(gate, event) if is_met else "at the limit, or of an agent that hands back"
        )
    found = spared.get(gate.name) if applies and is_met else None
    return GateWhy(
        gate=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        applies=applies,
        because=because,
        asked=applies and is_met and not (found and found.cause),
        spared=found,
    )


def _matched(gate: Gate, event: StopEvent) -> str:
    """Say which of the agent's names fits which pattern."""
    if event.scope == "agent":
        return "it is for the main agent"
    if gate.match.agents == EVERY_AGENT:
        return "it is for every subagent"
    return fits(gate.match.kind, gate.match.agents, event)


def _skipped(event: StopEvent, gates: Sequence[Gate], cause: str) -> str:
    if event.internal:
        return "the agent is one of a host's own"
    if not gates:
        return "no gate applies"
    if cause == "background":
        return "other agents of the session are at work (wait_for_background)"
    return cause


def _source(source: str, setup: Setup, environ: Mapping[str, str]) -> str:
    """Return which setting a limit comes from, and where that is set."""
    name = source.split(maxsplit=1)[0]
    where = {one.name: one.source for one in limits_here(setup, environ)}.get(name, "")
    if not where:
        return source
    return f"{source}, {'by default' if where == DEFAULT else where}"


def history_now(ledger: Ledger, event: StopEvent) -> History:
    """Return the history in which this stop would happen, as far as the ledger knows it."""
    key = tuple(key_text(name) for name in (event.host, event.session_id, event.agent_id or ""))
    known = History()
    if event.session_id and os.path.exists(ledger.path):
        with suppress(LedgerError):
            row = ledger.file.read(lambda db: db.execute(sql.FIND_AGENT, key).fetchone())
            known = history_of(row[2:]) if row else known
    return open_turn(known, event)
