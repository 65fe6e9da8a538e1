"""What `notyet replay` prints: what differs, what nobody can know, and which gate it is about."""

from __future__ import annotations

import sys

from notyet.cli.moments import when
from notyet.cli.streams import json_line
from notyet.cli.terminal import OUTCOME_COLOURS, Style, table
from notyet.core.text import listed, visible
from notyet.replay.answers import WORDS
from notyet.replay.replay import RESULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.cli.terminal import Cell
    from notyet.replay.replay import Finding

_NAMES = {
    "same": "same",
    "differs": "differ",
    "unknown": "cannot be known",
    "hypothetical": "hypothetical",
    "left_out": "left out",
}
_COLOURS = {"same": "green", "differs": "red", "unknown": "yellow"}
_ASSUMING = ("same", "differs")
_MOST_CAUSES = 5
_MOST_ROWS = 50  # of one table; JSON has them all


def show(findings: Sequence[Finding], config: str, *, is_narrowed: bool) -> None:
    """Print what was found out, the summary first; where only some stops were meant, say so."""
    style = Style(sys.stdout)
    against = visible(config) if config else "what is in force now"
    if not findings:
        none = "no stop here is like that" if is_narrowed else "none are recorded here"
        print(f"no stops to replay: {none}; try --all, or see: notyet log --all")
        return
    print(f"{_stops(len(findings))} against {against}")
    for name in RESULTS:
        some = [finding for finding in findings if finding.result == name]
        if some or name in _COLOURS:
            colour = _COLOURS.get(name, "dim") if some else "dim"
            count = style.paint(f"{len(some):>6}", colour)
            print(f"{count}  {_NAMES[name]}{_remark(name, some)}")
    _show_table(findings, "differs", ("WOULD BE", "BECAUSE"), _because, style)
    _show_table(findings, "unknown", ("COULD BE", "DEPENDS ON"), _depends, style)
    _show_gates(findings, style)
    for note in _notes(findings):
        print(f"\n{note}")


def show_json(findings: Sequence[Finding]) -> None:
    """Print each stop as one JSON object, and then all of them together as another."""
    for finding in findings:
        print(json_line({"kind": "stop"} | plain(finding)))
    counts = {name: sum(finding.result == name for finding in findings) for name in RESULTS}
    gates = [
        {"gate": gate, "what": what, "stops": total, "differ": differ, "unknown": unknown}
        for (gate, what), (total, differ, unknown) in _gates(findings).items()
    ]
    print(json_line({"kind": "summary", "stops": len(findings)} | counts | {"gates": gates}))


