"""What a process does for itself when its first command starts; with next to no import.

A hook starts none where nothing changed since the gates passed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_before: Callable[[], None] | None = None
_after: Callable[[tuple[int, ...]], None] | None = None


def before_commands(do: Callable[[], None]) -> None:
    """Have something done before the next command is started, if one ever is."""
    global _before  # noqa: PLW0603  # it is a property of the process
    _before = do


def once_started(do: Callable[[tuple[int, ...]], None]) -> None:
    """Have something done when the next command has been started, with all that was until then."""
    global _after  # noqa: PLW0603  # as above
    _after = do


def will_start() -> None:
    """Do what was to be done before commands are started, if anything."""
    global _before  # as above
    if _before is not None:
        do, _before = _before, None
        do()


def has_started(*pids: int) -> None:
    """Do what was to be done when these have been started, if anything."""
    global _after  # as above
    if _after is not None:
        do, _after = _after, None
        do(tuple(pid for pid in pids if pid))
