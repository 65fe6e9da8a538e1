"""What a repository says about itself, found without git: it must be the one that git will find."""

from __future__ import annotations

import os

from notyet.workspace.git import Command, Output, Unknown, run
from notyet.workspace.repository import upwards

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FILTERS = ("--show-scope", "--includes", "-z", "--get-regexp", r"^filter\..*\.(clean|process)$")
_OF_THE_REPOSITORY = frozenset({b"local", b"worktree"})
_NOTHING_FOUND = 1  # how `git config` exits when no name fits
_MOST_CONFIG = 1024 * 1024
# In a config, these can be written in no other way. Then git is asked what it means.
_TELLING = (b"filter", b"include", b"worktree")


class Place:
    """A repository: its top folder, and what it says about how to look at its files."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.top = root  # where its files are; elsewhere than what git keeps, if it says so
        self.ceiling = os.path.dirname(root)
        kept, common = _kept_in(root)
        folders = [*dict.fromkeys((common, kept))]
        config = _read_all(folders, ("config", "config.worktree"))
        self.said = config + _read_all(folders, ("info/exclude", "info/attributes"))
        is_plain = not any(word in config.lower() for word in _TELLING)
        self.is_plain = is_plain and os.pathsep not in self.ceiling


def refuse_what_hides(folder: str) -> None:
    """Raise Unknown where git could find another repository on its way up than we do.

    Any folder that looks like what git keeps is one for it.
    """
    for place in upwards(os.path.realpath(folder)):
        if os.path.lexists(os.path.join(place, ".git")):
            return
        if all(os.path.exists(os.path.join(place, name)) for name in ("HEAD", "objects", "refs")):
            raise Unknown


def look_closer(places: list[Place], ends: float) -> list[Place]:
    """Return those of the places that name no filters, and find out where their files are.

    Filters that the user set up may run; those that the repository names may not.
    """
    asked = []
    for place in places:
        filters, top = Output(_MOST_CONFIG), Output(_MOST_CONFIG)
        config = Command(place.root, ("config", *FILTERS), filters.take, place.ceiling)
        find = Command(place.root, ("rev-parse", "--show-toplevel"), top.take, place.ceiling)
        asked.append((place, config, filters, find, top))
    run((command for _, config, _, find, _ in asked for command in (config, find)), ends)
    fine = []
    for place, config, filters, find, top in asked:
        named = _OF_THE_REPOSITORY.intersection(bytes(filters).split(b"\0")[::2])
        if config.code in {0, _NOTHING_FOUND} and not named and find.code == 0:
            place.top = os.fsdecode(bytes(top).removesuffix(b"\n"))
            fine.append(place)
    return fine


def _kept_in(root: str) -> tuple[str, str]:
    """Return the folders of what git keeps for this work tree, and for all of the repository."""
    kept = os.path.join(root, ".git")
    if not os.path.isdir(kept):
        said = _read(kept)
        if not said.startswith(b"gitdir: "):
            raise Unknown
        kept = os.path.join(root, os.fsdecode(said[len(b"gitdir: ") :].rstrip(b"\r\n")))
    common = os.fsdecode(_read(os.path.join(kept, "commondir")).rstrip(b"\r\n"))
    return kept, os.path.join(kept, common) if common else kept


def _read_all(folders: Sequence[str], names: Sequence[str]) -> bytes:
    files = (os.path.join(folder, name) for folder in folders for name in names)
    return b"".join(b"%d " % len(content) + content for content in map(_read, files))


def _read(path: str) -> bytes:
    """Return what is in a file of git's own; nothing if it is not there."""
    try:
        with open(path, "rb", opener=_patiently) as file:
            content = file.read(_MOST_CONFIG + 1)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    if len(content) > _MOST_CONFIG:
        raise Unknown
    return content


def _patiently(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe does not make us wait
