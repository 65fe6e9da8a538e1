"""Looking back: reading the stops and agents of a ledger. Reads only, and never creates a file.

Rows that are not as we write them hide no others: their readable columns are returned, and the
others named in `odd`.
"""

from __future__ import annotations

import os

from notyet.core.event import BackgroundTask, StopEvent, Usage
from notyet.core.limits import History
from notyet.core.record import Record, replace
from notyet.core.verdict import HIGHEST_EXTEND, Problem, Report
from notyet.ledger.connection import sqlite3_module as sqlite3
from notyet.ledger.rows import (
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STOP_COLUMNS,
    history_of,
    place_text,
    report_of,
)
from notyet.ledger.stops import ASKER, is_lost
from notyet.light import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3_module
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from notyet.ledger.stats import GateStats
    from notyet.ledger.stops import Ledger

    T = TypeVar("T")

__all__ = [
    "AgentPast",
    "Past",
    "Wish",
    "agents",
    "around",
    "below",
    "gate_stats",
    "has_unplaced",
    "numbers",
    "parts",
    "stop",
    "stops",
    "these",
]

_LARGEST = 1e15  # seconds; more overflows dates
_NO_WORDS = "(no words)"
_WHOLE = frozenset({"stop", "position", "extend", "observed", "hidden", "held"})
_STATUSES = frozenset(
    {"allowed", "blocked", "halted", "problem", "not_asked", "remembered", "unchanged"}
)


class Columns:
    """Columns of one row by name, each of its type; `odd` names those that are not."""

    def __init__(self, names: Iterable[str], row: Iterable[Any]) -> None:
        self._known = dict(zip(names, row, strict=True))
        self.odd: list[str] = []

    def text(self, name: str) -> str:
        """Return a text; another value converted to text."""
        value = self._known[name]
        if isinstance(value, str):
            return value
        self.odd.append(name)
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        return "" if value is None else str(value)

    def whole(self, name: str) -> int:
        """Return an integer, 0 for another value."""
        value = self._known[name]
        if isinstance(value, int):
            return value
        self.odd.append(name)
        return 0

    def number(self, name: str) -> float:
        """Return a number, 0 for another value."""
        value = self._known[name]
        if not is_number(value):
            self.odd.append(name)
            return 0.0
        return float(value)

    def moment(self, name: str) -> float | None:
        """Return a time, or None."""
        return None if self._known[name] is None else self.number(name)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return texts that are stored as JSON."""
        try:
            value = loads(self._known[name])
        except (TypeError, ValueError, AttributeError):
            value = None
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return tuple(value)
        self.odd.append(name)
        return ()


def is_number(value: object) -> bool:
    """Return True if a value is a number of reasonable size."""
    return isinstance(value, int | float) and -_LARGEST < value < _LARGEST


def readable_report(row: tuple[Any, ...]) -> tuple[Report, tuple[str, ...]]:
    """Return a report from `REPORT_COLUMNS`, and the names of its odd columns."""
    columns = Columns(REPORT_COLUMNS, row)
    known: dict[str, Any] = {name: _column(columns, name) for name in REPORT_COLUMNS}
    if not 0 <= known["extend"] <= HIGHEST_EXTEND:
        columns.odd.append("extend")
        known["extend"] = 0
    if known["status"] == "blocked" and not known["said"].strip():
        columns.odd.append("said")
        known["said"] = _NO_WORDS
    status = known["status"]
    if status not in _STATUSES:
        columns.odd.append("status")
        known["status"] = "problem"
    report = report_of(tuple(known.values()))
    if status not in _STATUSES:
        kind: Any = "unreadable"
        words = f"the ledger says {status!r}, which this notyet does not know"
        report = report.__replace__(answer=Problem(kind, words))
    return report, tuple(columns.odd)


def _column(columns: Columns, name: str) -> Any:
    if name == "seconds":
        return columns.number(name)
    return columns.whole(name) if name in _WHOLE else columns.text(name)


def event_of(text: str) -> StopEvent:
    """Return an event; unreadable fields are left out."""
    try:
        known = loads(text)
    except ValueError:
        known = None
    if not isinstance(known, dict):
        return StopEvent()
    fields = {name: _field(name, value) for name, value in known.items() if name in _NAMES}
    try:
        return StopEvent(**fields)
    except (TypeError, ValueError):
        return StopEvent(**{name: value for name, value in fields.items() if _fits(name, value)})


_NAMES = frozenset(StopEvent._fields)


def _fits(name: str, value: Any) -> bool:
    try:
        StopEvent(**{name: value})
    except (TypeError, ValueError):
        return False
    return True


def _field(name: str, value: Any) -> Any:
    if name == "usage" and isinstance(value, dict):
        numbers = {key: value.get(key) for key in Usage._fields}
        return Usage(**{key: number for key, number in numbers.items() if isinstance(number, int)})
    if name == "background_tasks" and isinstance(value, list):
        return tuple(_background_task(task) for task in value if isinstance(task, dict))
    return value


def _background_task(known: dict[str, Any]) -> BackgroundTask:
    return BackgroundTask(**{key: str(known.get(key, "")) for key in BackgroundTask._fields})


_AT_ONCE = 500  # rows in one statement


class Past(Record, kw_only=True):
    """One stop as the ledger has it; `outcome` is "asking" while it is not decided.

    One whose process is gone is "skipped" (lost), also if its row does not say so yet.
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
    odd: tuple[str, ...] = ()  # columns with invalid values