def plain(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON has it."""
    past = finding.past
    return {
        "id": past.id,
        "at": past.begun_at,
        "host": past.host,
        "session_id": past.session_id,
        "agent_id": past.agent_id,
        "cwd": past.event.cwd,
        "turn": past.turn,
        "result": finding.result,
        "was": finding.was,
        "recorded": past.outcome,
        "could_be": list(finding.could),
        "why": finding.why,
        "because": [{"gate": one.gate, "what": one.what} for one in finding.because],
        "missing": [{"gate": one.gate.name, "why": WORDS[one.why]} for one in finding.missing],
        "limit_missing": finding.limit_missing,
        "not_halting": list(finding.not_halting),
        "takes_passes": finding.takes_passes,
        "too_many": finding.too_many,
        "asked_now": list(finding.asked_now),
        "follows": finding.follows or None,
        "left_out": finding.left_out,
    }


def _show_table(
    findings: Sequence[Finding],
    result: str,
    head: tuple[str, str],
    words: Callable[[Finding], str],
    style: Style,
) -> None:
    some = [finding for finding in findings if finding.result == result]
    if not some:
        return
    rows = [
        (
            str(finding.past.id),
            when(finding.past.begun_at),
            finding.past.host,
            (_was(finding), OUTCOME_COLOURS.get(finding.was, "")),
            _could(finding),
            words(finding),
        )
        for finding in some[-_MOST_ROWS:]
    ]
    print()
    for line in table(("STOP", "WHEN", "HOST", "WAS", *head), rows, style, right=("STOP",)):
        print(line)
    if len(some) > len(rows):
        print(f"and {len(some) - len(rows)} before these; --json has them all")


def _was(finding: Finding) -> str:
    past = finding.past
    return f"{finding.was} ({past.why})" if finding.was == "skipped" and past.why else finding.was


def _could(finding: Finding) -> Cell:
    if len(finding.could) != 1:
        return "/".join(finding.could) or "anything"
    outcome = finding.could[0]
    shown = f"{outcome} ({finding.why})" if outcome == "skipped" else outcome
    return shown, OUTCOME_COLOURS.get(outcome, "")


def _because(finding: Finding) -> str:
    known = "; ".join(map(str, finding.because))
    is_open = finding.missing or finding.limit_missing
    rest = f"which of them: {_depends(finding)}" if is_open else ""
    return "; ".join(filter(None, (known, rest))) or "of settings that are not recorded"


def _depends(finding: Finding) -> str:
    said = [f"{one.gate.name}: {WORDS[one.why]}" for one in finding.missing]
    if finding.limit_missing and not said:  # by a stop that is gone
        return "whether a gate asked for a higher limit before"
    return "; ".join(said) or "whether the same files failed in the same way"


def _remark(name: str, some: Sequence[Finding]) -> str:
    """Say more of a number."""
    if name == "hypothetical" and some:
        return ": after a stop of their turn that differs"
    if name == "unknown" and any(finding.too_many for finding in some):
        return ": of some, too many gates have no recorded answer to try them all"
    if name != "left_out":
        return ""
    causes: dict[str, int] = {}
    for finding in some:
        causes[finding.left_out] = causes.get(finding.left_out, 0) + 1
    said = [f"{visible(cause)} ({count})" for cause, count in causes.items()]
    return f": {listed(said, _MOST_CAUSES)}"


def _show_gates(findings: Sequence[Finding], style: Style) -> None:
    """Print what became of each changed gate, and at how many stops that counts."""
    gates = _gates(findings)
    if not gates:
        return
    rows = [
        (gate, str(total), str(differ), str(unknown), what)
        for (gate, what), (total, differ, unknown) in gates.items()
    ]
    head = ("GATE", "STOPS", "DIFFER", "UNKNOWN", "WHAT CHANGED")
    print()
    for line in table(head, rows, style, right=head[1:4]):
        print(line)


def _gates(findings: Sequence[Finding]) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Return each change of a gate: where it applies, and where it decides or is not known."""
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for finding in findings:
        causes = {one.gate for one in finding.because}
        unknown = {one.gate.name for one in finding.missing}
        for gate, what in finding.changes.items():
            total, differ, open_ = found.get((gate, what), (0, 0, 0))
            found[gate, what] = (total + 1, differ + (gate in causes), open_ + (gate in unknown))
    return found


def _notes(findings: Sequence[Finding]) -> list[str]:
    """Say what the numbers do not."""
    said = []
    asked = dict.fromkeys(name for finding in findings for name in finding.asked_now)
    if asked:
        names = ", ".join(map(visible, asked))
        said.append(f"Asked just now, on today's files and not on those of then: {names}.")
    if any(finding.follows and finding.result in _ASSUMING for finding in findings):
        following = [f for f in findings if f.follows and f.result in _ASSUMING]
        numbers = listed([str(finding.past.id) for finding in following], 5)
        said.append(
            f"Said of {numbers} as far as a stop before in the same turn, which cannot be known, "
            "stays as it was."
        )
    halting = dict.fromkeys(name for finding in findings for name in finding.not_halting)
    if halting:
        names = listed([visible(name) for name in halting], _MOST_CAUSES)
        said.append(f"Not tried, because it happened at none of these stops: a halt by {names}.")
    if any(finding.takes_passes for finding in findings):
        said.append("Taken as recorded: on which files gates had passed in other turns.")
    if any(what == "is new" for finding in findings for what in finding.changes.values()):
        said.append("Stops that met no gate then are not recorded; a new gate may meet them too.")
    results = {finding.result for finding in findings}
    if "unknown" in results and "differs" not in results:
        more = "" if asked else " With --run, the gates are asked on today's files."
        said.append(f"Nothing is known to differ.{more}")
    return said


def _stops(count: int) -> str:
    return f"{count} recorded stop{'' if count == 1 else 's'}"
