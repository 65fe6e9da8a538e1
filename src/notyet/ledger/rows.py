"""Events, histories and decisions as rows, and back. Bounded: a ledger is not a transcript."""

from __future__ import annotations

import json
from hashlib import blake2b

from notyet.core.event import StopEvent
from notyet.core.limits import History
from notyet.core.record import Record, as_dict
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.verdict import Answer

_MOST_TEXT = 8_000  # of one text in an event
_MOST_ITEMS = 100  # of one list in an event
_MOST_WORDS = 32_000  # of a prompt, a reason or an output
_NEVER_STORED = frozenset({"raw"})  # foreign, and may hold anything

HISTORY_COLUMNS = tuple(History._fields)  # the table has a column per field
STOP_COLUMNS = (
    "outcome",
    "verdict",
    "prompt",
    "reason",
    "why",
    "count",
    "max_blocks",
    "limit_source",
    "extend",
    "repeat_key",
    "warnings",
    "turn",
)
REPORT_COLUMNS = (
    "stop",
    "position",
    "gate",
    "status",
    "said",
    "reason",
    "extend",
    "seconds",
    "output",
    "matched",
    "observed",
    "warning",
)


def event_row(event: StopEvent) -> tuple[bytes, str]:
    """Return an event's digest, taken of all of it, and its bounded JSON."""
    fields = {
        name: value
        for name, value in as_dict(event).items()
        if name not in _NEVER_STORED and value != StopEvent._defaults.get(name)  # noqa: SLF001
    }
    whole = json.dumps(fields, default=repr, sort_keys=True)
    digest = blake2b(whole.encode(), digest_size=16).digest()
    if len(whole) <= _MOST_TEXT:
        return digest, whole
    return digest, json.dumps({k: _bounded(v) for k, v in fields.items()}, default=repr)


def _bounded(value: Any) -> Any:
    if isinstance(value, str):
        return bounded(value, _MOST_TEXT)
    if isinstance(value, list) and len(value) > _MOST_ITEMS:
        value = value[:_MOST_ITEMS]
    if isinstance(value, list | dict):
        whole = json.dumps(value, default=repr)
        return value if len(whole) <= _MOST_TEXT else bounded(whole, _MOST_TEXT)
    return value


def history_of(row: tuple[Any, ...]) -> History:
    """Read the columns `HISTORY_COLUMNS`."""
    values = dict(zip(HISTORY_COLUMNS, row, strict=True))
    values["blocked"] = bool(values["blocked"])
    return History(**values)


def history_row(history: History) -> tuple[Any, ...]:
    """Return the values for `HISTORY_COLUMNS`."""
    return tuple(getattr(history, name) for name in HISTORY_COLUMNS)


def stop_row(decision: Decision) -> tuple[Any, ...]:
    """Return the values for `STOP_COLUMNS`."""
    verdict = decision.verdict
    return (
        decision.outcome,
        type(verdict).__name__.lower(),
        _words(verdict.prompt) if isinstance(verdict, Block) else "",
        "" if isinstance(verdict, Allow) else _words(verdict.reason),
        _words(decision.why),
        decision.count,
        decision.limit,
        decision.limit_source,
        decision.extend,
        decision.repeat_key,
        json.dumps([_words(warning) for warning in decision.warnings]),
        decision.turn,
    )


def decision_of(row: tuple[Any, ...], reports: list[tuple[Any, ...]]) -> Decision:
    """Read the columns `STOP_COLUMNS` and the reports that belong to them."""
    stop = dict(zip(STOP_COLUMNS, row, strict=True))
    verdict: Allow | Block | Halt = Allow()
    if stop["verdict"] == "block":
        verdict = Block(stop["prompt"], stop["reason"], stop["extend"])
    elif stop["verdict"] == "halt":
        verdict = Halt(stop["reason"])
    return Decision(
        verdict=verdict,
        outcome=stop["outcome"],
        reports=tuple(report_of(report) for report in reports),
        turn=stop["turn"],
        count=stop["count"],
        limit=stop["max_blocks"],
        limit_source=stop["limit_source"],
        extend=stop["extend"],
        why=stop["why"],
        repeat_key=stop["repeat_key"],
        warnings=tuple(json.loads(stop["warnings"])),
    )


def report_row(stop: int, position: int, report: Report) -> tuple[Any, ...]:
    """Return the values for `REPORT_COLUMNS`."""
    said, reason, extend = _answer_columns(report.answer)
    return (
        stop,
        position,
        report.gate,
        report.status,
        _words(said),
        _words(reason),
        extend,
        report.seconds,
        _words(report.output),
        report.matched,
        int(report.observed),
        report.warning,
    )


def _answer_columns(answer: Record | None) -> tuple[str, str, int]:
    if isinstance(answer, Allow):
        return answer.note, "", answer.extend
    if isinstance(answer, Block):
        return answer.prompt, answer.reason, answer.extend
    if isinstance(answer, Halt):
        return answer.reason, "", 0
    if isinstance(answer, Problem):
        return answer.detail, answer.kind, 0
    return "", "", 0


def report_of(row: tuple[Any, ...]) -> Report:
    """Read the columns `REPORT_COLUMNS`."""
    columns = dict(zip(REPORT_COLUMNS, row, strict=True))
    said, reason, extend = columns["said"], columns["reason"], columns["extend"]
    answers: dict[str, Any] = {
        "allowed": lambda: Allow(extend, said),
        "blocked": lambda: Block(said, reason, extend),
        "halted": lambda: Halt(said),
        "problem": lambda: Problem(reason, said),
        "not_asked": lambda: None,
    }
    answer: Answer | None = answers[columns["status"]]()
    return Report(
        gate=columns["gate"],
        answer=answer,
        seconds=columns["seconds"],
        output=columns["output"],
        matched=columns["matched"],
        observed=bool(columns["observed"]),
        warning=columns["warning"],
    )


def _words(text: str) -> str:
    # SQLite stores UTF-8, which has no lone surrogates.
    return bounded(text, _MOST_WORDS).encode("utf-8", "replace").decode("utf-8")
