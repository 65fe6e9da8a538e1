"""How each host speaks, and how functions written for it are called.

A dialect's hook face for Python functions is two functions. `write_event(event)` returns a
function that gives the arguments of one call, each time in copies that are the callee's alone.
`read_reply(returned)` turns what came back into an answer, with a warning for the author where
there is something to warn about.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Allow, Block, Halt, Problem

    class FunctionFace(Protocol):
        """What a module must offer so that functions can be asked in its dialect."""

        def write_event(self, event: StopEvent) -> Callable[[], tuple[Any, ...]]: ...

        def read_reply(self, returned: object) -> tuple[Allow | Block | Halt | Problem, str]: ...


# At the end: the dialects are parts of this package.
from notyet.dialects import native, openclaw  # noqa: E402  # as said above

FACES: dict[str, FunctionFace] = {"notyet": native, "openclaw": openclaw}
