"""Looking back: reading the stops and agents of a ledger. Reads only, and never creates a file.

Rows that are not as we write them hide no others: their readable columns are returned, and the
others named in `odd`.
"""

from __future__ import annotations

import os

from notyet.core.event import BackgroundTask, StopEvent, Usage
from notyet.core.limits import History
from notyet.core.record import Record, replace
from notyet.core.verdict import HIGHEST_EXTEND, OUTCOMES, Problem, Report
from notyet.ledger.connection import sqlite3_module as sqlite3
from notyet.ledger.stop_rows import (
    ALL,
    HISTORY_COLUMNS,
    REPORT_COLUMNS,
    STOP_COLUMNS,
    history_of,
    key_text,
    place_text,
    report_of,
)
from notyet.ledger.stops import ASKER, is_lost
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3 as sqlite3_module
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar

    from notyet.ledger.stats import GateStats
    from notyet.ledger.stops import Ledger

    T = TypeVar("T")

__all__ = [
    "News",
    "PastAgent",
    "PastStop",
    "StopFilter",
    "agents",
    "around",
    "below",
    "find",
    "first_look",
    "gate_stats",
    "has_unplaced",
    "next_look",
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


_ROWS_AT_ONCE = 500  # rows in one statement


class PastStop(Record, kw_only=True):
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


def read(
    db: sqlite3.Connection, ids: Sequence[int], reports: str = _SHORT_REPORTS
) -> list[PastStop]:
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


def _read(db: sqlite3.Connection, ids: Sequence[int], reports: str) -> list[PastStop]:
    found: dict[int, PastStop] = {}
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
    for at in range(0, len(ids), _ROWS_AT_ONCE):
        yield ids[at : at + _ROWS_AT_ONCE]


def _past_of(row: tuple[Any, ...], said: list[tuple[Report, tuple[str, ...]]]) -> PastStop:
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
    past = PastStop(
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


class StopFilter(Record, kw_only=True):
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


def stops(ledger: Ledger, wish: StopFilter) -> list[PastStop]:
    """Return the stops that match, the newest first, without outputs."""
    if not os.path.exists(ledger.path):
        return []
    return ledger.connection.read(lambda db: read(db, find(db, wish)))


def numbers(ledger: Ledger, wish: StopFilter) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    if not os.path.exists(ledger.path):
        return []
    return ledger.connection.read(lambda db: find(db, wish))


def stop(ledger: Ledger, number: int) -> PastStop | None:
    """Return one stop with its outputs."""
    if not os.path.exists(ledger.path) or abs(number) >= 1 << 63:
        return None
    found = ledger.connection.read(lambda db: read(db, [number], WHOLE_REPORTS))
    return found[0] if found else None


def these(ledger: Ledger, numbers: Sequence[int]) -> list[PastStop]:
    """Return stops by their numbers, the newest first, as far as they exist."""
    if not numbers or not os.path.exists(ledger.path):
        return []
    wanted = sorted(numbers, reverse=True)
    return ledger.connection.read(lambda db: read(db, wanted))


def around(ledger: Ledger, number: int, most: int = 10) -> list[PastStop]:
    """Return the other stops of the same turn of the same agent, the oldest first.

    At most so many from before, and so many from after.
    """

    def look(db: sqlite3_module.Connection) -> list[PastStop]:
        row = db.execute("SELECT agent, turn FROM stops WHERE id = ?", (number,)).fetchone()
        if row is None or not row[0]:
            return []
        found = [
            stop
            for statement in (_EARLIER, _LATER)
            for (stop,) in db.execute(statement, (row[0], number, row[1], most))
        ]
        return read(db, sorted(found))

    return ledger.connection.read(look)


def agents(ledger: Ledger, since: float, place: str = "", most: int = 20) -> list[PastAgent]:
    """Return the agents seen since then, the last seen first; of a folder and below it."""
    if not os.path.exists(ledger.path):
        return []
    folders = below(place)

    def look(db: sqlite3_module.Connection) -> list[PastAgent]:
        found: list[PastAgent] = []
        for row in db.execute(_AGENTS, (since,)):
            agent = _agent_of(db, row)
            if not folders or any(
                agent.place == own or agent.place.startswith(under) for own, under, _ in folders
            ):
                found.append(agent)
                if len(found) == most:
                    break
        return found

    return ledger.connection.read(lambda db: in_utf8(db, lambda: look(db)))


def has_unplaced(ledger: Ledger) -> bool:
    """Return True if there are stops without a folder."""
    if not os.path.exists(ledger.path):
        return False
    return bool(ledger.connection.read(lambda db: db.execute(_UNPLACED).fetchone()))


def gate_stats(ledger: Ledger, wish: StopFilter) -> list[GateStats]:
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


def _agent_of(db: sqlite3_module.Connection, row: tuple[Any, ...]) -> PastAgent:
    agent, *known = row[: len(_AGENT) + 1]
    columns = Columns(_AGENT, known)
    stop, place, *said = db.execute(_NEWEST, (agent,)).fetchone() or (0, "", "")
    try:
        history = history_of(row[len(_AGENT) + 1 :])
    except (TypeError, ValueError, AttributeError):  # an odd row
        history = History()
    return PastAgent(
        host=columns.text("host"),
        session_id=columns.text("session_id"),
        agent_id=columns.text("agent_id"),
        history=history,
        seen_at=columns.number("seen_at"),
        stop=stop,
        outcome="skipped" if has_lost_asker(*said) else str(said[0]),
        place=str(place),
    )


_HIGHEST = (1 << 63) - 1
_FEW = 1_000  # agents, or stops of a gate, to look up one by one
_FEW_PLACES = 500
_ALL_OUTCOMES = (*OUTCOMES, "asking")


class _Walk(Record, kw_only=True):
    """One walk along an index."""

    index: str
    where: tuple[str, ...]
    values: tuple[Any, ...]


def find(db: sqlite3.Connection, wish: StopFilter) -> list[int]:
    """Return the numbers of the stops that match, the newest first."""
    if ("asking" in wish.outcomes) == ("skipped" in wish.outcomes):
        return _find(db, wish)
    # A stop whose process is gone counts as skipped, though the row may never say so.
    asking = _find(db, replace(wish, outcomes=("asking",), most=-1))
    lost = lost_among(db, asking)
    others = tuple(outcome for outcome in wish.outcomes if outcome != "asking")
    found = _find(db, replace(wish, outcomes=others)) if others else []
    found += [number for number in asking if (number in lost) == ("skipped" in others)]
    found.sort(reverse=True)
    return found if wish.most < 0 else found[: wish.most]


def _find(db: sqlite3.Connection, wish: StopFilter) -> list[int]:
    first, beyond = _span(db, wish)
    if first >= beyond:
        return []
    found: set[int] = set()
    walks, checks, values = _walks(db, wish)
    for walk in walks:
        where = " AND ".join((*walk.where, "s.id >= ?", "s.id < ?", *checks))
        source = f"stops s {walk.index}"
        statement = f"SELECT s.id FROM {source} WHERE {where} ORDER BY s.id DESC LIMIT ?"
        if walk.index == _BY_GATE:
            statement = statement.replace(source, _BY_GATE).replace("BY s.id", "BY r.stop")
            statement = statement.replace("s.id >= ?", "r.stop >= ?")
            statement = statement.replace("s.id < ?", "r.stop < ?")
        bound = (*walk.values, first, beyond, *values, ALL if wish.most < 0 else wish.most)
        found.update(number for (number,) in db.execute(statement, bound))
    newest = sorted(found, reverse=True)
    return newest if wish.most < 0 else newest[: wish.most]


def _span(db: sqlite3.Connection, wish: StopFilter) -> tuple[int, int]:
    """Return the first number that can match, and the one after the last.

    The clock may have been set back: times need not be in the order of numbers.
    """
    first, beyond = wish.after + 1, wish.before or _HIGHEST
    if (wish.since or wish.until) and not wish.after:  # the stops after another are few
        span = wish.since or -_EVER, wish.until or _EVER
        lowest, highest = db.execute(_IN_SPAN, span).fetchone()
        if lowest is None:
            return 0, 0
        first, beyond = max(first, lowest), min(beyond, highest + 1)
    return first, beyond


_EVER = 1e300
_IN_SPAN = (
    "SELECT min(id), max(id) FROM stops INDEXED BY stops_by_time"
    " WHERE begun_at >= ? AND begun_at <= ?"
)
_BY_GATE = "reports r INDEXED BY reports_by_gate JOIN stops s ON s.id = r.stop"
_BY_AGENT = "INDEXED BY stops_by_agent"


def _walks(
    db: sqlite3.Connection, wish: StopFilter
) -> tuple[list[_Walk], tuple[str, ...], tuple[Any, ...]]:
    """Return the walks, and the conditions to check for each stop on them."""
    checks = _Checks(wish)
    if wish.session:
        walks = [_of_agent(agent) for agent in _agents_of_session(db, wish)]
        start = '"session_id": ' + dumps(key_text(wish.session))[:-1]
        unknown = _Walk(
            index=_BY_AGENT,
            where=("s.agent = 0", "replace(s.event, ?, '') != s.event"),
            values=(start,),
        )
        return [*walks, unknown], *checks.all("outcome", "place", "host", "gate")
    if wish.gate and len(db.execute(_SOME_OF_GATE, (wish.gate, _FEW)).fetchall()) < _FEW:
        walk = _Walk(index=_BY_GATE, where=("r.gate = ?",), values=(wish.gate,))
        return [walk], *checks.all("outcome", "place", "host")
    if wish.host:
        agents = db.execute(_AGENTS_OF_HOST, (key_text(wish.host), _FEW)).fetchall()
        if len(agents) < _FEW:
            walks = [_of_agent(agent) for (agent,) in (*agents, (0,))]
            return walks, *checks.all("outcome", "place", "host", "gate")
    places = _places(db, wish)
    if places is not None:
        walks = [
            _Walk(
                index="INDEXED BY stops_by_place",
                where=("s.place = ?", "s.outcome = ?"),
                values=(place, outcome),
            )
            for place in places
            for outcome in wish.outcomes or _ALL_OUTCOMES
        ]
        return walks, *checks.all("host", "gate")
    if wish.outcomes:
        index = "INDEXED BY stops_by_outcome"
        walks = [_Walk(index=index, where=("s.outcome = ?",), values=(o,)) for o in wish.outcomes]
        return walks, *checks.all("place", "host", "gate")
    return [_Walk(index="", where=(), values=())], *checks.all("place", "host", "gate")


_SOME_OF_GATE = "SELECT 1 FROM reports INDEXED BY reports_by_gate WHERE gate = ? LIMIT ?"
_AGENTS_OF_HOST = "SELECT id FROM agents WHERE host = ? LIMIT ?"
_AGENTS_OF_SESSION = (
    "SELECT id FROM agents INDEXED BY agents_by_session WHERE session_id >= ? AND session_id < ?"
)


def _of_agent(agent: int) -> _Walk:
    return _Walk(index=_BY_AGENT, where=("s.agent = ?",), values=(agent,))


def _agents_of_session(db: sqlite3.Connection, wish: StopFilter) -> list[int]:
    start = key_text(wish.session)
    return [agent for (agent,) in db.execute(_AGENTS_OF_SESSION, (start, start + "\U0010ffff"))]


def _places(db: sqlite3.Connection, wish: StopFilter) -> list[str] | None:
    """Return the folders of stops below a place; None if there are too many."""
    folders = below(wish.place)
    if not folders:
        return None
    found = [name for own, under, _ in folders for name in (own, under)]  # with a slash, too
    for _, under, beyond in folders:
        place = under
        while True:
            (following,) = db.execute(_NEXT_PLACE, (place, beyond)).fetchone()
            if following is None:
                break
            if len(found) == _FEW_PLACES:
                return None
            found.append(following)
            place = following
    return found


_NEXT_PLACE = "SELECT min(place) FROM stops WHERE place > ? AND place < ?"


class _Checks:
    """Conditions of a wish that a walk does not imply."""

    def __init__(self, wish: StopFilter) -> None:
        self._known: dict[str, tuple[str, tuple[Any, ...]]] = {}
        if wish.outcomes:
            marks = ", ".join("?" * len(wish.outcomes))
            self._known["outcome"] = f"s.outcome IN ({marks})", wish.outcomes
        if wish.place:
            folders = below(wish.place)
            words = " OR ".join("s.place = ? OR (s.place >= ? AND s.place < ?)" for _ in folders)
            self._known["place"] = f"({words})", tuple(name for row in folders for name in row)
        if wish.host:
            host = key_text(wish.host)
            self._known["host"] = _OF_HOST, (host, f'"host": {dumps(host)}')
        if wish.gate:
            self._known["gate"] = _WITH_GATE, (wish.gate,)
        self._time = tuple(
            (f"s.begun_at {sign} ?", (moment,))
            for sign, moment in ((">=", wish.since), ("<=", wish.until))
            if moment
        )

    def all(self, *names: str) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Return the conditions of these names and those of time, with their values."""
        wanted = (*(self._known[name] for name in names if name in self._known), *self._time)
        words = tuple(condition for condition, _ in wanted)
        return words, tuple(value for _, values in wanted for value in values)


_OF_HOST = (
    "(EXISTS (SELECT 1 FROM agents a WHERE a.id = s.agent AND a.host = ?)"
    " OR (s.agent = 0 AND replace(s.event, ?, '') != s.event))"
)
_WITH_GATE = "EXISTS (SELECT 1 FROM reports r WHERE r.stop = s.id AND r.gate = ?)"


_AT_ONCE = 1_000  # stops in one look


class News(Record, kw_only=True):
    """What happened since the last look, the oldest stop first.

    `fresh` has the stops up to the number `newest`, which is the last one if `is_all`. Each look is
    one transaction, so that no stop is returned twice or missed.
    """

    newest: int
    is_all: bool
    watched: tuple[PastStop, ...]
    fresh: tuple[PastStop, ...]


def first_look(ledger: Ledger, wish: StopFilter) -> News:
    """Return the stops that match, and all that are being decided: they may match later."""

    def look(db: sqlite3.Connection) -> News:
        asking = find(db, replace(wish, outcomes=("asking",), gate="", most=-1))
        fresh = read(db, find(db, wish)[::-1])
        watched = read(db, asking[::-1])
        return News(newest=_newest(db), is_all=True, watched=tuple(watched), fresh=tuple(fresh))

    return ledger.connection.read(look)


def next_look(ledger: Ledger, wish: StopFilter, watched: Sequence[int], after: int) -> News:
    """Return the watched stops as they are now, and the next ones after a number.

    Of any outcome and gate: a stop has these only when it is decided.
    """

    def look(db: sqlite3.Connection) -> News:
        last = _newest(db)
        newest = min(last, after + _AT_ONCE)
        wanted = replace(wish, after=after, before=newest + 1, outcomes=(), gate="", most=-1)
        fresh = find(db, wanted) if newest > after else []
        return News(
            newest=newest,
            is_all=newest == last,
            watched=tuple(read(db, sorted(watched))),
            fresh=tuple(read(db, fresh[::-1])),
        )

    return ledger.connection.read(look)


def _newest(db: sqlite3.Connection) -> int:
    (newest,) = db.execute("SELECT max(id) FROM stops").fetchone()
    return int(newest or 0)
