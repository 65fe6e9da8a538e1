"""What `notyet status` prints for people: one section for each host, and one for our own side."""

from __future__ import annotations

import os

from notyet import __version__
from notyet.cli.style import Style
from notyet.core.remote import remote_from
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

    from notyet.report.faults.fault import Fault
    from notyet.report.hosts import HostStatus

_COLOURS = {"fault": "red", "warning": "yellow", "note": "dim"}
_WIDTH = 10  # of the words at the beginning of a line


class Show:
    """Prints sections; what could hide something on a terminal is escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._paint = Style(stream).paint

    def all(self, cwd: str, own: list[Fault], hosts: list[HostStatus]) -> None:
        """Print everything, and at last whether all is well."""
        self._line(f"{self._paint(f'notyet {__version__}', 'bold')} in {visible(cwd)}")
        for found in own:
            self._fault(found)
        for status in hosts:
            self._line()
            self._host(status)
        self._line()
        self._end([*own, *(found for status in hosts for found in status.faults)], hosts)

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
            self._fact("gates", ", ".join(_gates(status)) or "none in force here")
        probed = status.probe
        if probed is not None and not probed.problem:
            took = self._paint(f"({probed.seconds:.2f} s)", "dim")
            self._fact("answer" if probed.asked else "reply", f"{visible(probed.says)} {took}")
        for found in status.faults:
            self._fault(found)
        if probed is not None and status.is_gating:  # else nobody knows
            self._fact("ok", self._paint(f"{status.title} calls notyet at every stop", "green"))

    def _fault(self, found: Fault) -> None:
        label = self._paint(f"{found.level:<{_WIDTH}}", _COLOURS[found.level])
        code = self._paint(f"[{found.code}]", "dim")
        self._line(f"  {label}  {visible(found.what)} {code}")
        for word, text in (("at", found.where), ("fix", found.fix)):
            if text:
                self._line(f"  {'':<{_WIDTH}}  {self._paint(f'{word}:', 'dim')} {visible(text)}")

    def _end(self, faults: list[Fault], hosts: list[HostStatus]) -> None:
        count = sum(found.level == "fault" for found in faults)
        if count:
            which = "this keeps" if count == 1 else "these keep"
            said = f"{count} fault{'' if count == 1 else 's'}: {which} gates from gating"
            self._line(self._paint(said, "red"))
        elif not any(status.registrations for status in hosts):
            self._line("nothing calls notyet here; `notyet install HOST` lets a host do it")
        else:
            self._line(self._paint("nothing keeps gates from gating here", "green"))

    def _fact(self, label: str, text: str) -> None:
        self._line(f"  {self._paint(f'{label:<{_WIDTH}}', 'dim')}  {text}")

    def _line(self, text: str = "") -> None:
        print(text.rstrip(), file=self._stream)


def _gates(status: HostStatus) -> Iterator[str]:
    for name in status.gates:
        place = status.places.get(name)
        yield visible(f"{name} on {remote_from(place).destination}" if place else name)


def _places(status: HostStatus) -> dict[str, list[str]]:
    """Return the files that our entries stand in, each with its events."""
    places: dict[str, list[str]] = {}
    for entry in status.registrations:
        home = os.path.expanduser("~")
        path = entry.place.path
        if len(home) > 1 and path.startswith(f"{home}/"):
            path = f"~{path.removeprefix(home)}"
        events = places.setdefault(f"{path} ({entry.place.scope})", [])
        if visible(entry.event) not in events:
            events.append(visible(entry.event))
    return places
