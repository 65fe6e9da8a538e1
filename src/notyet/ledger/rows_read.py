"""Decisions and reports, read back from their rows."""

from __future__ import annotations

from notyet.core.json_text import loads
from notyet.core.verdict import Allow, Block, Decision, Halt, Problem, Report
from notyet.ledger.rows import REPORT_COLUMNS, STOP_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.verdict import Answer

_SPARED = {"remembered": "passed", "unchanged": "unchanged"}  # statuses, and why that is


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
    answers: dict[str, Any] = {
        "allowed": lambda: Allow(extend, said),
        "blocked": lambda: Block(said, reason, extend),
        "halted": lambda: Halt(said),
        "problem": lambda: Problem(reason, said),
        "not_asked": lambda: None,
        "remembered": Allow,
        "unchanged": Allow,
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
        exit=columns["exit"],
        log=columns["log"],
        tell_user=columns["tell_user"],
        hidden=bool(columns["hidden"]),
        held=bool(columns["held"]),
        workspace=columns["workspace"],
        spared=_SPARED.get(columns["status"], ""),
        definition=columns["definition"],
        when=columns["asked_when"],
    )