_ASKER = ("token", "pid", "pid_start")
_WHO = ("host", "session_id", "agent_id")
_COLUMNS = (*_WHO, "id", "place", "begun_at", "ended_at", "repeated", "event", *_ASKER)
_NAMES_READ = (*_COLUMNS, *STOP_COLUMNS, "followed")
_READ = f"""
SELECT {", ".join(f"a.{name}" for name in _WHO)},
  {", ".join(f"s.{name}" for name in (*_COLUMNS[len(_WHO) :], *STOP_COLUMNS))},
  EXISTS (SELECT 1 FROM stops n WHERE n.agent = s.agent AND n.id > s.id)
FROM stops s LEFT JOIN agents a ON a.id = s.agent WHERE s.id IN
"""
WHOLE_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop IN"
_SHORT_REPORTS = WHOLE_REPORTS.replace(" output,", " '',")


_ASKED_BY = f"SELECT id, outcome, {ASKER} FROM stops WHERE id IN "


def has_lost_asker(outcome: object, *asker: Any) -> bool:
    """Return True if a stop will never be decided: its process is gone."""
    try:
        return outcome == "asking" and is_lost(*asker)
    except (TypeError, ValueError):  # an odd row
        return False


def lost_among(db: sqlite3.Connection, ids: Sequence[int]) -> set[int]:
    """Return which of these stops will never be decided."""
    found: set[int] = set()
    for some in parts(ids):
        marks = f"({', '.join('?' * len(some))})"
        for number, *known in db.execute(_ASKED_BY + marks, some):
            if has_lost_asker(*known):
                found.add(number)
    return found


def read(db: sqlite3.Connection, ids: Sequence[int], reports: str = _SHORT_REPORTS) -> list[Past]:
    """Return stops by their numbers, as far as they exist; without outputs."""
    return in_utf8(db, lambda: _read(db, ids, reports))


def in_utf8(db: sqlite3.Connection, look: Callable[[], T]) -> T:
    """Read rows, also if a text in them is not UTF-8."""
    try:
        return look()
    except sqlite3.OperationalError as error:
        if "decode" not in str(error):
            raise
    usual = db.text_factory
    db.text_factory = _decoded
    try:
        return look()
    finally:
        db.text_factory = usual


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _read(db: sqlite3.Connection, ids: Sequence[int], reports: str) -> list[Past]:
    found: dict[int, Past] = {}
    for some in parts(ids):
        marks = f"({', '.join('?' * len(some))})"
        said: dict[int, list[tuple[Report, tuple[str, ...]]]] = {}
        for row in db.execute(f"{reports} {marks} ORDER BY stop, position", some):
            said.setdefault(row[0], []).append(readable_report(row))
        for row in db.execute(_READ + marks, some):
            number = row[len(_WHO)]
            found[number] = _past_of(row, said.get(number, []))
    return [found[number] for number in ids if number in found]


def parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield lists of numbers that fit into one statement."""
    for at in range(0, len(ids), _AT_ONCE):
        yield ids[at : at + _AT_ONCE]


def _past_of(row: tuple[Any, ...], said: list[tuple[Report, tuple[str, ...]]]) -> Past:
    columns = Columns(_NAMES_READ, row)
    raw = dict(zip(_NAMES_READ, row, strict=True))
    event = event_of(raw["event"])
    is_counted = raw["host"] is not None
    if is_counted:
        host, session_id, agent_id = map(columns.text, _WHO)
    else:  # skipped, of an agent that was never counted
        host, session_id, agent_id = event.host, event.session_id, event.agent_id or ""
    asker = [raw[name] for name in (*_ASKER, "begun_at")]
    lost = has_lost_asker(raw["outcome"], *asker)
    past = Past(
        id=raw["id"],
        host=host,
        session_id=session_id,
        agent_id=agent_id,
        scope=event.scope,
        place=columns.text("place"),
        turn=columns.whole("turn"),
        begun_at=columns.number("begun_at"),
        ended_at=columns.moment("ended_at"),
        outcome="skipped" if lost else columns.text("outcome"),
        verdict="allow" if lost else columns.text("verdict"),
        prompt=columns.text("prompt"),
        reason=columns.text("reason"),
        why="lost" if lost else columns.text("why"),
        count=columns.whole("count"),
        limit=columns.whole("max_blocks"),
        limit_source=columns.text("limit_source"),
        warnings=columns.texts("warnings"),
        repeated=columns.whole("repeated"),
        followed=bool(raw["followed"]) or not is_counted,  # unknown, if not counted
        task=event.task_id or "",
        reports=tuple(report for report, _ in said),
        event=event,
    )
    odd = (*columns.odd, *(f"{r.gate}.{name}" for r, names in said for name in names))
    return past if not odd else replace(past, odd=odd)


class Wish(Record, kw_only=True):
    """Which stops to find; an empty field matches all."""

    session: str = ""  # an id, or its beginning
    outcomes: tuple[str, ...] = ()
    host: str = ""
    place: str = ""  # a folder, with those below
    gate: str = ""  # that has a report
    since: float = 0.0
    until: float = 0.0
    before: int = 0  # stops older than this one
    after: int = 0  # stops newer than this one
    most: int = 20  # -1: all


class AgentPast(Record, kw_only=True):
    """An agent, and the outcome of its last stop."""

    host: str
    session_id: str
    agent_id: str
    history: History
    seen_at: float
    stop: int  # its newest, 0 for none
    outcome: str
    place: str


def stops(ledger: Ledger, wish: Wish) -> list[Past]:
    """Return the stops that match, the newest first, without outputs."""
    from notyet.ledger.find import find

    if not os.path.exists(ledger.path):
        return []
    return ledger.file.read(lambda db: read(db, find(db, wish)))


def numbers(ledger: Ledger, wish: Wish) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    from notyet.ledger.find import find

    if not os.path.exists(ledger.path):
        return []
    return ledger.file.read(lambda db: find(db, wish))


def stop(ledger: Ledger, number: int) -> Past | None:
    """Return one stop with its outputs."""
    if not os.path.exists(ledger.path) or abs(number) >= 1 << 63:
        return None
    found = ledger.file.read(lambda db: read(db, [number], WHOLE_REPORTS))
    return found[0] if found else None


def these(ledger: Ledger, numbers: Sequence[int]) -> list[Past]:
    """Return stops by their numbers, the newest first, as far as they exist."""
    if not numbers or not os.path.exists(ledger.path):
        return []
    wanted = sorted(numbers, reverse=True)
    return ledger.file.read(lambda db: read(db, wanted))


def around(ledger: Ledger, number: int, most: int = 10) -> list[Past]:
    """Return the other stops of the same turn of the same agent, the oldest first.

    At most so many from before, and so many from after.
    """

    def look(db: sqlite3_module.Connection) -> list[Past]:
        row = db.execute("SELECT agent, turn FROM stops WHERE id = ?", (number,)).fetchone()
        if row is None or not row[0]:
            return []
        found = [
            stop
            for statement in (_EARLIER, _LATER)
            for (stop,) in db.execute(statement, (row[0], number, row[1], most))
        ]
        return read(db, sorted(found))

    return ledger.file.read(look)


def agents(ledger: Ledger, since: float, place: str = "", most: int = 20) -> list[AgentPast]:
    """Return the agents seen since then, the last seen first; of a folder and below it."""
    if not os.path.exists(ledger.path):
        return []
    folders = below(place)

    def look(db: sqlite3_module.Connection) -> list[AgentPast]:
        found: list[AgentPast] = []
        for row in db.execute(_AGENTS, (since,)):
            agent = _agent_of(db, row)
            if not folders or any(
                agent.place == own or agent.place.startswith(under) for own, under, _ in folders
            ):
                found.append(agent)
                if len(found) == most:
                    break
        return found

    return ledger.file.read(lambda db: in_utf8(db, lambda: look(db)))


def has_unplaced(ledger: Ledger) -> bool:
    """Return True if there are stops without a folder."""
    if not os.path.exists(ledger.path):
        return False
    return bool(ledger.file.read(lambda db: db.execute(_UNPLACED).fetchone()))


def gate_stats(ledger: Ledger, wish: Wish) -> list[GateStats]:
    """Return the figures of each gate, the slowest first."""
    from notyet.ledger.stats import stats

    return list(stats(ledger, wish).gates)


def below(place: str) -> list[tuple[str, str, str]]:
    """Return the stored forms of a folder, by path and real path: itself, and the range below."""
    if not place:
        return []
    names = dict.fromkeys(map(place_text, (os.path.abspath(place), os.path.realpath(place))))
    return [(name, name.rstrip("/") + "/", name.rstrip("/") + "0") for name in names]


_EARLIER = (
    "SELECT id FROM stops INDEXED BY stops_by_agent WHERE agent = ? AND id < ? AND turn = ?"
    " ORDER BY id DESC LIMIT ?"
)
_LATER = _EARLIER.replace("id < ?", "id > ?").replace("id DESC", "id")
_AGENTS = (
    f"SELECT id, host, session_id, agent_id, seen_at, {', '.join(HISTORY_COLUMNS)} FROM agents"
    " INDEXED BY agents_by_time WHERE seen_at >= ? ORDER BY seen_at DESC"
)
_NEWEST = f"SELECT id, place, outcome, {ASKER} FROM stops WHERE agent = ? ORDER BY id DESC LIMIT 1"
_UNPLACED = "SELECT 1 FROM stops INDEXED BY stops_by_place WHERE place = '' LIMIT 1"
_AGENT = ("host", "session_id", "agent_id", "seen_at")


def _agent_of(db: sqlite3_module.Connection, row: tuple[Any, ...]) -> AgentPast:
    agent, *known = row[: len(_AGENT) + 1]
    columns = Columns(_AGENT, known)
    stop, place, *said = db.execute(_NEWEST, (agent,)).fetchone() or (0, "", "")
    try:
        history = history_of(row[len(_AGENT) + 1 :])
    except (TypeError, ValueError, AttributeError):  # an odd row
        history = History()
    return AgentPast(
        host=columns.text("host"),
        session_id=columns.text("session_id"),
        agent_id=columns.text("agent_id"),
        history=history,
        seen_at=columns.number("seen_at"),
        stop=stop,
        outcome="skipped" if has_lost_asker(*said) else str(said[0]),
        place=str(place),
    )
