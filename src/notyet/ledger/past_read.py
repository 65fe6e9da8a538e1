"""Stops as the ledger has them, read from their rows and those of their reports."""

from __future__ import annotations

from notyet.core.record import Record, replace
from notyet.ledger import sql
from notyet.ledger.driver import sqlite3
from notyet.ledger.lost import is_lost
from notyet.ledger.past_event import event_of
from notyet.ledger.past_odd import Columns, readable_report
from notyet.ledger.rows import REPORT_COLUMNS, STOP_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, TypeVar

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Report

    T = TypeVar("T")

_AT_ONCE = 500  # rows in one statement


class Past(Record, kw_only=True):
    """One stop as the ledger has it; `outcome` is "asking" while it is not decided.

    One whose asker is gone is "skipped", because it is lost, though nobody has written that yet.
    """

    id: int
    host: str
    session_id: str
    agent_id: str  # "" for the main agent
    scope: str
    place: str  # the folder of the agent; "" if it is not known, as before version 6
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
    odd: tuple[str, ...] = ()  # columns that could not be read, and are shown as far as they can be


_ASKER = ("token", "pid", "pid_start")
_WHO = ("host", "session_id", "agent_id")
_COLUMNS = (*_WHO, "id", "place", "begun_at", "ended_at", "repeated", "event", *_ASKER)
_NAMES = (*_COLUMNS, *STOP_COLUMNS, "followed")
_READ = f"""
SELECT {", ".join(f"a.{name}" for name in _WHO)},
  {", ".join(f"s.{name}" for name in (*_COLUMNS[len(_WHO) :], *STOP_COLUMNS))},
  EXISTS (SELECT 1 FROM stops n WHERE n.agent = s.agent AND n.id > s.id)
FROM stops s LEFT JOIN agents a ON a.id = s.agent WHERE s.id IN
"""
WHOLE_REPORTS = f"SELECT {', '.join(REPORT_COLUMNS)} FROM reports WHERE stop IN"
_SHORT_REPORTS = WHOLE_REPORTS.replace(" output,", " '',")


_ASKED_BY = f"SELECT id, outcome, {sql.ASKER} FROM stops WHERE id IN "


def has_lost_asker(outcome: object, *asker: Any) -> bool:
    """Tell whether a stop will never be decided: the process that was asking is gone."""
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
    """Return some stops by their numbers, as far as they are there; without outputs."""
    return in_utf8(db, lambda: _read(db, ids, reports))


def in_utf8(db: sqlite3.Connection, look: Callable[[], T]) -> T:
    """Look at rows, though some text in them be no UTF-8."""
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
    """Give many numbers in lists that one statement can take."""
    for at in range(0, len(ids), _AT_ONCE):
        yield ids[at : at + _AT_ONCE]


def _past_of(row: tuple[Any, ...], said: list[tuple[Report, tuple[str, ...]]]) -> Past:
    columns = Columns(_NAMES, row)
    raw = dict(zip(_NAMES, row, strict=True))
    event = event_of(raw["event"])
    is_counted = raw["host"] is not None
    if is_counted:
        host, session_id, agent_id = map(columns.text, _WHO)
    else:  # let go before its agent was ever counted
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
        followed=bool(raw["followed"]) or not is_counted,  # else nobody knows
        task=event.task_id or "",
        reports=tuple(report for report, _ in said),
        event=event,
    )
    odd = (*columns.odd, *(f"{r.gate}.{name}" for r, names in said for name in names))
    return past if not odd else replace(past, odd=odd)
