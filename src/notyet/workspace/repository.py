"""Which repository a folder is in, found without git, and with next to no import."""

from __future__ import annotations

from notyet import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def repository_of(folder: str) -> str:
    """Return the top folder of the repository that a folder is in; empty if it is in none."""
    if not folder:
        return ""
    try:
        for place in upwards(system.path.realpath(folder)):
            if system.path.lexists(system.path.join(place, ".git")):
                return place
    except (OSError, ValueError):
        pass
    return ""


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder, and all that it lies in."""
    yield folder
    while folder != system.path.dirname(folder):
        folder = system.path.dirname(folder)
        yield folder
