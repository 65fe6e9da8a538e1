"""The screen of `notyet status`: the answer, gates, hosts, faults, limits and the last stops."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from notyet.cli.terminal import OUTCOME_COLOURS, Style, folded, table_or_list
from notyet.config.records import work_tree
from notyet.core.text import visible
from notyet.core.verdict import outcome_words
from notyet.status.overview import near
from notyet.status.words import (
    faults_shown,
    fix_of,
    gate_columns,
    host_details,
    host_state,
    limits_shown,
)
from notyet.times import age, when

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.cli.terminal import Cell
    from notyet.status.answer import Answer
    from notyet.status.fault import Fault
    from notyet.status.report import StatusReport

_ANSWERS = {"yes": "green", "partly": "yellow", "perhaps": "yellow", "no": "red"}
_COLOURS = {"fault": "red", "warning": "yellow", "note": "dim", "": "green"}
_MOST_NAMED = 4  # hosts that are not here
_GAP = "  "
_LABEL = 11  # columns of the word at the start of a line, with the gap after it


def print_answer(answer: Answer, style: Style) -> None:
    """Print whether agents are checked, and of whose stops that is not true."""
    _, _, says = answer.says.partition(": ")
    state = style.paint(answer.state.upper(), "bold", _ANSWERS[answer.state])
    indent = len(answer.state) + len(_GAP)
    print(f"{state}{_GAP}{folded(visible(says), indent)}")
    for words in answer.but:
        but = f"{'':<{indent}}{style.paint('but', 'yellow')}"
        print(f"{but} {folded(visible(words), indent + len('but '))}")


class Screen:
    """Prints what was found; control characters are escaped."""

    def __init__(self, found: StatusReport) -> None:
        self._found = found
        self._style = Style(sys.stdout)
        self._paint = self._style.paint

    def show(self) -> None:
        """Print the answer first; where it is not yes, the last line is the fix."""
        found = self._found
        print_answer(found.answer, self._style)
        gates = gate_columns(found)
        self._table(tuple(gates), list(zip(*gates.values(), strict=True)))
        linked = [path for setup in found.setups.values() for path in setup.linked]
        if linked:
            main = visible(work_tree(linked[0])[1])
            print(self._paint(f"a work tree of {main}, with its trust", "dim"))
        self._hosts()
        self._faults()
        self._facts()
        self._recent()
        if not found.is_well:
            print(f"\n{self._paint('fix:', 'bold')} {folded(visible(fix_of(found)), len('fix: '))}")

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
            state, level = host_state(status, self._found.cwd)
            shown = self._paint(folded(state, indent), _COLOURS[level])
            print(f"{status.title:<{wide}}{_GAP}{shown}")
            details = " · ".join(host_details(status))
            if details:
                print(f"{'':<{indent}}{self._paint(folded(details, indent), 'dim')}")
        if absent:
            print(self._paint(f"not found: {names}", "dim"))

    def _faults(self) -> None:
        """Print what is wrong with the fix of each, the worst first."""
        faults = faults_shown(self._found)
        if faults:
            print()
        for one in faults:
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
            self._line("limits", " · ".join(limits_shown(found)))
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
