"""How long hosts wait for gates, and how long gates may take."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.hosts import MARGIN, PATIENCE, time_to_answer
from notyet.hosts.own_line import own_line
from notyet.install import HOSTS, host_named
from notyet.install.entry import STOPS
from notyet.status.faults.entries import DEFAULT_TIMEOUT, waiting_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.install.registered import Registration


class Wait(Record, kw_only=True):
    """A host, and how long gates may take before it goes on without them."""

    host: str
    title: str
    seconds: float

    def longer(self, seconds: float) -> str:
        """Return the command that lets it wait for so long."""
        minutes = int(seconds + MARGIN) // 60 + 1
        return f"notyet install {self.host} --timeout {minutes}m"


def waits_here(folder: str, environ: Mapping[str, str]) -> list[Wait]:
    """Return the hosts that call us here; where none does, what `notyet install` would ask for."""
    found = []
    for name in HOSTS:
        host = host_named(name)
        entries = [entry for entry in host.found(folder, environ)[0] if entry.event in STOPS]
        if entries:
            seconds = min(time_for(name, entry) for entry in entries)
            found.append(Wait(host=name, title=host.TITLE, seconds=seconds))
    usual = time_to_answer(DEFAULT_TIMEOUT)
    return found or [Wait(host="HOST", title="a host that is installed as usual", seconds=usual)]


def time_for(host: str, entry: Registration) -> float:
    """Return how long gates may take for an entry: until its command, or its host, gives up."""
    ours = own_line(entry.command)
    said = ours.timeout if ours is not None else None
    patience = PATIENCE[host] if said is None else said
    return time_to_answer(min(patience, waiting_time(host, entry)))
