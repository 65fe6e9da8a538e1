"""`Function`: a check that calls a function."""

from __future__ import annotations

from notyet.core.gate import DIALECTS
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal

    Speaks = Literal["notyet", "openclaw"]


class Function(Record):
    """A check: call this, plain or `async`. `speaks` says in which shape it is called."""

    call: Callable[..., Any]
    speaks: Speaks = "notyet"

    def _validate(self) -> None:
        if not callable(self.call):
            raise TypeError(f"a Function calls a function, not {type(self.call).__name__}")
        if self.speaks not in DIALECTS:
            raise ValueError(f"speaks is one of {', '.join(DIALECTS)}, not {self.speaks!r}")


def check_function(check: object) -> None:
    """Refuse a check that is neither a Command nor a Function. Raises TypeError."""
    if not isinstance(check, Function):
        raise TypeError(f"check is a Function or Command, not {type(check).__name__}")
