"""Where what somebody should know goes: to whoever asked for it, or to the log."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST = 10  # warnings of one stop


def guarded(warn: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that cannot cost a caller the verdict."""

    def told(message: str) -> None:
        try:
            warn(message)
        except Exception:  # noqa: BLE001  # foreign code
            log(message)

    return told


def log(message: str) -> None:
    """Write a message to the logger "notyet"."""
    import logging

    logging.getLogger("notyet").warning("%s", message)


def tell_all(warnings: Sequence[str], warn: Callable[[str], None]) -> None:
    """Tell what somebody should know about one stop; of very much, the first."""
    for warning in warnings[:_MOST]:
        warn(warning)
    if len(warnings) > _MOST:
        warn(f"and {len(warnings) - _MOST} more warnings about this stop")
