"""notyet's own dialect: a gate function gets the `StopEvent` and returns a verdict or None."""

from __future__ import annotations

from notyet.core.event import private_copy
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.core.event import StopEvent

VERDICTS = (Allow, Block, Halt)
_ALLOW = Allow()


def write_event(event: StopEvent) -> Callable[[], tuple[StopEvent]]:
    """Return what gives the arguments of a call: the event, in a copy that is this gate's alone."""
    return lambda: (private_copy(event),)


def read_reply(returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
    """Read what a gate function returned."""
    if returned is None:
        return _ALLOW, ""
    if isinstance(returned, VERDICTS):
        return returned, ""
    kind = type(returned).__name__
    hint = "return Allow(), Block('what to do next'), Halt('why') or None"
    return Problem("bad_answer", f"it returned {kind}; {hint}"), ""
