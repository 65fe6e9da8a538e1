"""The screen of `notyet status`: the answer, gates, hosts, faults, limits and the last stops."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from notyet.cli.terminal import OUTCOME_COLOURS, Style, folded, table_or_list
from notyet.config.records import work_tree
from notyet.core.remote import remote_from
from notyet.core.text import visible
from notyet.core.verdict import outcome_words
from notyet.hosts import host_named
from notyet.status.fault import LEVELS
from notyet.status.overview import DEFAULT, near
from notyet.times import age, when

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.cli.terminal import Cell
    from notyet.status.fault import Fault
    from notyet.status.overview import GateHere
    from notyet.status.report import HostStatus, StatusReport

_ANSWERS = {"yes": "green", "partly": "yellow", "perhaps": "yellow", "no": "red"}
_COLOURS = {"fault": "red", "warning": "yellow", "note": "dim"}
_MOST_NAMED = 4  # hosts that are not here
_GAP = "  "
_LABEL = 11  # columns of the word at the start of a line, with the gap after it
_WHOSE = {
    "user": "for you",
    "project": "for this project",
    "local": "for you in this project",
    "managed": "by your organisation",
}
_LIMITS = {
    "max_blocks": "{} send-backs a turn",
    "session_ceiling": "{} a session",
    "stuck_after": "give up after {} equal failures",
    "jobs": "{} commands at once",
}
_OTHER_LIMITS = {
    ("session_ceiling", 0): "no limit for a session",
    ("stuck_after", 0): "never give up on equal failures",
    ("wait_for_background", True): "wait for background agents",
    ("wait_for_background", False): "do not wait for background agents",
    ("jobs", "cores"): "as many commands at once as cores",
}


class Screen:
    """Prints what was found; control characters are escaped."""

    def __init__(self, found: StatusReport) -> None:
        self._found = found
        self._style = Style(sys.stdout)
        self._paint = self._style.paint

    def show(self) -> None:
        """Print the answer first; where it is not yes, the last line is the fix."""
        found = self._found
        self._answer()
        self._table(*_gate_table(found.gates, len(found.setups | found.elsewhere), found.cwd))
        linked = [path for setup in found.setups.values() for path in setup.linked]
        if linked:
            main = visible(work_tree(linked[0])[1])
            print(self._paint(f"a work tree of {main}, with its trust", "dim"))
        self._hosts()
        self._faults()
        self._facts()
        self._recent()
        if not found.is_well:
            print(f"\n{self._paint('fix:', 'bold')} {folded(visible(_fix(found)), len('fix: '))}")

    def _answer(self) -> None:
        answer = self._found.answer
        _, _, says = answer.says.partition(": ")
        state = self._paint(answer.state.upper(), "bold", _ANSWERS[answer.state])
        indent = len(answer.state) + len(_GAP)
        print(f"{state}{_GAP}{folded(visible(says), indent)}")
        for words in answer.but:
            but = f"{'':<{indent}}{self._paint('but', 'yellow')}"
            print(f"{but} {folded(visible(words), indent + len('but '))}")

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        if rows:
            print()
            for line in table_or_list(head, rows, self._style):
                print(line)

    def _hosts(self) -> None:
        """Print a row for each host that is here, with its details below its state."""
        here = [status for status in self._found.hosts if status.is_here]
        absent = [status.title for status in self._found.hosts if not status.is_here]
        names = ", ".join(absent)
        if len(absent) > _MOST_NAMED:
            names = f"{len(absent)} {'other hosts' if here else 'hosts'} (notyet hosts)"
        print()
        wide = max((len(one.title) for one in here), default=0)
        indent = wide + len(_GAP)
        if here:
            print(self._paint(f"{'host':<{wide}}{_GAP}state", "bold"))
        for status in here:
            state, colour = _state(status, self._found.cwd)
            shown = self._paint(folded(state, indent), colour)
            print(f"{status.title:<{wide}}{_GAP}{shown}")
            details = " · ".join(_details(status))
            if details:
                print(f"{'':<{indent}}{self._paint(folded(details, indent), 'dim')}")
        if absent:
            print(self._paint(f"not found: {names}", "dim"))

    def _faults(self) -> None:
        """Print what is wrong with the fix of each, the worst first."""
        found = self._found
        faults = [one for one in found.faults if one.what not in found.answer.says]
        faults += [one for status in found.hosts for one in _faults_of(status)]
        if faults:
            print()
        for one in sorted(faults, key=lambda one: LEVELS.index(one.level)):
            self._fault(one)

    def _fault(self, found: Fault) -> None:
        what = f"{visible(found.what)} [{found.code}]"
        self._line(found.level, what, _COLOURS[found.level])
        for word, text in (("at", found.where), ("fix", found.fix)):
            if text:
                shown = folded(visible(text), _LABEL + len(word) + 2)
                print(f"{'':<{_LABEL}}{self._paint(f'{word}:', 'dim')} {shown}")

    def _facts(self) -> None:
        """Print the limits in one line, and what else is set."""
        found = self._found
        if found.gates or found.recent.problem or found.variables:
            print()
        if found.gates:
            limits = [_limit(one, found.cwd) for one in found.limits]
            timeout = _common_timeout(found.gates)
            limits += [f"timeout {timeout}"] if timeout else []
            self._line("limits", " · ".join(limits))
        if found.recent.problem:
            wrong = f"{near(found.recent.path, '')} cannot be read: {found.recent.problem}"
            self._line("ledger", visible(wrong))
        if found.variables:
            self._line("variables", visible(", ".join(found.variables)))

    def _line(self, label: str, text: str, colour: str = "bold") -> None:
        label = self._paint(label, colour) + " " * (_LABEL - len(label))
        print(f"{label}{folded(text, _LABEL)}")

    def _recent(self) -> None:
        now, recent = time.time(), self._found.recent
        sessions = [
            (
                one["session_id"],
                one["agent_id"] or "main",
                one["host"],
                str(one["turn"]),
                f"{one['used']} of {one['limit']}",
                (_last(one["outcome"]), OUTCOME_COLOURS.get(one["outcome"], "")),
                f"{age(now - one['seen_at'])} ago",
            )
            for one in recent.sessions
        ]
        head = ("session", "agent", "host", "turn", "sent back", "last", "seen")
        self._table(head, sessions)
        stops = [
            (
                str(one["id"]),
                when(one["at"]),
                (words, OUTCOME_COLOURS.get(one["outcome"], "")),
                one["host"],
                one["why"],
            )
            for one, words in zip(recent.decisions, recent.words, strict=True)
        ]
        self._table(("stop", "when", "outcome", "host", "why"), stops)


def _last(outcome: str) -> str:
    """Return the last outcome of an agent in words; why a stop was skipped is not known of it."""
    return outcome if outcome == "skipped" else outcome_words(outcome, "") or "-"


def _fix(found: StatusReport) -> str:
    """Return the one thing to do: the answer's fix, or else that of the worst fault."""
    faults = [*found.faults, *(one for status in found.hosts for one in status.faults)]
    worst = sorted(faults, key=lambda one: LEVELS.index(one.level))
    fixes = [found.answer.fix, *(one.fix for one in worst), "notyet status --why"]
    return next(filter(None, fixes)).removeprefix("run: ")


