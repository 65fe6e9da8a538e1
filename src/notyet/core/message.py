"""What agents and users read about a stop.

`compose` writes what an agent reads that is sent back (N2, K12), `briefing` what it reads when it
starts, `announced` what it reads when its subagent ended. `note` is the line for the user (N3).
Gates of a `notyet.toml` only fail; the words around their output are made here. What hooks and
functions say in their own words is passed on as it is.
"""

from __future__ import annotations

from notyet.core.event import stop_of
from notyet.core.gate import MUX, NATIVE, VERBATIM, Command
from notyet.core.plan import select
from notyet.core.record import Record
from notyet.core.remote import remote_from
from notyet.core.text import (
    LEFT_OUT,
    LEFT_OUT_THERE,
    bounded,
    clean,
    first_line,
    joined,
    lines_of,
    listed,
    shortened,
)
from notyet.core.verdict import GONE, UNCHECKED, UNPASSED, Allow, Block, Problem, in_log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.event import Scope, StartEvent
    from notyet.core.gate import Gate
    from notyet.core.task import Result
    from notyet.core.verdict import Decision, Report

_MOST_BYTES = 2_950  # of a message with nothing in it but our own gates
_MOST_SECTIONS = 6
_MOST_NAMES = 5
_MOST_BRIEFED = 30
_LONGEST_PATH = 300  # bytes; half a path would be of no use
_LEAST_TAIL = 80
_LONGEST_TASK = 1_000  # bytes
_LONGEST_FIXED = 300
_MOST_FIXED = 2
CONTINUATION = "[Stop hook requested continuation]"  # before what Mux tells a main agent (K17)

_ADVICE = (
    "Fix the cause, then finish your work as usual; the checks run again by themselves. "
    "Do not weaken, skip or remove a check to get past it."
)
_ADVICE_ONCE = (
    "Fix the cause, and run the failing check yourself until it passes: nothing checks your next "
    "stop. Do not weaken, skip or remove a check to get past it."
)
_WAY_OUT = (
    "If you cannot fix this, or it needs your user's decision, reply with a message that starts "
    "with BLOCKED: and say what you need."
)
# Headless hosts show the user nothing of ours, and a parent reads nothing but the report.
_LAST = (
    "This is the last send-back: after your next stop you may finish. If a check still fails "
    "then, name it in your final message: your user may read nothing else."
)
_ONLY = (
    "This is the only send-back of this turn. If a check still fails in the end, name it in your "
    "final message: your user may read nothing else."
)
_LAST_OF_SUBAGENT = (
    "This is the last send-back: after your next stop your report is delivered. If a check still "
    "fails then, name it in your report: the agent that started you reads nothing else."
)
_READ = "Read that again before you edit it."
_SAME = "It is the same failure as last time, and no file has changed since."
_STUCK_NEXT = (
    "If it fails in the same way once more, with no file changed, you are not sent back again: "
    "name it in your final message then."
)
_REPORT_AGAIN = (
    "When you are done, send your complete report again: the agent that started you sees only "
    "your last message."
)
_NOT_KEPT = (
    "Your previous answer was not kept, so you no longer see it. When you are done, give your "
    "complete answer again."
)


class SendBack(Record, kw_only=True):
    """Why an agent is sent back: what `compose` makes words of."""

    blocks: tuple[tuple[Gate, Block, Report], ...]
    reports: tuple[Report, ...]
    is_subagent: bool
    count: int  # this send-back's number
    limit: int
    limit_source: str = "max_blocks"
    is_same: bool  # as last time, on the same files
    is_stuck_next: bool = False  # if the next stop fails in the same way on the same files
    host: str = ""
    is_asked_once: bool = False  # its host tells us of no other stop in this turn
    forgets_answers: bool = False
    task: str = ""  # what the agent was asked for; said to one whose answer is not kept
    fixed: tuple[str, ...] = ()  # what gates that passed changed before they checked


