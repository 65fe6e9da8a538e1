"""The stop that `notyet status` makes up: the hook answers which gates would run."""

from __future__ import annotations

from notyet import __version__
from notyet.core.plan import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.load import Setup
    from notyet.core.event import StopEvent

WOULD_RUN_NOTHING = "would run nothing"


def would_run(event: StopEvent, setup: Setup) -> str:
    """Return which gates this stop would run, and which run for subagents; or why none does."""
    running = [gate.name for gate in select(event, setup.gates)]
    parts = [f"would run {', '.join(running)}" if running else WOULD_RUN_NOTHING]
    others = [gate.name for gate in setup.gates if "subagent" in gate.match.events]
    if others and event.scope == "agent":
        parts.append(f"for subagents {', '.join(others)}")
    return f"notyet {__version__}: {'; '.join((*parts, *setup.distrust, *setup.warnings))}"
