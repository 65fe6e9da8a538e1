"""How each host speaks, and how functions written for it are called.

A dialect's hook face for Python functions is two functions: `write_event(event)` gives the
arguments for the call, and `read_reply(returned)` turns what came back into an answer, with a
warning for the author where there is something to warn about.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from notyet.core.event import StopEvent
    from notyet.core.gate import Speaks
    from notyet.core.verdict import Allow, Block, Halt, Problem

    class FunctionFace(Protocol):
        """What a module must offer so that functions can be asked in its dialect."""

        def write_event(self, event: StopEvent) -> tuple[Any, ...]: ...

        def read_reply(self, returned: object) -> tuple[Allow | Block | Halt | Problem, str]: ...


def function_face(speaks: Speaks) -> FunctionFace:
    """Return the module that knows how functions of this dialect are called."""
    return _FACES[speaks]


# At the end: the dialects are parts of this package.
from notyet.dialects import native, openclaw  # noqa: E402

_FACES: dict[str, FunctionFace] = {"notyet": native, "openclaw": openclaw}
