"""Telling which commands have ended while others still run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from notyet.checks.process import Process

    Told = Callable[[int, Process], None]

_MEANWHILE = 0.1  # seconds between two looks at what else goes on, where somebody wants to know
_NEVER = float("inf")


class News:
    """Who hears of what; each command is told of once."""

    def __init__(
        self, processes: Sequence[Process], told: Told, meanwhile: Callable[[], None] | None
    ) -> None:
        self._untold = dict(enumerate(processes))
        self._told = told
        self._meanwhile = meanwhile

    def tell(self, left: AbstractSet[Process]) -> float:
        """Tell of those that are not left any more; return after how many seconds to come back."""
        if self._meanwhile is not None:
            self._meanwhile()
        for place in [place for place, process in self._untold.items() if process not in left]:
            self._told(place, self._untold.pop(place))
        return _NEVER if self._meanwhile is None else _MEANWHILE
