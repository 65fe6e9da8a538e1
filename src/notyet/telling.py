"""Where what somebody should know goes: to whoever asked for it, or to the log."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