def _state(status: HostStatus, cwd: str) -> tuple[str, str]:
    """Return how a host calls notyet, and the colour."""
    worst = min((LEVELS.index(one.level) for one in status.faults), default=len(LEVELS))
    colour = [*_COLOURS.values(), "green"][worst]
    known = [visible(status.version), "unproven" * (host_named(status.host).proof == "source")]
    after = "".join(f", {word}" for word in known if word)
    codes = ", ".join(dict.fromkeys(one.code for one in status.faults))
    if not status.entries:
        is_all = [one.code for one in status.faults] == ["not-registered"]
        how = f"notyet install {status.host}" if is_all else codes
        return f"not registered{after}{f': {how}' if how else ''}", colour
    places = dict.fromkeys(
        f"{_WHOSE[one.file.scope]} ({visible(near(one.file.path, cwd))})" for one in status.entries
    )
    return f"registered {' and '.join(places)}{after}{f': {codes}' if codes else ''}", colour


def _details(status: HostStatus) -> Iterator[str]:
    """Yield at which events a host calls notyet, its program, and the reply to a made-up stop."""
    if status.program:
        yield visible(status.program)
    files: dict[str, list[str]] = {}
    for one in status.entries:
        events = files.setdefault(near(one.file.path, ""), [])
        events += [] if visible(one.event) in events else [visible(one.event)]
    for file, events in files.items():
        yield ", ".join(events) + (f" in {visible(file)}" if len(files) > 1 else "")
    probe = status.probe
    if probe is not None and not probe.problem:
        word = "answer" if probe.asked else "reply"
        yield f"{word} in {probe.seconds:.2f} s: {visible(probe.says)}"


def _faults_of(status: HostStatus) -> list[Fault]:
    """Return the faults of a host without the one that its state says already."""
    return [one for one in status.faults if (one.code, one.level) != ("not-registered", "warning")]


def _limit(limit: dict[str, object], cwd: str) -> str:
    name, value, source = str(limit["name"]), limit["value"], str(limit["source"])
    words = _OTHER_LIMITS.get((name, value))
    words = words or _LIMITS.get(name, f"{name} {{}}").format(value)
    return words if source == DEFAULT else f"{words} ({visible(near(source, cwd))})"


def _gate_table(
    gates: Sequence[GateHere], hosts: int, cwd: str
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return the head and the rows of the table of gates, without columns that say nothing."""
    columns = {
        "gate": [one.name for one in gates],
        "runs": [one.runs for one in gates],
        "for": [one.whom for one in gates],
        "when": [_when(one) for one in gates],
        "stage": [_stage(one) for one in gates],
        "timeout": [_span(one.timeout) for one in gates],
        "on": [remote_from(one.place).destination if one.place else "" for one in gates],
        "under": [_under(one, hosts) for one in gates],
        "from": [near(f"{one.file}:{one.line}" if one.line else one.file, cwd) for one in gates],
    }
    if set(columns["stage"]) == {"1"}:  # all run together
        del columns["stage"]
    if _common_timeout(gates):
        del columns["timeout"]
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    return tuple(shown), list(zip(*shown.values(), strict=True))


def _common_timeout(gates: Sequence[GateHere]) -> str:
    """Return the timeout that all gates have; empty if they differ."""
    spans = {_span(one.timeout) for one in gates}
    return spans.pop() if len(spans) == 1 else ""


def _under(one: GateHere, hosts: int) -> str:
    """Return under which hosts a gate runs; empty if it runs under all of them."""
    return "" if not one.trusted or len(one.hosts) == hosts else ", ".join(one.hosts)


def _stage(one: GateHere) -> str:
    if not one.trusted:
        return "not trusted"
    return f"{one.stage}, observes" if one.observe else str(one.stage)


def _when(one: GateHere) -> str:
    if one.when == "always":
        return "always"
    return f"{', '.join(one.paths)} changed" if one.paths else "files changed"


def _span(seconds: float | None) -> str:
    """Return a timeout as people write it in a file."""
    if seconds is None:
        return "none"
    for size, unit in ((3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"
