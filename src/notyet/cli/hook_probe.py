"""What `notyet hook` answers to the synthetic stop of `notyet status`: what it would ask."""

from __future__ import annotations

from notyet import __version__
from notyet.core.plan import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.load import Setup
    from notyet.core.event import StopEvent


def would_ask(event: StopEvent, setup: Setup) -> str:
    """Say which gates this stop would meet, and which are for subagents; or why there are none."""
    asked = [gate.name for gate in select(event, setup.gates)]
    others = [gate.name for gate in setup.gates if "subagent" in gate.match.events]
    said = [f"would ask {', '.join(asked)}" if asked else "would ask nothing"]
    if others:
        said.append(f"of subagents {', '.join(others)}")
    return f"notyet {__version__}: {'; '.join((*said, *setup.distrust, *setup.warnings))}"