def compose(back: SendBack) -> tuple[str, list[str]]:
    """Return the prompt that continues an agent, and our gates whose output it shortens."""
    ours = [block for block in back.blocks if _is_ours(block[0])]
    theirs = _theirs(back)
    if not ours:
        asks_again = back.is_subagent and any(
            gate.check.speaks not in VERBATIM for gate, _, _ in back.blocks
        )
        return joined([*_reminder(back), *theirs, *([_REPORT_AGAIN] if asks_again else [])]), []
    before, after = _around(back)
    room = _MOST_BYTES - sum(_size(part) + 2 for part in (before, *after))
    shown, rest = _sections(ours, room)
    sections = ["\n".join([head, tail, *foot]) for head, tail, foot in shown]
    whole = {
        gate.name
        for (gate, block, _), (_, tail, _) in zip(ours, shown, strict=False)
        if tail == "\n".join(_lines(block.prompt))
    }
    cut = [gate.name for gate, _, _ in ours if gate.name not in whole]
    return joined([*_reminder(back), before, *sections, *rest, *theirs, *after]), cut


def _reminder(back: SendBack) -> list[str]:
    """Return what an agent must read first if its host does not keep the answer we block."""
    if not back.forgets_answers:
        return []
    task = shortened(clean(back.task).strip(), _LONGEST_TASK)
    return [*([f"Your task: {task}"] if task else []), _NOT_KEPT]


def _theirs(back: SendBack) -> list[str]:
    """Return what hooks and functions say; to a main agent of ours, Mux's as Mux marks it.

    The mark stands once, before the first of Mux's reasons: those before it are not Mux's.
    """
    texts = []
    is_marked = back.is_subagent or back.host != NATIVE  # Mux itself adds the line
    for gate, block, _ in back.blocks:
        if gate.check.speaks == MUX and not is_marked:
            is_marked = True
            texts.append(f"{CONTINUATION}\n{block.prompt}")
        elif not _is_ours(gate):
            texts.append(block.prompt)
    return texts


def _is_ours(gate: Gate) -> bool:
    return gate.native and isinstance(gate.check, Command)


def _around(back: SendBack) -> tuple[str, list[str]]:
    """Return what is said before and after the words of the gates."""
    is_last = back.count >= back.limit
    return _opening(back), [
        *_others(back),
        *([_SAME] if back.is_same else []),
        *([_STUCK_NEXT] if back.is_stuck_next and not is_last else []),
        _ADVICE_ONCE if back.is_asked_once else _ADVICE,
        _WAY_OUT,
        *([_last(back)] if is_last else []),
        *([_REPORT_AGAIN] if back.is_subagent else []),
    ]


def _last(back: SendBack) -> str:
    if back.is_asked_once:
        return _ONLY
    return _LAST_OF_SUBAGENT if back.is_subagent else _LAST


def _opening(back: SendBack) -> str:
    counted = [r for r in back.reports if not r.observed]
    asked = sum(r.answer is not None and r.spared != "unchanged" for r in counted)
    checks = f"{len(back.blocks)} of {asked} checks failed" if asked > 1 else "a check failed"
    source = f", {back.limit_source}" if back.limit_source != "max_blocks" else ""
    text = f"notyet: {checks} (send-back {back.count} of {back.limit}{source})."
    return f"{text} Your report was not delivered." if back.is_subagent else text


def _others(back: SendBack) -> list[str]:
    """Return what the gates came to that do not block, without those that only observe."""
    blocking = {gate.name for gate, _, _ in back.blocks}
    others = [
        report
        for report in back.reports
        # One that was skipped as unchanged has not passed.
        if not report.observed and report.gate not in blocking and report.spared != "unchanged"
    ]
    groups = {
        "Passed": [r for r in others if isinstance(r.answer, Allow)],
        "Could not run": [r for r in others if isinstance(r.answer, Problem)],
        "Not run yet": [r for r in others if r.answer is None],
    }
    lines = [
        f"{what}: {_names([r.gate for r in which])}." for what, which in groups.items() if which
    ]
    fixed = [f"{shortened(words, _LONGEST_FIXED)}. {_READ}" for words in back.fixed[:_MOST_FIXED]]
    return lines + fixed


