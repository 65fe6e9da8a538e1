"""Events, histories and decisions as rows, with texts of bounded length."""

from __future__ import annotations

from _imp import source_hash  # a hash that is loaded already: another costs 2 % of a stop

from notyet import light
from notyet.core.event import StopEvent
from notyet.core.gate import digest_of
from notyet.core.limits import History
from notyet.core.record import Record, plain
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report
from notyet.errors import attempt
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.verdict import Answer

    Key = tuple[str, str, str]  # of an agent: its host, its session and its own id

ALL = (1 << 63) - 1  # rows, where a statement has a LIMIT
_MOST_TEXT = 8_000  # of one text in an event
_LONGEST_KEY = 200  # of an id that agents are looked up by
_LONGEST_PLACE = 4_096  # of a folder
_MOST_WORDS = 32_000  # of a prompt, a reason or an output
_NEVER_STORED = frozenset({"raw"})  # the host's own payload

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
_REPORT_TEXTS = (
    "gate",
    "output",
    "matched",
    "warning",
    "exit",
    "log",
    "tell_user",
    "workspace",
)
_REPORT_FLAGS = ("observed", "hidden", "held")
_REPORT_OTHERS = (
    *("status", "said", "reason", "extend", "seconds", "definition", "asked_when", "tokens"),
)
REPORT_COLUMNS = ("stop", "position", *_REPORT_OTHERS, *_REPORT_TEXTS, *_REPORT_FLAGS)


def event_row(event: StopEvent) -> tuple[bytes, str]:
    """Return the digest of a whole event, and its bounded JSON.

    The digest only tells the last few stops of one agent apart (B12).
    """
    known = {
        name: _json(value)
        for name, value in event.__dict__.items()
        if name not in _NEVER_STORED and not _is_default(name, value)
    }
    digest = source_hash(0, repr(known).encode())
    fields = (f'"{name}": {_bounded_json(text)}' for name, text in known.items())
    return digest, "{" + ", ".join(fields) + "}"


def _is_default(name: str, value: object) -> bool:
    default = StopEvent._defaults[name]  # noqa: SLF001  # our own record
    return type(value) is type(default) and value == default


def _json(value: Any) -> str:
    """Return JSON for any value that an embedding program put into an event."""
    try:
        return dumps(plain(value))
    except ValueError:
        import json

    try:
        return json.dumps(plain(value), default=_described, skipkeys=True)
    except (TypeError, ValueError, RecursionError):
        return dumps(_described(value))


def _described(value: object) -> str:
    text, error = attempt(repr, value)
    return bounded(text, _MOST_TEXT) if error is None else f"<{type(value).__name__}>"


def _bounded_json(text: str) -> str:
    if len(text) <= _MOST_TEXT:
        return text
    value = loads(text)
    return dumps(bounded(value if isinstance(value, str) else text, _MOST_TEXT))


def key_text(text: str) -> str:
    """Return a text as a key: storable and bounded, and still unique."""
    stored = _words(text)
    if stored == text and len(text) <= _LONGEST_KEY:
        return text
    return f"{stored[: _LONGEST_KEY - 40]} {digest_of(text)}"  # short enough to be a key itself


def history_of(row: tuple[Any, ...]) -> History:
    """Read the columns `HISTORY_COLUMNS`."""
    values = dict(zip(HISTORY_COLUMNS, row, strict=True))
    values["blocked"] = bool(values["blocked"])
    values["turn_ids"] = tuple(loads(values["turn_ids"]))
    values["sent_back_by"] = tuple(map(tuple, loads(values["sent_back_by"])))
    return History(**values)


def history_row(history: History) -> tuple[Any, ...]:
    """Return the values for `HISTORY_COLUMNS`."""
    row = {name: getattr(history, name) for name in HISTORY_COLUMNS}
    row["turn_ids"] = dumps(history.turn_ids)
    row["repeat_key"] = key_text(history.repeat_key)
    row["sent_back_by"] = dumps(history.sent_back_by)
    return tuple(row.values())


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
        key_text(decision.repeat_key),
        dumps([_words(warning) for warning in decision.warnings]),
        decision.turn,
    )


def report_row(stop: int, position: int, report: Report) -> tuple[Any, ...]:
    """Return the values for `REPORT_COLUMNS`."""
    said, reason, extend = _answer_columns(report.answer)
    return (
        stop,
        position,
        report.status,
        _words(said),
        _words(reason),
        extend,
        report.seconds,
        key_text(report.definition),
        report.when,
        report.tokens,
        *(_words(getattr(report, name)) for name in _REPORT_TEXTS),
        *(int(getattr(report, name)) for name in _REPORT_FLAGS),
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


def stored_folder(folder: str) -> str:
    """Return the folder that is stored with stops: links resolved, relative ones as they are."""
    if light.isabs(folder):
        try:
            folder = light.realpath(folder)
        except (OSError, ValueError):  # a name that no file can have
            return place_text(folder)
    return place_text(folder)


def place_text(folder: str) -> str:
    """Return a folder as it is stored with stops."""
    return _words(folder)[:_LONGEST_PLACE]


def _words(text: str) -> str:
    if text.isascii() and len(text) <= _MOST_WORDS:
        return text
    # SQLite stores UTF-8, which has no lone surrogates.
    return bounded(text, _MOST_WORDS).encode("utf-8", "replace").decode("utf-8")


_SKIPPED = {"remembered": "passed", "unchanged": "unchanged"}  # status -> cause
STATUSES = frozenset({"allowed", "blocked", "halted", "problem", "not_asked", *_SKIPPED})


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
        warnings=tuple(loads(stop["warnings"])),
    )


def report_of(row: tuple[Any, ...]) -> Report:
    """Read the columns `REPORT_COLUMNS`."""
    columns = dict(zip(REPORT_COLUMNS, row, strict=True))
    said, reason, extend = columns["said"], columns["reason"], columns["extend"]
    status = columns["status"]
    answer: Answer | None = None
    if status == "allowed":
        answer = Allow(extend, said)
    elif status == "blocked":
        answer = Block(said, reason, extend)
    elif status == "halted":
        answer = Halt(said)
    elif status == "problem":
        answer = Problem(reason, said)
    elif status in _SKIPPED:
        answer = Allow()
    elif status not in STATUSES:  # a newer notyet wrote it
        answer = Problem("bad_answer", f"the ledger has the unknown status {status!r}")
    flags: dict[str, Any] = {name: bool(columns[name]) for name in _REPORT_FLAGS}
    return Report(
        answer=answer,
        seconds=columns["seconds"],
        spared=_SKIPPED.get(status, ""),
        definition=columns["definition"],
        when=columns["asked_when"],
        tokens=columns["tokens"],
        **{name: columns[name] for name in _REPORT_TEXTS},
        **flags,
    )
