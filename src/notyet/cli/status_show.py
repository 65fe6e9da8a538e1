"""What `notyet status` prints for people: one section for each host, and one for our own side."""

from __future__ import annotations

from notyet import __version__
from notyet.cli.status_now import (
    decision_lines,
    gate_lines,
    ledger_line,
    limit_lines,
    near,
    session_lines,
)
from notyet.cli.style import Style
from notyet.core.remote import remote_from
from notyet.core.text import visible
from notyet.install.entry import STOPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from notyet.cli.status import Found
    from notyet.report.faults.fault import Fault
    from notyet.report.gated import Answer
    from notyet.report.hosts import HostStatus

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