def _names(names: list[str]) -> str:
    return listed([shortened(name, 40) for name in names], _MOST_NAMES)


def _sections(
    ours: list[tuple[Gate, Block, Report]], room: int
) -> tuple[list[tuple[str, str, list[str]]], list[str]]:
    """Return what failed: as many gates as there is room for, the others by name.

    Each of the former is its first line, as much of its output as fits, and its last lines.
    """
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
    sections = [
        (head, _tail(block.prompt, each), foot)
        for (_, block, _), (head, *foot) in zip(ours[:count], frames, strict=True)
    ]
    return sections, rest


def _frame(gate: Gate, report: Report) -> list[str]:
    assert isinstance(gate.check, Command)
    how = f"{report.seconds:.1f} s"
    passing = [f"exit {code}" for code in gate.check.options.get("pass_codes", (0,))]
    # One that ended as if it passed has answered in words: its exit is not the reason.
    if report.exit and report.exit not in passing:
        how = f"{report.exit}, {how}"
    if report.workspace:
        how = f"{how}, on {shortened(remote_from(report.workspace).destination, 80)}"
    lines = [f"FAILED {shortened(gate.name, 80)} ({how}): {gate.check.first_line}"]
    if report.log and _size(report.log) <= _LONGEST_PATH:
        is_cut = LEFT_OUT in report.output or LEFT_OUT_THERE in report.output
        label = "Its beginning and end" if is_cut else "Full output"
        lines.append(f"{label}: {report.log}")
    hint = gate.check.options.get("hint")
    if hint:
        lines.append(f"Hint: {shortened(hint, 300)}")
    return lines


def _tail(text: str, most: int) -> str:
    """Return the end of an output, whole lines of it, indented; what matters comes last."""
    lines = _lines(text)
    if sum(_size(line) + 1 for line in lines) <= most:
        return "\n".join(lines)
    kept: list[str] = []
    room = most - 46  # for the line that says how much is left out
    while _size(lines[-1]) < room:  # they do not all fit
        kept.append(lines.pop())
        room -= _size(kept[-1]) + 1
    if not kept:
        kept.append(shortened(lines.pop(), room))
    missing = lines_of(lines)
    if missing:
        more = "more than " if f"  {LEFT_OUT_THERE}" in lines else ""
        kept.append(f"  ... {more}{missing} lines left out ...")
    elif lines:  # all of them are the beginning of one long line
        kept.append("  ... the beginning of this line left out ...")
    return "\n".join(reversed(kept))


def _lines(text: str) -> list[str]:
    return [f"  {line}".rstrip() for line in text.strip().splitlines()]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


# When an agent starts.


def briefing_for(event: StartEvent, gates: Sequence[Gate]) -> str:
    """Return what this agent reads when it starts: the gates that it will meet."""
    return briefing(
        [gate for gate in select(stop_of(event), gates) if not gate.observe], event.scope
    )


def briefing(gates: Sequence[Gate], scope: Scope) -> str:
    """Return what an agent reads when it starts; empty without gates."""
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
    return f": {gate.check.first_line}"


# When a subagent ended.

_MOST_REPORT = 100_000
_WORDS = {
    "done": "has finished",
    "error": "failed",
    "timeout": "ran out of time",
    "killed": "was killed",
    "reset": "was reset",
    "interrupted": "was interrupted",
}
_NOT_PASSED = {"capped", "stuck", "handed_back", "failed_open", "halted"}


def announced(result: Result) -> str:
    """Return the message that brings a result to the agent that started the task."""
    who = clean(result.label or result.agent_type or result.task_id)
    lines = [f"Subagent {who} {_WORDS[result.ending]}."]
    if result.outcome in _NOT_PASSED:
        why = f": {result.stop_reason}" if result.stop_reason else ""
        lines.append(clean(f"Its work did not pass the checks ({result.outcome}{why})."))
    if result.error:
        lines.append(clean(f"Error: {result.error}"))
    if result.text.strip():
        lines += ["Its report:", bounded(clean(result.text), _MOST_REPORT)]
    elif result.rejected.strip():
        lines += [
            "It gave no final report. An earlier one, which the checks may have rejected, was:",
            bounded(clean(result.rejected), _MOST_REPORT),
        ]
    else:
        lines.append("It gave no report.")
    return "\n".join(lines)


