"""Find and read recorded stops and agents, for `notyet log`, `status` and `replay`.

Nothing here writes; a `Ledger(repair=False)` reads a missing file as an empty one.
"""

from __future__ import annotations

import os

from notyet.core.event import BackgroundTask, StopEvent, Usage
from notyet.core.record import Record, replace
from notyet.core.verdict import GROUPS, NOTHING_TO_CHECK, OUTCOMES, group_of
from notyet.ledger.ledger import ASKER, is_lost
from notyet.ledger.stop_rows import (
    ALL,
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STATUSES,
    STOP_COLUMNS,
    history_of,
    key_text,
    place_text,
    report_of,
)
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from typing import Any

    from notyet.core.limits import History
    from notyet.core.verdict import Report
    from notyet.ledger.ledger import Ledger

_ROWS_AT_ONCE = 500  # rows in one statement
_STOPS_AT_ONCE = 1_000  # stops in one step of --follow


class StopFilter(Record, kw_only=True):
    """Which stops to find; an empty field matches all."""

    session: str = ""  # an id, or its beginning
    is_whole_session: bool = False  # `session` is the whole id
    outcomes: tuple[str, ...] = ()
    host: str = ""
    place: str = ""  # a folder, with those below
    gate: str = ""  # that has a report
    since: float = 0.0
    until: float = 0.0
    before: int = 0  # stops older than this one
    after: int = 0  # stops newer than this one
    most: int = 20  # -1: all


class PastStop(Record, kw_only=True):
    """One recorded stop; `outcome` is "asking" while it is not decided.

    A stop whose process is gone is "skipped" (lost), also if its row does not say so yet.
    """

    id: int
    host: str
    session_id: str
    agent_id: str  # "" for the main agent
    scope: str
    place: str  # the agent's folder, "" if unknown
    turn: int
    begun_at: float
    ended_at: float | None
    outcome: str
    verdict: str
    prompt: str
    reason: str
    why: str
    count: int
    limit: int
    limit_source: str
    warnings: tuple[str, ...]
    repeated: int  # how often its answer was given again (B12)
    followed: bool  # a later stop of this agent is known
    task: str  # of a supervised agent
    reports: tuple[Report, ...]
    event: StopEvent
    odd: tuple[str, ...] = ()  # values that this version of notyet does not know

    @property
    def may_change(self) -> bool:
        """True if its outcome may change: a host overrides a send-back before the next stop."""
        is_undecided = self.outcome == "asking" or self.why == "lost"
        return is_undecided or (self.outcome == "blocked" and not self.followed)


class PastAgent(Record, kw_only=True):
    """An agent, and the outcome of its last stop."""

    host: str
    session_id: str
    agent_id: str
    history: History
    seen_at: float
    stop: int  # its newest, 0 for none
    outcome: str
    place: str
    why: str = ""  # of the outcome


# Finding stops: one statement whose conditions SQLite answers with its indexes.


def stops(ledger: Ledger, wanted: StopFilter) -> list[PastStop]:
    """Return the stops that match, the newest first, without outputs."""
    return ledger.connection.read(lambda db: read_in(db, find(db, wanted)))


def numbers(ledger: Ledger, wanted: StopFilter) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    return ledger.connection.read(lambda db: find(db, wanted))


def find(db: sqlite3.Connection, wanted: StopFilter) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    takes_lost = not {"skipped", "not_checked"}.isdisjoint(wanted.outcomes)
    if ("asking" in wanted.outcomes) == takes_lost:
        return _find(db, wanted)
    # A stop whose process is gone counts as skipped, though the row may never say so.
    asking = _find(db, replace(wanted, outcomes=("asking",), most=-1))
    lost = _lost_among(db, asking)
    others = tuple(outcome for outcome in wanted.outcomes if outcome != "asking")
    found = _find(db, replace(wanted, outcomes=others)) if others else []
    found += [number for number in asking if (number in lost) == takes_lost]
    found.sort(reverse=True)
    return found if wanted.most < 0 else found[: wanted.most]


