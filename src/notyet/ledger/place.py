"""Where the ledger's file lies, and where an agent does."""

from __future__ import annotations

from notyet import system
from notyet.homes import state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LEDGER = "ledger.db"


def default_path(environ: Mapping[str, str]) -> str:
    """Return `$NOTYET_LEDGER`, or the file in the XDG state folder."""
    if environ.get("NOTYET_LEDGER"):
        return system.path.abspath(system.path.expanduser(environ["NOTYET_LEDGER"]))
    state = state_home(environ)  # empty where there is no home, which opening the file will say
    return system.path.join(state, "notyet", LEDGER) if state else ""


def real(folder: str) -> str:
    """Return a folder by its own name, which is the same whichever link led there."""
    if not system.path.isabs(folder):  # relative to what, only its host knows
        return folder
    try:
        return system.path.realpath(folder)
    except (OSError, ValueError):  # a name that no file can have
        return folder
