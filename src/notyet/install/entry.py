"""What is registered: one command for each event, and how such a command is read again."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.hosts.own_line import portable_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STOPS = ("Stop", "SubagentStop")
STARTS = ("SessionStart", "SubagentStart")
EVENTS = (*STOPS, *STARTS)
START_TIMEOUT = 30  # seconds; a start only tells the agent of its gates


class Entry(Record, kw_only=True):
    """One registration: at this event, run this command, and wait so many seconds for it."""

    event: str
    command: str
    timeout: int

    @property
    def handler(self) -> dict[str, Any]:
        """What stands in a settings file."""
        return {"type": "command", "command": self.command, "timeout": self.timeout}


def entries(host: str, start: str, timeout: int) -> tuple[Entry, ...]:
    """Return what is registered with a host; `start` empty: the line that works everywhere."""
    made = []
    for event in EVENTS:
        seconds = timeout if event in STOPS else min(timeout, START_TIMEOUT)
        rest = f"hook --host {host} --timeout {seconds}"
        command = f"{start} {rest}" if start else portable_line(rest)
        made.append(Entry(event=event, command=command, timeout=seconds))
    return tuple(made)
