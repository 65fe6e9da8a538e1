"""Why a stop would meet these gates and not the others, and what would come of it now."""

from __future__ import annotations

import os

from notyet.core.event import child_key
from notyet.core.gate import EVERY_AGENT, why_not
from notyet.core.limits import History, Limits, open_turn
from notyet.core.matcher import fits
from notyet.core.plan import HANDED_BACK, plan, select
from notyet.core.record import Record
from notyet.ledger.history import foresee
from notyet.status.gated import DEFAULT, limits_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.settings import Setup
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.ledger.stops import Ledger
    from notyet.status.spared import Spared

_OWN_WORK = "the agent is one of a host's own"
_AT_WORK = "other agents of the session are at work (wait_for_background)"


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
    cause: str = ""  # why nothing is asked, whatever the gates are, as the ledger has it
    skipped: str = ""  # the same in words
    used: int | None = 0  # send-backs in this turn; None: not known
    limit: int = 0
    limit_source: str = ""  # the setting, and where it is set
    warnings: tuple[str, ...] = ()


def explained(
    event: StopEvent,
    setup: Setup,
    history: History | None,
    environ: Mapping[str, str],
    spared: Mapping[str, Spared],
    *,
    let_go: tuple[str, str] = ("", ""),
) -> Why:
    """Say for every gate that is in force why it applies, or why not.

    `let_go` is for which cause the hook would not come as far as the gates, and its words. No
    history: it is not known, and a stop begins a new one.
    """
    gates = select(event, setup.gates)
    known = open_turn(History(), event) if history is None else history
    planned = plan(event, gates, known, Limits(**setup.limits), setup.gates)
    limit = planned.limit
    cause, words = let_go if let_go[0] else _skipped(event, planned)
    return Why(
        host=event.host,
        scope=event.scope,
        session_id=event.session_id,
        agent=child_key(event) if event.scope == "subagent" else "",
        gates=tuple(_gate(gate, planned, words, spared) for gate in setup.gates),
        cause=cause,
        skipped=words,
        used=None if history is None else history.blocks,
        limit=limit.number,
        limit_source=_source(limit.source, setup, environ),
        warnings=planned.warnings,
    )


def _gate(gate: Gate, planned: Plan, skipped: str, spared: Mapping[str, Spared]) -> GateWhy:
    event = planned.event
    because = _OWN_WORK if event.internal else why_not(gate, event)
    applies = not because
    left_out = _left_out(gate, planned, skipped) if applies else ""
    found = spared.get(gate.name) if applies and not left_out else None
    return GateWhy(
        gate=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        applies=applies,
        because=because or left_out or _matched(gate, event),
        asked=applies and not left_out and not (found and found.cause),
        spared=found,
    )


def _left_out(gate: Gate, planned: Plan, skipped: str) -> str:
    """Say why a gate that applies is not asked; empty if it is, or would be but for its files."""
    if skipped:
        return skipped
    if any(gate in stage for stage in planned.stages):
        return ""
    if planned.handed_back and gate.native:
        return f"the agent hands back (it says {HANDED_BACK})"
    return f"the agent was sent back as often as it may be ({planned.limit.number} times)"


def _matched(gate: Gate, event: StopEvent) -> str:
    """Say which of the agent's names fits which pattern."""
    if event.scope == "agent":
        return "it is for the main agent"
    if gate.match.agents == EVERY_AGENT:
        return "it is for every subagent"
    return fits(gate.match.kind, gate.match.agents, event)


def _skipped(event: StopEvent, planned: Plan) -> tuple[str, str]:
    if event.internal:
        return "no-gate", _OWN_WORK
    if not planned.gates:
        return "no-gate", "no gate applies"
    if planned.skipped:
        return planned.skipped, _AT_WORK
    return "", ""


def _source(source: str, setup: Setup, environ: Mapping[str, str]) -> str:
    """Return which setting a limit comes from, and where that is set."""
    name = source.split(maxsplit=1)[0]
    where = {one.name: one.source for one in limits_here(setup, environ)}.get(name, "")
    if not where:
        return source
    return f"{source}, {'by default' if where == DEFAULT else where}"


def history_now(ledger: Ledger, event: StopEvent) -> History:
    """Return the history in which this stop would happen. Raises LedgerError."""
    if _is_there(ledger.path):
        return foresee(ledger, event).history
    return open_turn(History(), event)


def _is_there(path: str) -> bool:
    """Tell whether there is a ledger; an empty file is one that a stop is just making."""
    return os.path.isdir(path) or (os.path.exists(path) and os.path.getsize(path) > 0)
