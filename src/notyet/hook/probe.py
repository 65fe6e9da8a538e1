"""What the hook answers to the made-up stop of `notyet status`: what it would ask.

The hook says it, and `notyet status` knows by itself what it should say. On the hook's way, so
light.
"""

from __future__ import annotations

from notyet import __version__
from notyet.core.plan import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.load import Setup
    from notyet.core.event import StopEvent

VARIABLE = "NOTYET_PROBE"
SESSION = "notyet-status-"  # how a made-up session begins; no host has such a name for one
NOTHING = "would ask nothing"


def is_made_up(session: object, environ: Mapping[str, str]) -> bool:
    """Tell whether `notyet status` made up this stop.

    An agent can set a variable, by the settings of its host; but it cannot name its session.
    """
    mark = environ.get(VARIABLE, "")
    return mark.startswith(SESSION) and session == mark


def would_ask(event: StopEvent, setup: Setup) -> str:
    """Say which gates this stop would meet, and which are for subagents; or why there are none."""
    asked = [gate.name for gate in select(event, setup.gates)]
    said = [f"would ask {', '.join(asked)}" if asked else NOTHING]
    others = [gate.name for gate in setup.gates if "subagent" in gate.match.events]
    if others and event.scope == "agent":
        said.append(f"of subagents {', '.join(others)}")
    return f"notyet {__version__}: {'; '.join((*said, *setup.distrust, *setup.warnings))}"
