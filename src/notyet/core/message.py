"""What an agent is told: when it is sent back (N2, K12), and when it starts.

Gates of a `notyet.toml` only fail; the words around their output are made here, in one place.
What hooks and functions say in their own words is passed on as it is.
"""

from __future__ import annotations

from notyet.core.command import Command
from notyet.core.record import Record
from notyet.core.text import bounded, first_line, joined, shortened
from notyet.core.verdict import Allow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import Scope
    from notyet.core.gate import Gate
    from notyet.core.verdict import Block, Report

_MOST_BYTES = 2_950  # of a message with nothing in it but our own gates
_MOST_SECTIONS = 6
_MOST_NAMES = 8
_MOST_BRIEFED = 30
_LONGEST_PATH = 300  # bytes; half a path would be of no use
_LEAST_TAIL = 80
_VERBATIM = frozenset({"openclaw", "mux"})  # nothing is added to what these say (K12)

_ADVICE = (
    "Fix the cause, then finish your work as usual; the checks run again by themselves. "
    "Do not weaken, skip or remove a check to get past it."
)
_WAY_OUT = (
    "If you cannot fix this, or it needs your user's decision, reply with a message that starts "
    "with BLOCKED: and say what you need."
)
_LAST = (
    "This is the last send-back: after your next stop you are let go, and your user is told "
    "what still fails."
)
_SAME = "It is the same failure as last time, and no file has changed since."
_REPORT_AGAIN = (
    "When you are done, send your complete report again: whoever gave you this task sees only "
    "your last message."
)


class Held(Record, kw_only=True):
    """Why an agent is held: what `compose` makes words of."""

    blocks: tuple[tuple[Gate, Block, Report], ...]
    reports: tuple[Report, ...]
    is_subagent: bool
    count: int  # this send-back's number
    limit: int
    is_same: bool  # as last time, on the same files


def compose(held: Held) -> str:
    """Return the prompt that continues a held agent."""
    ours = [block for block in held.blocks if _is_ours(block[0])]
    theirs = [block.prompt for gate, block, _ in held.blocks if not _is_ours(gate)]
    if not ours:
        asks_again = held.is_subagent and any(
            gate.check.speaks not in _VERBATIM for gate, _, _ in held.blocks
        )
        return joined([*theirs, _REPORT_AGAIN] if asks_again else theirs)
    before = [_opening(held, len(ours))]
    after = [
        *_others(held.reports),
        *([_SAME] if held.is_same else []),
        _ADVICE,
        _WAY_OUT,
        *([_LAST] if held.count >= held.limit else []),
        *([_REPORT_AGAIN] if held.is_subagent else []),
    ]
    fixed = sum(_size(part) + 2 for part in (*before, *after))
    sections = _sections(ours, _MOST_BYTES - fixed)
    return joined([*before, *sections, *theirs, *after])


def _is_ours(gate: Gate) -> bool:
    return gate.native and isinstance(gate.check, Command)


def _opening(held: Held, failed: int) -> str:
    asked = sum(report.answer is not None for report in held.reports)
    checks = f"{failed} of {asked} checks failed" if asked > 1 else "a check failed"
    said = f"notyet: {checks} (send-back {held.count} of {held.limit})."
    return f"{said} Your report was not delivered." if held.is_subagent else said


def _others(reports: Sequence[Report]) -> list[str]:
    passed = [report.gate for report in reports if isinstance(report.answer, Allow)]
    waiting = [report.gate for report in reports if report.answer is None]
    lines = []
    if passed:
        lines.append(f"Passed: {_names(passed)}.")
    if waiting:
        lines.append(f"Not run yet: {_names(waiting)}.")
    return lines


def _names(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(shortened(name, 40) for name in names[:_MOST_NAMES]) + more


def _sections(ours: list[tuple[Gate, Block, Report]], room: int) -> list[str]:
    """Return what failed: as many gates as there is room for, the others by name."""
    count = min(len(ours), _MOST_SECTIONS)
    while True:
        frames = [_frame(gate, report) for gate, _, report in ours[:count]]
        rest = [f"Also failed: {_names([gate.name for gate, _, _ in ours[count:]])}."]
        rest = rest if count < len(ours) else []
        taken = sum(_size("\n".join(lines)) + 4 for lines in (*frames, rest))
        each = (room - taken) // count
        if each >= _LEAST_TAIL or count == 1:
            break
        count -= 1
    sections = []
    for (_, block, _), (head, *foot) in zip(ours[:count], frames, strict=True):
        sections.append("\n".join([head, _tail(block.prompt, each), *foot]))
    return sections + rest


def _frame(gate: Gate, report: Report) -> list[str]:
    assert isinstance(gate.check, Command)
    command = shortened(first_line(gate.check.options.get("python") or gate.check.line), 160)
    how = f"{report.exit}, {report.seconds:.1f} s"
    lines = [f"FAILED {shortened(gate.name, 80)} ({how}): {command}"]
    if report.log and _size(report.log) <= _LONGEST_PATH:
        lines.append(f"Full output: {report.log}")
    hint = gate.check.options.get("hint")
    if hint:
        lines.append(f"Hint: {shortened(hint, 300)}")
    return lines


def _tail(text: str, most: int) -> str:
    """Return the end of an output, whole lines of it, indented; what matters comes last."""
    lines = [f"  {line}".rstrip() for line in text.strip().splitlines()]
    kept: list[str] = []
    room = most - 34  # for the line that says how much is left out
    for line in reversed(lines):
        if _size(line) + 1 > room:
            if not kept:
                kept.append(shortened(line, room))
            break
        kept.append(line)
        room -= _size(line) + 1
    left_out = len(lines) - len(kept)
    if left_out:
        kept.append(f"  ... {left_out} lines left out ...")
    return "\n".join(reversed(kept))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def briefing(gates: Sequence[Gate], scope: Scope) -> str:
    """Return what an agent is told when it starts; empty where no gate waits for it."""
    if not gates:
        return ""
    lines = [f"- {bounded(gate.name, 80)}{_what(gate)}" for gate in gates[:_MOST_BRIEFED]]
    if len(gates) > _MOST_BRIEFED:
        lines.append(f"- and {len(gates) - _MOST_BRIEFED} more")
    finish = "deliver your report" if scope == "subagent" else "finish"
    opening = f"Before you may {finish}, notyet runs these checks:"
    closing = (
        "They run by themselves when you stop. If one fails, you are sent back with its output."
    )
    return "\n".join([opening, *lines, closing])


def _what(gate: Gate) -> str:
    if not _is_ours(gate):
        return ""
    assert isinstance(gate.check, Command)
    return f": {first_line(gate.check.options.get('python') or gate.check.line)}"
