"""notyet's own dialect: a gate function gets the `StopEvent` and returns a verdict or None."""

from __future__ import annotations

from notyet.core.event import private_copy
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import StopEvent

VERDICTS = (Allow, Block, Halt)
_ALLOW = Allow()


def write_event(event: StopEvent) -> tuple[StopEvent]:
    """Return the arguments of the call: the event, in a copy that is this gate's alone."""
    return (private_copy(event),)


def read_reply(returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
    """Read what a gate function returned."""
    if returned is None:
        return _ALLOW, ""
    if isinstance(returned, VERDICTS):
        return returned, ""
    kind = type(returned).__name__
    hint = "return Allow(), Block('what to do next'), Halt('why') or None"
    return Problem("bad_answer", f"it returned {kind}; {hint}"), ""
