"""What a process does for itself before its first command starts; with next to no import.

A hook starts none where nothing changed since the gates passed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_before: Callable[[], None] | None = None


def before_commands(do: Callable[[], None]) -> None:
    """Have something done before the next command is started, if one ever is."""
    global _before  # noqa: PLW0603  # it is a property of the process
    _before = do


def will_start() -> None:
    """Do what was to be done before commands are started, if anything."""
    global _before  # as above
    if _before is not None:
        do, _before = _before, None
        do()
