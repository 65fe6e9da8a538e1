"""What the ledger says of a project now: what sessions used of their budgets, and decisions."""

from __future__ import annotations

import os

from notyet.core.limits import Limits, limit_in_force
from notyet.core.record import Record
from notyet.errors import LedgerError
from notyet.ledger import past
from notyet.status.gated import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.settings import Setup
    from notyet.core.verdict import Report
    from notyet.ledger.stops import Ledger

AT_WORK = 12 * 3_600.0  # seconds since an agent was seen, after which its session counts as over
_MOST_SESSIONS = 5
_MOST_DECISIONS = 5


class SessionHere(Record, kw_only=True):
    """An agent that is at work, or was a while ago, and what is left of its budget."""

    host: str
    session_id: str
    agent_id: str
    turn: int
    used: int  # send-backs in this turn
    limit: int
    source: str  # which setting the limit comes from
    session_blocks: int  # send-backs ever
    outcome: str  # of its last stop
    seen_at: float


class DecisionHere(Record, kw_only=True):
    """A stop, and what became of it."""

    id: int
    at: float
    host: str
    session_id: str
    agent_id: str
    outcome: str
    count: int
    limit: int
    why: str


class Lately(Record, kw_only=True):
    """The ledger, and what it says of a project; or why it says nothing."""

    path: str
    size: int = 0  # bytes; 0: there is none yet
    sessions: tuple[SessionHere, ...] = ()
    decisions: tuple[DecisionHere, ...] = ()
    problem: str = ""


def looked_into(
    ledger: Ledger, place: str, now: float, setups: Mapping[str, Setup], caps: Mapping[str, int]
) -> Lately:
    """Read what concerns a folder and what is below; nothing is written, whatever happens."""
    size = size_of(ledger.path)
    if not size or not os.path.exists(ledger.path):
        return Lately(path=ledger.path)
    fallback = next(iter(setups.values()))

    def session(agent: past.AgentPast) -> SessionHere:
        limits = Limits(**setups.get(agent.host, fallback).limits)
        limit = limit_in_force(limits, agent.history, caps.get(agent.host, 0))
        return SessionHere(
            host=agent.host,
            session_id=agent.session_id,
            agent_id=agent.agent_id,
            turn=agent.history.turn,
            used=agent.history.blocks,
            limit=limit.number,
            source=limit.source,
            session_blocks=agent.history.session_blocks,
            outcome=agent.outcome,
            seen_at=agent.seen_at,
        )

    try:
        agents = past.agents(ledger, now - AT_WORK, place, _MOST_SESSIONS)
        stops = past.stops(ledger, past.Wish(place=place, most=_MOST_DECISIONS))
    except LedgerError as error:
        return Lately(path=ledger.path, size=size, problem=error.detail)
    return Lately(
        path=ledger.path,
        size=size,
        sessions=tuple(map(session, agents)),
        decisions=tuple(map(_decision, stops)),
    )


def _decision(stop: past.Past) -> DecisionHere:
    return DecisionHere(
        id=stop.id,
        at=stop.ended_at or stop.begun_at,
        host=stop.host,
        session_id=stop.session_id,
        agent_id=stop.agent_id,
        outcome=stop.outcome,
        count=stop.count,
        limit=stop.limit,
        why=_why(stop),
    )


_WOULD_HAVE = {"blocked": "would have blocked", "halted": "would have ended the turn"}


def _did(report: Report) -> str:
    """Return what a gate did; one that only watches does nothing to anybody."""
    return _WOULD_HAVE.get(report.status, report.status) if report.observed else report.status


def _why(stop: past.Past) -> str:
    """Say what a stop came to in a few words: which gates spoke, else the cause."""
    words = [
        f"{report.gate} {_did(report)}"
        for report in stop.reports
        if report.status not in {"allowed", "not_asked"}
    ]
    return ", ".join(words) or stop.why or ", ".join(report.gate for report in stop.reports)
