"""Lines of `notyet status` about gates, limits, sessions and decisions, as tables for people."""

from __future__ import annotations

import os
import time

from notyet import __version__
from notyet.cli.moments import age, when
from notyet.cli.terminal import Style, outcome_cell, table, width
from notyet.core.remote import remote_from
from notyet.core.text import visible
from notyet.install.entry import STOPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TextIO

    from notyet.cli.status import Found
    from notyet.cli.terminal import Cell
    from notyet.status.faults.fault import Fault
    from notyet.status.gated import Answer, GateHere, LimitHere
    from notyet.status.hosts import HostStatus
    from notyet.status.lately import DecisionHere, Lately, SessionHere

INDENT = 2  # columns before every line of a table
_MINUTE, _HOUR = 60, 3_600
_UNITS = ("bytes", "kB", "MB", "GB")
_THOUSAND = 1_000.0


def gate_lines(gates: Sequence[GateHere], hosts: int, cwd: str, style: Style) -> list[str]:
    """Return a table of gates, in the order in which they are asked."""
    if not gates:
        return []
    columns = {
        "gate": [one.name for one in gates],
        "stage": [_stage(one) for one in gates],
        "for": [one.whom for one in gates],
        "asked": [_when(one) for one in gates],
        "timeout": [span(one.timeout) for one in gates],
        "runs": [f"on {remote_from(one.place).destination}" if one.place else "" for one in gates],
        "hosts": ["" if len(one.hosts) == hosts else ", ".join(one.hosts) for one in gates],
        "from": [_from(one, cwd) for one in gates],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    rows: list[tuple[Cell, ...]] = list(zip(*shown.values(), strict=True))
    return table(tuple(shown), rows, style, columns=width() - INDENT)


def _stage(one: GateHere) -> str:
    if not one.trusted:
        return "not trusted"
    return f"{one.stage}, observes" if one.observe else str(one.stage)


def _when(one: GateHere) -> str:
    if one.when == "always":
        return "always"
    return f"when {', '.join(one.paths)} changed" if one.paths else "when files changed"


def _from(one: GateHere, cwd: str) -> str:
    place = near(one.file, cwd)
    return f"{place}:{one.line}" if one.line else place


def limit_lines(limits: Iterable[LimitHere], cwd: str, style: Style) -> list[str]:
    """Return a table of the limits, and where each comes from."""
    rows = [(one.name, _value(one.value), near(one.source, cwd)) for one in limits]
    return table(("limit", "value", "from"), rows, style, columns=width() - INDENT)


def _value(value: int | bool) -> str:  # noqa: FBT001  # a setting, whatever it is
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def session_lines(sessions: Sequence[SessionHere], style: Style) -> list[str]:
    """Return a table of what sessions used of their budgets."""
    if not sessions:
        return []
    now = time.time()
    rows = [
        (
            one.session_id,
            one.agent_id or "main",
            one.host,
            str(one.turn),
            f"{one.used} of {one.limit}",
            outcome_cell(one.outcome),
            f"{age(now - one.seen_at)} ago",
        )
        for one in sessions
    ]
    head = ("session", "agent", "host", "turn", "sent back", "last", "seen")
    return table(head, rows, style, columns=width() - INDENT)


def decision_lines(decisions: Sequence[DecisionHere], style: Style) -> list[str]:
    """Return a table of the last decisions."""
    if not decisions:
        return []
    rows = [
        (str(one.id), when(one.at), outcome_cell(one.outcome), one.host, one.why)
        for one in decisions
    ]
    head = ("stop", "when", "outcome", "host", "why")
    return table(head, rows, style, columns=width() - INDENT)


def ledger_line(lately: Lately) -> str:
    """Say where the ledger is, and how much it holds."""
    size = f"{_size(lately.size)}" if lately.size else "none yet"
    wrong = f"; it cannot be read: {lately.problem}" if lately.problem else ""
    return f"{near(lately.path, '')} ({size}{wrong})"


def _size(number: int) -> str:
    amount = float(number)
    for unit in _UNITS:
        if amount < _THOUSAND or unit == _UNITS[-1]:
            break
        amount /= _THOUSAND
    return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 10 else f"{amount:.1f} {unit}"  # noqa: PLR2004  # one digit is enough


def near(path: str, cwd: str) -> str:
    """Return a path as short as somebody who is in a folder writes it."""
    if cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path.removeprefix(cwd.rstrip("/") + "/")
    home = os.path.expanduser("~")
    return f"~{path.removeprefix(home)}" if len(home) > 1 and path.startswith(f"{home}/") else path


def span(seconds: float | None) -> str:
    """Return a timeout as people write it in a file."""
    if seconds is None:
        return "none"
    for size, unit in ((_HOUR, "h"), (_MINUTE, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


_ANSWERS = {"yes": "green", "perhaps": "yellow", "no": "red"}
_COLOURS = {"fault": "red", "warning": "yellow", "note": "dim"}
_WIDTH = 10  # of the words at the beginning of a line


class Show:
    """Prints sections; what could hide something on a terminal is escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._style = Style(stream)
        self._paint = self._style.paint

    def all(self, found: Found) -> None:
        """Print everything: first the answer, and at last whether all is well."""
        self._answer(found.answer)
        self._line(f"{self._paint(f'notyet {__version__}', 'bold')} in {visible(found.cwd)}")
        for one in found.own:
            self._fault(one)
        lately = found.lately
        if found.gates:
            self._table("", gate_lines(found.gates, len(found.setups), found.cwd, self._style))
            limits = (*found.limits, *found.caps)
            self._table("", limit_lines(limits, found.cwd, self._style))
        for status in found.hosts:
            self._line()
            self._host(status)
        self._table("sessions here", session_lines(lately.sessions, self._style))
        self._table("last decisions here", decision_lines(lately.decisions, self._style))
        self._line()
        if lately.path:
            self._fact("ledger", visible(ledger_line(lately)))
        if found.variables:
            self._fact("variables", visible(", ".join(found.variables)))
        self._end(found)

    def _answer(self, answer: Answer) -> None:
        self._line(self._paint(visible(answer.says), "bold", _ANSWERS[answer.state]))
        for words in answer.but:
            self._line(f"  {self._paint('but', 'yellow')} {visible(words)}")
        if answer.fix:
            self._line(f"  {self._paint('to change that:', 'dim')} {visible(answer.fix)}")

    def _table(self, title: str, lines: list[str]) -> None:
        if not lines:
            return
        self._line()
        if title:
            self._line(self._paint(title, "bold"))
        for line in lines:
            self._line(f"  {line}")

    def _host(self, status: HostStatus) -> None:
        if not status.is_here:
            said = f"{status.title}: not found, neither its program nor its settings"
            self._line(self._paint(said, "dim"))
            return
        title = f"{status.title} {status.version}".strip()
        self._line(f"{self._paint(title, 'bold')}  {self._paint(visible(status.program), 'dim')}")
        for place, events in _places(status).items():
            self._fact("registered", f"{', '.join(events)} in {visible(place)}")
        if status.registrations:
            self._fact("gates", ", ".join(_named(status)) or "none in force here")
        probed = status.probe
        if probed is not None and not probed.problem:
            took = self._paint(f"({probed.seconds:.2f} s)", "dim")
            self._fact("answer" if probed.asked else "reply", f"{visible(probed.says)} {took}")
        for found in status.faults:
            self._fault(found)
        known = [event for event in STOPS if status.reached.get(event) == ""]
        if known and status.is_gating:  # else nobody knows
            where = "every stop" if len(known) == len(STOPS) else known[0]
            self._fact("ok", self._paint(f"{status.title} calls notyet at {where}", "green"))

    def _fault(self, found: Fault) -> None:
        label = self._paint(f"{found.level:<{_WIDTH}}", _COLOURS[found.level])
        code = self._paint(f"[{found.code}]", "dim")
        self._line(f"  {label}  {visible(found.what)} {code}")
        for word, text in (("at", found.where), ("fix", found.fix)):
            if text:
                self._line(f"  {'':<{_WIDTH}}  {self._paint(f'{word}:', 'dim')} {visible(text)}")

    def _end(self, found: Found) -> None:
        count = sum(one.level == "fault" for one in found.faults)
        if count:
            which = "this keeps" if count == 1 else "these keep"
            said = f"{count} fault{'' if count == 1 else 's'}: {which} gates from gating"
            self._line(self._paint(said, "red"))
        elif not any(status.registrations for status in found.hosts):
            self._line("nothing calls notyet here; `notyet install HOST` lets a host do it")
        elif found.is_well:
            self._line(self._paint("nothing keeps gates from gating here", "green"))

    def _fact(self, label: str, text: str) -> None:
        self._line(f"  {self._paint(f'{label:<{_WIDTH}}', 'dim')}  {text}")

    def _line(self, text: str = "") -> None:
        print(text.rstrip(), file=self._stream)


def _named(status: HostStatus) -> Iterator[str]:
    for name in status.gates:
        place = status.places.get(name)
        yield visible(f"{name} on {remote_from(place).destination}" if place else name)


def _places(status: HostStatus) -> dict[str, list[str]]:
    """Return the files that our entries stand in, each with its events."""
    places: dict[str, list[str]] = {}
    for entry in status.registrations:
        events = places.setdefault(f"{near(entry.place.path, '')} ({entry.place.scope})", [])
        if visible(entry.event) not in events:
            events.append(visible(entry.event))
    return places
