"""Figures about a team's stops, gate by gate and project by project, from the team's tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from notyet.ledger.figures import KINDS, kind_of
from notyet.ledger.past_stops import of_outcomes
from notyet.ledger.postgres_sql import restored, translate
from notyet.ledger.stats import MOST_COUNTED, Tally

if TYPE_CHECKING:
    from typing import Any

    from notyet.ledger.past_stops import StopFilter
    from notyet.ledger.postgres_transaction import Answering
    from notyet.ledger.stats import Stats
    from notyet.share.team import Team


@dataclass(kw_only=True)
class ProjectStats:
    """How the stops of one project went."""

    project: str  # a digest
    name: str = ""  # where words are shared
    stops: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    last_at: float = 0.0


class TeamStats(NamedTuple):
    """The figures of a team; the projects with most stops that did not pass come first."""

    stats: Stats
    projects: list[ProjectStats]


_EPOCH = "extract(epoch FROM s.at)::float8"
_STOPS = (
    "SELECT s.id, s.origin::text, s.host, s.session, s.agent, s.turn,"
    f" {_EPOCH}, s.outcome, s.why, s.project, coalesce(s.words->>'project', '') FROM stop s"
)
_KEYS = "SELECT * FROM unnest(?::bigint[], ?::uuid[]) AS k (id, origin)"
_REPORTS = (
    "SELECT r.stop, r.origin::text, r.gate, r.status, r.seconds, r.observed::int, r.held::int"
    f" FROM report r JOIN ({_KEYS}) k ON r.stop = k.id AND r.origin = k.origin"
    " ORDER BY r.stop, r.position"
)
# Passes in the same sessions: a pass may be in a stop that does not match.
_PASSES = (
    "SELECT s.id, s.origin::text, s.host, s.session, s.agent, s.turn, r.gate FROM stop s"
    " JOIN report r ON r.origin = s.origin AND r.stop = s.id WHERE s.session = ANY(?)"
    " AND r.status IN ('allowed', 'remembered') AND NOT r.observed ORDER BY s.id"
)


def team_stats(team: Team, wish: StopFilter) -> TeamStats | None:
    """Count the stops that match, at most MOST_COUNTED; None where there are no such tables.

    `wish.place` does not matter: folders stay on their machines. Raises LedgerError.
    """
    with team.reading() as db:
        return None if db is None else _count(db, wish)


def _count(db: Answering, wish: StopFilter) -> TeamStats:
    most = MOST_COUNTED if wish.most < 0 else min(wish.most, MOST_COUNTED)
    where, values = _conditions(wish)
    newest = f"{_STOPS} WHERE {where} ORDER BY s.at DESC, s.id DESC LIMIT ?"
    found = _rows(db, newest, (*values, most + 1))
    is_all = len(found) <= most
    tally = Tally(wish.gate)
    projects: dict[str, ProjectStats] = {}
    for id_, origin, *agent, turn, at, outcome, why, project, name in found[:most][::-1]:
        # Of one agent, the numbers of stops grow; other agents may be on other machines.
        tally.add_stop((id_, origin), ((origin, *agent), turn), at, outcome, why)
        known = projects.setdefault(project, ProjectStats(project=project))
        known.stops += 1
        known.kinds[kind_of(outcome, why)] += 1
        known.name, known.last_at = name or known.name, at
    keys = [row[0] for row in found[:most]], [row[1] for row in found[:most]]
    for id_, origin, *said in _rows(db, _REPORTS, keys):
        tally.add_report((id_, origin), said)
    _look_further(db, tally)
    ordered = sorted(projects.values(), key=lambda one: (-one.kinds["not_passed"], -one.last_at))
    return TeamStats(tally.sum(is_all=is_all), ordered)


def _look_further(db: Answering, tally: Tally) -> None:
    """Count passes in stops of the same turns that do not match."""
    turns = {turn for counting in tally.gates.values() for turn in counting.unfixed}
    sessions = sorted({agent[2] for agent, _ in turns})
    if not sessions:
        return
    for id_, origin, *agent, turn, gate in _rows(db, _PASSES, (sessions,)):
        key = (origin, *agent), turn
        if key in turns and (gate, False) in tally.gates:
            tally.gates[gate, False].passed(key, (id_, origin))


def _conditions(wish: StopFilter) -> tuple[str, list[Any]]:
    conditions = ["true"]
    values: list[Any] = []

    def add(condition: str, *more: Any) -> None:
        conditions.append(condition)
        values.extend(more)

    if wish.since:
        add("s.at >= to_timestamp(?)", wish.since)
    if wish.until:
        add("s.at <= to_timestamp(?)", wish.until)
    if wish.host:
        add("s.host = ?", wish.host)
    if wish.session:
        add("starts_with(s.session, ?)", wish.session)
    if wish.outcomes:
        add(*of_outcomes(wish.outcomes))
    if wish.gate:
        reports = "SELECT 1 FROM report r WHERE r.origin = s.origin AND r.stop = s.id"
        add(f"EXISTS ({reports} AND r.gate = ?)", wish.gate)
    return " AND ".join(conditions), values


def _rows(db: Answering, query: str, values: Any) -> list[tuple[Any, ...]]:
    return [restored(row) for row in db.execute(translate(query).encode(), values).fetchall()]