def of_outcomes(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return a condition for stops with some outcomes, or in groups of them; and its values."""
    outcomes = [name for name in OUTCOMES if group_of(name, "") in wanted and name != "skipped"]
    outcomes += [name for name in wanted if name not in GROUPS]
    condition = f"s.outcome IN ({_marks(outcomes)})"
    if "not_checked" not in wanted or "skipped" in wanted:
        return condition, *outcomes
    quiet = f"s.why NOT IN ({_marks(NOTHING_TO_CHECK)})"
    skipped = f"s.outcome = 'skipped' AND {quiet}"
    return f"({condition} OR ({skipped}))", *outcomes, *NOTHING_TO_CHECK


def _find(db: sqlite3.Connection, wanted: StopFilter) -> list[int]:
    conditions = Conditions(wanted)
    add = conditions.add
    if wanted.since or wanted.until:
        add("s.id > ? AND s.id < ?", *bounds(db, wanted))  # narrows every index
        add("s.begun_at >= ? AND s.begun_at <= ?", wanted.since, wanted.until or END_OF_TIME)
    if wanted.host:
        add(_OF_HOST, *host_values(wanted.host))
    if wanted.gate:
        add("s.id IN (SELECT stop FROM reports WHERE gate = ?)", wanted.gate)
    most = ALL if wanted.most < 0 else wanted.most
    statement = f"SELECT s.id FROM stops s WHERE {conditions} ORDER BY s.id DESC LIMIT ?"
    return [number for (number,) in db.execute(statement, (*conditions.values, most))]


def bounds(db: sqlite3.Connection, wanted: StopFilter) -> tuple[int, int]:
    """Return the numbers between which stops can match, at the same cost for a span of any length.

    Numbers grow with time, but for stops near an end of the span, if the clock was set back there.
    """
    low, high = wanted.after, wanted.before or ALL
    near = wanted.since, wanted.until or END_OF_TIME, _NEAR_THE_END
    if wanted.since:
        (first,) = db.execute(_FIRST_SINCE, near).fetchone()
        low = high if first is None else max(low, first - 1)
    if wanted.until:
        (last,) = db.execute(_LAST_UNTIL, near).fetchone()
        high = low if last is None else min(high, last + 1)
    return low, high


class Conditions:
    """SQL conditions on a stop `s`, joined by AND.

    They begin with what its row alone tells: its number, outcome, session and place.
    """

    def __init__(self, wanted: StopFilter) -> None:
        self._texts: list[str] = []
        self.values: list[Any] = []
        self.add("s.id > ? AND s.id < ?", wanted.after, wanted.before or ALL)
        if wanted.outcomes:
            self.add(*of_outcomes(wanted.outcomes))
        if wanted.session:
            self.add(_OF_SESSION, *session_range(wanted), session_text(wanted))
        if wanted.place:
            folders = below(wanted.place)
            any_of = " OR ".join("s.place = ? OR (s.place >= ? AND s.place < ?)" for _ in folders)
            self.add(f"({any_of})", *(name for names in folders for name in names))

    def add(self, condition: str, *values: Any) -> None:
        """Add a condition and its values."""
        self._texts.append(condition)
        self.values.extend(values)

    def __str__(self) -> str:
        return " AND ".join(self._texts)


def session_range(wanted: StopFilter) -> tuple[str, str]:
    """Return the first id of the sessions that match, and the end after the last."""
    first = key_text(wanted.session)
    return first, first + ("\x01" if wanted.is_whole_session else "\U0010ffff")


def session_text(wanted: StopFilter) -> str:
    """Return what is in the event of each stop without an agent, if its session matches."""
    text = '"session_id": ' + dumps(key_text(wanted.session))
    return text if wanted.is_whole_session else text[:-1]


def host_values(host: str) -> tuple[str, str]:
    """Return a host as agents have it, and as the event of a stop without an agent has it."""
    name = key_text(host)
    return name, f'"host": {dumps(name)}'


END_OF_TIME = 1e300
_NEAR_THE_END = 1_000  # stops at each end of a span of time among which the clock was set back
_FIRST_SINCE = (
    "SELECT min(id) FROM (SELECT id FROM stops WHERE begun_at >= ? AND begun_at <= ?"
    " ORDER BY begun_at LIMIT ?) AS first_ones"
)
_LAST_UNTIL = (
    "SELECT max(id) FROM (SELECT id FROM stops WHERE begun_at >= ? AND begun_at <= ?"
    " ORDER BY begun_at DESC LIMIT ?) AS last_ones"
)
# A stop of an agent that was never counted names its agent only in its event.
_OF_SESSION = (
    "(s.agent IN (SELECT id FROM agents WHERE session_id >= ? AND session_id < ?)"
    " OR (s.agent = 0 AND replace(s.event, ?, '') != s.event))"
)
_OF_HOST = (
    "(s.agent IN (SELECT id FROM agents WHERE host = ?)"
    " OR (s.agent = 0 AND replace(s.event, ?, '') != s.event))"
)


def below(place: str) -> list[tuple[str, str, str]]:
    """Return the stored forms of a folder, by path and real path: itself, and the range below."""
    if not place:
        return []
    names = dict.fromkeys(map(place_text, (os.path.abspath(place), os.path.realpath(place))))
    return [(name, name.rstrip("/") + "/", name.rstrip("/") + "0") for name in names]


# Reading stops.


def read_stop(ledger: Ledger, number: int) -> PastStop | None:
    """Return one stop with its outputs."""
    if abs(number) > ALL:
        return None
    found = ledger.connection.read(lambda db: read_in(db, [number], WHOLE_REPORTS))
    return found[0] if found else None


def read_stops(ledger: Ledger, numbers: Sequence[int]) -> list[PastStop]:
    """Return stops by their numbers, the newest first, as far as they exist; without outputs."""
    return ledger.connection.read(lambda db: read_in(db, sorted(numbers, reverse=True)))


def same_turn(ledger: Ledger, number: int, most: int = 10) -> list[PastStop]:
    """Return the other stops of the same turn of the same agent, the oldest first.

    At most so many from before, and so many from after.
    """

    def read(db: sqlite3.Connection) -> list[PastStop]:
        row = db.execute("SELECT agent, turn FROM stops WHERE id = ?", (number,)).fetchone()
        if row is None or not row[0]:
            return []
        found = [
            stop
            for statement in (_EARLIER, _LATER)
            for (stop,) in db.execute(statement, (row[0], number, row[1], most))
        ]
        return read_in(db, sorted(found))

    return ledger.connection.read(read)


def neighbours(ledger: Ledger, number: int) -> tuple[int, int]:
    """Return the stops of the same agent before and after a stop; 0 for none."""

    def read(db: sqlite3.Connection) -> tuple[int, int]:
        row = db.execute("SELECT agent FROM stops WHERE id = ?", (number,)).fetchone()
        if row is None or not row[0]:
            return 0, 0
        before, after = (
            db.execute(statement, (row[0], number)).fetchone()[0] for statement in (_BEFORE, _AFTER)
        )
        return before or 0, after or 0

    return ledger.connection.read(read)


_BEFORE = "SELECT max(id) FROM stops WHERE agent = ? AND id < ?"
_AFTER = "SELECT min(id) FROM stops WHERE agent = ? AND id > ?"
_EARLIER = "SELECT id FROM stops WHERE agent = ? AND id < ? AND turn = ? ORDER BY id DESC LIMIT ?"
_LATER = _EARLIER.replace("id < ?", "id > ?").replace("id DESC", "id")
_AGENT = ("host", "session_id", "agent_id")
_STOP = ("id", "place", "ended_at", "repeated", "event", *ASKER.split(", "))
_COLUMNS = (*_AGENT, *_STOP, *STOP_COLUMNS, "followed")
_READ = f"""
SELECT {", ".join(f"a.{name}" for name in _AGENT)},
  {", ".join(f"s.{name}" for name in (*_STOP, *STOP_COLUMNS))},
  EXISTS (SELECT 1 FROM stops n WHERE n.agent = s.agent AND n.id > s.id)
FROM stops s LEFT JOIN agents a ON a.id = s.agent WHERE s.id IN
"""
WHOLE_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop IN"
_SHORT_REPORTS = WHOLE_REPORTS.replace(" output,", " '',")
_LOST = f"SELECT id, outcome, {ASKER} FROM stops WHERE id IN"


def read_in(
    db: sqlite3.Connection, ids: Sequence[int], reports: str = _SHORT_REPORTS
) -> list[PastStop]:
    """Return stops by their numbers, in that order, inside the caller's transaction."""
    found: dict[int, PastStop] = {}
    for some in parts(ids):
        marks = f"({_marks(some)})"
        said: dict[int, list[tuple[Any, ...]]] = {}
        for row in db.execute(f"{reports} {marks} ORDER BY stop, position", some):
            said.setdefault(row[0], []).append(row)
        for row in db.execute(f"{_READ} {marks}", some):
            known = dict(zip(_COLUMNS, row, strict=True))
            found[known["id"]] = _past_stop(known, said.get(known["id"], []))
    return [found[number] for number in ids if number in found]


def _past_stop(known: dict[str, Any], reports: list[tuple[Any, ...]]) -> PastStop:
    event = event_of(known["event"])
    is_counted = known["host"] is not None
    if not is_counted:
        known |= {name: getattr(event, name) or "" for name in _AGENT}
    if has_lost_asker(*(known[name] for name in ("outcome", *ASKER.split(", ")))):
        known |= {"outcome": "skipped", "verdict": "allow", "why": "lost"}
    return PastStop(
        scope=event.scope,
        limit=known["max_blocks"],
        warnings=tuple(loads(known["warnings"])),
        followed=bool(known["followed"]) or not is_counted,  # unknown, if not counted
        task=event.task_id or "",
        reports=tuple(map(report_of, reports)),
        event=event,
        odd=tuple(f"{row[_GATE]}.status" for row in reports if row[_STATUS] not in STATUSES),
        **{name: known[name] for name in _AS_STORED},
    )


_GATE, _STATUS = REPORT_COLUMNS.index("gate"), REPORT_COLUMNS.index("status")
_AS_STORED = tuple(
    name
    for name in PastStop._fields
    if name in _COLUMNS and name not in ("event", "warnings", "followed")
)


def has_lost_asker(outcome: str, *asker: Any) -> bool:
    """Return True if a stop will never be decided: its process, the `ASKER`, is gone."""
    return outcome == "asking" and is_lost(*asker)


def _lost_among(db: sqlite3.Connection, ids: Sequence[int]) -> set[int]:
    return {
        number
        for some in parts(ids)
        for number, *known in db.execute(f"{_LOST} ({_marks(some)})", some)
        if has_lost_asker(*known)
    }


def parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield lists of numbers that fit into one statement."""
    for at in range(0, len(ids), _ROWS_AT_ONCE):
        yield ids[at : at + _ROWS_AT_ONCE]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def event_of(text: str) -> StopEvent:
    """Return a stored event, without unknown fields and those that were cut off."""
    stored = loads(text)
    known = {name: _field(name, stored[name]) for name in StopEvent._fields if name in stored}
    try:
        return StopEvent(**known)
    except (TypeError, ValueError):
        return StopEvent(**{name: value for name, value in known.items() if _fits(name, value)})


def _fits(name: str, value: Any) -> bool:
    try:
        StopEvent(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def _field(name: str, value: Any) -> Any:
    if name in {"usage", "total_usage"} and isinstance(value, dict):
        return Usage(**{key: value[key] for key in Usage._fields if key in value})
    if name == "background_tasks" and isinstance(value, list):
        return tuple(
            BackgroundTask(**{key: str(task.get(key, "")) for key in BackgroundTask._fields})
            for task in value
        )
    return value


# Reading agents.

_AGENTS = (
    f"SELECT id, host, session_id, agent_id, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " WHERE seen_at >= ? ORDER BY seen_at DESC"
)
_OF_ONE_SESSION = _AGENTS.replace(
    "seen_at >= ? ORDER BY seen_at DESC",
    "host = ? AND session_id = ? ORDER BY agent_id LIMIT ?",
)
_NEWEST = (
    f"SELECT id, place, why, outcome, {ASKER} FROM stops WHERE agent = ? ORDER BY id DESC LIMIT 1"
)


def agents(ledger: Ledger, since: float, place: str = "", most: int = 20) -> list[PastAgent]:
    """Return the agents seen since then, the last seen first; of a folder and below it."""
    folders = below(place)

    def read(db: sqlite3.Connection) -> list[PastAgent]:
        found: list[PastAgent] = []
        for row in db.execute(_AGENTS, (since,)):
            agent = _past_agent(db, row)
            if not folders or any(
                agent.place == own or agent.place.startswith(under) for own, under, _ in folders
            ):
                found.append(agent)
                if len(found) == most:
                    break
        return found

    return ledger.connection.read(read)


def session_agents(ledger: Ledger, host: str, session: str, most: int) -> list[PastAgent]:
    """Return the main agent of a session, and then its subagents."""
    wanted = (key_text(host), key_text(session), most)
    return ledger.connection.read(
        lambda db: [_past_agent(db, row) for row in db.execute(_OF_ONE_SESSION, wanted).fetchall()]
    )


_OF_ALL_AGENTS = (
    "SELECT coalesce(max((SELECT max(s.id) FROM stops s WHERE s.agent = a.id)), 0),"
    " coalesce(sum(a.session_blocks), 0) FROM agents a WHERE a.host = ? AND a.session_id = ?"
)


def session_totals(ledger: Ledger, host: str, session: str) -> tuple[int, int]:
    """Return the newest stop of a session, 0 if it has none, and how often it was sent back.

    Of all its agents, however many there are.
    """
    ((newest, sent_back),) = ledger.connection.rows(
        _OF_ALL_AGENTS, (key_text(host), key_text(session))
    )
    return newest, int(sent_back)


def _past_agent(db: sqlite3.Connection, row: tuple[Any, ...]) -> PastAgent:
    agent, host, session_id, agent_id, seen_at, *history = row
    newest = db.execute(_NEWEST, (agent,)).fetchone()
    stop, place, why, outcome = newest[:4] if newest else (0, "", "", "")
    if newest and has_lost_asker(*newest[3:]):
        outcome, why = "skipped", "lost"
    return PastAgent(
        host=host,
        session_id=session_id,
        agent_id=agent_id,
        history=history_of(tuple(history)),
        seen_at=seen_at,
        stop=stop,
        outcome=outcome,
        place=place,
        why=why,
    )


# Following new stops.


class NewStops(Record, kw_only=True):
    """What happened since the last look, the oldest stop first.

    `fresh` has the stops up to the number `newest`, which is the last one if `is_all`. Each look is
    one transaction, so that no stop is returned twice or missed.
    """

    newest: int
    is_all: bool
    watched: tuple[PastStop, ...]
    fresh: tuple[PastStop, ...]


def first_look(ledger: Ledger, wanted: StopFilter) -> NewStops:
    """Return the stops that match, and all that are being decided: they may match later."""

    def look(db: sqlite3.Connection) -> NewStops:
        asking = find(db, replace(wanted, outcomes=("asking",), gate="", most=-1))
        fresh = read_in(db, find(db, wanted)[::-1])
        watched = read_in(db, asking[::-1])
        return NewStops(newest=_newest(db), is_all=True, watched=tuple(watched), fresh=tuple(fresh))

    return ledger.connection.read(look)


def next_look(ledger: Ledger, wanted: StopFilter, watched: Sequence[int], after: int) -> NewStops:
    """Return the watched stops as they are now, and the next ones after a number.

    Of any outcome and gate: a stop has these only when it is decided.
    """

    def look(db: sqlite3.Connection) -> NewStops:
        last = _newest(db)
        newest = min(last, after + _STOPS_AT_ONCE)
        new = replace(wanted, after=after, before=newest + 1, outcomes=(), gate="", most=-1)
        fresh = find(db, new) if newest > after else []
        return NewStops(
            newest=newest,
            is_all=newest == last,
            watched=tuple(read_in(db, sorted(watched))),
            fresh=tuple(read_in(db, fresh[::-1])),
        )

    return ledger.connection.read(look)


def _newest(db: sqlite3.Connection) -> int:
    (newest,) = db.execute("SELECT max(id) FROM stops").fetchone()
    return int(newest or 0)