# The line for the user (N3).

# Causes of a skipped stop that the user should know of; the others are quiet.
_UNMEANT = frozenset({"config", "ledger", "no-session", "duplicate", "untrusted"})


def note(decision: Decision) -> str:
    """Return one line about a decision for the user; empty when there is nothing to say."""
    return " | ".join(part for part in notes(decision) if part)


def notes(decision: Decision) -> list[str]:
    """Return what the user is told of a decision, first what it came to, which may be empty."""
    parts = [_note(decision)]
    if parts[0].startswith((f"notyet: {UNPASSED}", f"notyet: {UNCHECKED}")):
        parts[0] += in_log(decision.stop)
    if decision.overridden:
        parts.append(f"notyet: {UNPASSED}: the agent {GONE}{in_log(decision.overridden)}")
    if decision.unchanged:
        names = listed(decision.unchanged)
        parts.append(f"notyet: not checked: no file changed since this session began ({names})")
    parts += [f"notyet: {line}" for line in decision.subagents]
    parts += dict.fromkeys(report.tell_user for report in decision.reports)
    return [" ".join(part.split()) for part in parts]


def _note(decision: Decision) -> str:
    outcome = decision.outcome
    if outcome == "blocked":
        sent_back = f"notyet: sent back {decision.count}/{decision.limit}"
        return f"{sent_back}: {_why_blocked(decision)}{_also_broken(decision)}"
    if outcome == "passed" and decision.count:
        times = "1 send-back" if decision.count == 1 else f"{decision.count} send-backs"
        return f"notyet: passed after {times}"
    if outcome in {"capped", "stuck"}:
        return f"notyet: {UNPASSED}: {decision.why}{_also_broken(decision)}"
    if outcome == "handed_back":
        return f"notyet: {UNPASSED}: the agent says it needs you{_also_broken(decision)}"
    if outcome == "halted":
        broken = _also_broken(decision)
        return f"notyet: ended by a gate{broken}" if broken else ""
    if outcome == "failed_open" and _blocking(decision):
        return f"notyet: {UNCHECKED}: {decision.why}{_also_broken(decision)}"
    if outcome == "failed_open":
        broken = listed([f"{report.gate}: {_words(report)}" for report in _broken(decision)])
        return f"notyet: {UNCHECKED}: {broken or decision.why}"
    if outcome == "skipped" and decision.why in _UNMEANT:
        return f"notyet: {UNCHECKED}: {listed(decision.warnings) or decision.why}"
    return ""


def _why_blocked(decision: Decision) -> str:
    blocking = [f"{report.gate} ({_words(report)})" for report in _blocking(decision)]
    return listed(blocking) or decision.why


def _blocking(decision: Decision) -> list[Report]:
    return [
        report
        for report in decision.reports
        if report.held or (isinstance(report.answer, Block) and not report.observed)
    ]


def _words(report: Report) -> str:
    """Return in a few words why a gate blocks, or its problem."""
    if not isinstance(report.answer, Block):
        return first_line(str(report.answer))
    # A command that answers in words exits with 0, which would say nothing.
    how = report.exit if report.exit not in {"", "exit 0"} else first_line(report.answer.because)
    if not report.workspace:
        return how

    return f"{how}, on {remote_from(report.workspace).destination}"


def _also_broken(decision: Decision) -> str:
    broken = [report.gate for report in _broken(decision)]
    return f"; broken: {listed(broken)}" if broken else ""


def _broken(decision: Decision) -> list[Report]:
    """Return the gates with a problem that did not block."""
    return [
        report
        for report in decision.reports
        if isinstance(report.answer, Problem) and not report.observed and not report.held
    ]
