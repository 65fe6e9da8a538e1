"""Which repository a folder is in, found without git, and with next to no import."""

from __future__ import annotations

from notyet import system
from notyet.paths import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def repository_of(folder: str) -> str:
    """Return the top folder of the repository that a folder is in; empty if it is in none."""
    return top_of(real_folder(folder))


def top_of(real: str) -> str:
    """Do the same for a folder that lies where its name says, which may be none at all."""
    for place in upwards(real) if real else ():
        if system.path.lexists(system.path.join(place, ".git")):
            return place
    return ""


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder, and all that it lies in."""
    yield folder
    while folder != system.path.dirname(folder):
        folder = system.path.dirname(folder)
        yield folder
