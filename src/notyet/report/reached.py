"""At which stops a host is known to reach us, and at which nobody knows."""

from __future__ import annotations

from notyet.core.text import visible
from notyet.report.faults.entries import restricts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.event import Scope
    from notyet.install.registered import Registration
    from notyet.report.faults.look import Look

SCOPES: dict[str, Scope] = {"Stop": "agent", "SubagentStop": "subagent"}


def reached(look: Look, tried: Mapping[str, str]) -> dict[str, str]:
    """Return the stops at which a line of ours is run; empty where known, else why it is not.

    `tried` are the command lines that a stop was sent through, and those that it was not, with
    the reason.
    """
    known: dict[str, str] = {}
    for event in SCOPES:
        for entry in look.registrations:
            if entry.event == event and entry.command in tried:
                why = _untried(tried[entry.command]) or _left_out(look, entry)
                known[event] = why and known.get(event, why)
    return known


def _untried(why: str) -> str:
    return f"its command was not tried, because {why}" if why else ""


def _left_out(look: Look, entry: Registration) -> str:
    if not restricts(look.host, entry):
        return ""
    return f"the matcher `{visible(str(entry.matcher))}` keeps notyet from those it does not fit"
