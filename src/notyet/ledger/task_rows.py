"""Tasks, runs, turns and results as rows, and back."""

from __future__ import annotations

from typing import Any, TypeVar

from notyet.core.event import Usage
from notyet.core.record import Record, as_dict
from notyet.core.session import Turn
from notyet.core.task import (
    MOST_TEXT,
    Announcement,
    Figures,
    Result,
    Run,
    Steer,
    Task,
    TaskView,
)
from notyet.core.text import bounded
from notyet.light import dumps, loads

R = TypeVar("R", bound=Record)

RUN_COLUMNS = (
    "id",
    "task",
    "generation",
    "state",
    "source",
    "key",
    "prompt",
    "sent",
    "started_at",
    "ending",
    "turn",
)
STEER_COLUMNS = ("key", "run", "source", "prompt", "phase")
VIEW_COLUMNS = (
    "tasks.about",
    "tasks.run",
    "tasks.generation",
    "runs.state",
    "runs.source",
    "tasks.steers",
    "tasks.session_id",
    "tasks.created_at",
    "tasks.ended_at",
    "runs.ending",
    "outbox.result",
    "runs.turn",
    "owners.pid",
    "owners.program",
    "outbox.status",
    "outbox.error",
    "outbox.attempts",
    "outbox.told",
    "tasks.ref",
    "tasks.queue",
    "tasks.model",
    "tasks.ordered",
    "owners.worker",
)

# How far the observers of a task's end were notified. It is marked before, so that none is
# notified twice; after a crash in between, it is unknown.
NOT_YET, TOLD, TELLING, UNKNOWN = range(4)
# As the index `outbox_undelivered` says it.
MAYBE_UNDELIVERED = (
    "(outbox.status IN ('pending', 'leased', 'suspended')"
    f" OR (outbox.told = {UNKNOWN} AND outbox.status <> 'dismissed'))"
)


def storable(text: str) -> str:
    """Return a text without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def json_of(record: Record) -> str:
    """Return a record as JSON."""
    return storable(dumps(as_dict(record)))


def json_of_turn(turn: Turn) -> str:
    """Return a turn as JSON of bounded length."""
    known = as_dict(turn)
    known["text"] = bounded(turn.text, MOST_TEXT)
    known["error"] = bounded(turn.error, MOST_TEXT) if turn.error else None
    known["tools"] = list(turn.tools[:1000])
    return storable(dumps(known))


def task_of(text: str) -> Task:
    """Read what `json_of` wrote."""
    return _made(Task, loads(text))


def turn_of(text: str | None) -> Turn | None:
    """Read what `json_of_turn` wrote."""
    return None if text is None else _figures(Turn, loads(text))


def result_of(text: str) -> Result:
    """Read what `json_of` wrote."""
    known = loads(text)
    for name in ("unsent", "warnings"):
        known[name] = tuple(known.get(name, ()))
    known["last_run"] = _figures(Figures, known["last_run"]) if "last_run" in known else Figures()
    return _figures(Result, known)


def _figures(kind: type[R], known: dict[str, Any]) -> R:
    known["usage"] = Usage(**known["usage"])
    known["tools"] = tuple(known["tools"])
    return _made(kind, known)


def _made(kind: type[R], known: dict[str, Any]) -> R:
    """Make a record of its known fields; a later version may have written more."""
    return kind(**{name: value for name, value in known.items() if name in kind._fields})


def run_of(row: tuple[Any, ...]) -> Run:
    """Read `RUN_COLUMNS`."""
    known = dict(zip(RUN_COLUMNS, row, strict=True))
    known["turn"] = turn_of(known["turn"])
    return Run(**known)


def steer_of(row: tuple[Any, ...]) -> Steer:
    """Read `STEER_COLUMNS`."""
    return Steer(**dict(zip(STEER_COLUMNS, row, strict=True)))


def announcement_of(key: str, result: str, attempts: int) -> Announcement:
    """Read a row of the outbox."""
    return Announcement(key=key, result=result_of(result), attempt=attempts)


def view_of(row: tuple[Any, ...], *, alive: bool) -> TaskView:
    """Read `VIEW_COLUMNS`."""
    known = dict(zip((name.partition(".")[2] for name in VIEW_COLUMNS), row, strict=True))
    result = result_of(known["result"]) if known["result"] else None
    turn = turn_of(known["turn"])
    return TaskView(
        task=task_of(known["about"]),
        run_id=known["run"],
        generation=known["generation"],
        state=known["state"],
        source=known["source"],
        steers=known["steers"],
        session_id=known["session_id"],
        created_at=known["created_at"],
        ended_at=known["ended_at"],
        ending=result.ending if result else known["ending"],
        outcome=result.outcome if result else None,
        stop_reason=result.stop_reason if result else None,
        text=result.text if result else (turn.text if turn else ""),
        owner_pid=known["pid"] or 0,
        program=known["program"] or "",
        owner_alive=alive,
        delivery=known["status"] or "",
        delivery_error=known["error"] or "",
        attempts=known["attempts"] or 0,
        maybe_unnotified=known["told"] == UNKNOWN,
        agent=_text_in(known["ref"], "agent") or _text_in(known["ordered"], "agent"),
        queue=known["queue"],
        model=known["model"],
        worker=_text_in(known["worker"] or "{}", "name"),
    )


def _text_in(written: str, name: str) -> str:
    """Return a text in JSON, which embedders may write as they like."""
    known = loads(written)
    text = known.get(name) if isinstance(known, dict) else None
    return text if isinstance(text, str) else ""
