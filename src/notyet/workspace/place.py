"""What a repository says about itself, found without git: it must be the one that git will find."""

from __future__ import annotations

import os

from notyet.workspace.git import Command, Output, run
from notyet.workspace.repository import upwards
from notyet.workspace.unknown import FILTERED, REFUSED, TOO_MUCH, Unknown, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FILTERS = r"^filter\..*\.(clean|process)$"
# What of the settings matters: filters, and the file that names what the user wants ignored.
_SETTINGS = FILTERS.replace("^", "^(").replace("$", r"|core\.excludesfile)$")
_READ = ("config", "--show-scope", "--includes", "--type=path", "-z", "--get-regexp", _SETTINGS)
_EXCLUDES = b"core.excludesfile"
_OF_THE_REPOSITORY = frozenset({b"local", b"worktree"})
_NOTHING_FOUND = 1  # how `git config` exits when no name fits
_MOST_CONFIG = 1024 * 1024
# In a config, these can be written in no other way. Then git is asked what it means.
_TELLING = (b"filter", b"include", b"worktree")
_TELLING_EXCLUDES = (b"excludesfile", b"include")
_OF_ALL_USERS = "/etc/gitconfig"


class Place:
    """A repository: its top folder, and what it says about how to look at its files."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.top = root  # where its files are; elsewhere than what git keeps, if it says so
        self.unknown = ""  # why it cannot be looked at
        kept, common = _kept_in(root)
        folders = [*dict.fromkeys((common, kept))]
        config = _read_all(folders, ("config", "config.worktree"))
        self.said = config + _read_all(folders, ("info/exclude", "info/attributes"))
        is_plain = not _tells(config, _TELLING)
        self.is_plain = is_plain and os.pathsep not in os.path.dirname(root)
        users, ignore = _of_the_user()
        self.is_clear = self.is_plain and not _tells(config + users, _TELLING_EXCLUDES)
        if self.is_clear:  # else git knows which file it is
            self.excluded(ignore)

    def excluded(self, path: str) -> None:
        """Count what the user wants ignored, in a file outside of the repository."""
        self.said += _read_all((self.top,), (path,)) if path else b""


def _of_the_user() -> tuple[bytes, str]:
    """Return the user's settings, and the file that names what is ignored if they name none."""
    home = os.environ.get("HOME", "")
    folder = os.environ.get("XDG_CONFIG_HOME", "") or (home and f"{home}/.config")
    files = [_OF_ALL_USERS]
    files += [f"{home}/.gitconfig"] if home else []
    files += [f"{folder}/git/config"] if folder else []
    return b"".join(map(_read, files)), f"{folder}/git/ignore" if folder else ""


def _tells(config: bytes, words: Sequence[bytes]) -> bool:
    config = config.lower()
    return any(word in config for word in words)


def refuse_what_hides(folder: str) -> None:
    """Raise Unknown where git could find another repository on its way up than we do.

    Any folder that looks like what git keeps is one for it.
    """
    for place in upwards(os.path.realpath(folder)):
        if os.path.lexists(os.path.join(place, ".git")):
            return
        if all(os.path.exists(os.path.join(place, name)) for name in ("HEAD", "objects", "refs")):
            raise Unknown


def look_closer(places: list[Place], ends: float) -> None:
    """Find out what git takes the settings to mean, and where the files of the places are.

    Filters that the user set up may run; those that the repository names make it unknown.
    """
    asked = []
    for place in places:
        told, top = Output(_MOST_CONFIG), Output(_MOST_CONFIG)
        commands = [Command(place.root, _READ, told.take, place.root)]
        if not place.is_plain:
            find = ("rev-parse", "--show-toplevel")
            commands.append(Command(place.root, find, top.take, place.root))
        asked.append((place, commands, told, top))
    run((command for _, commands, _, _ in asked for command in commands), ends)
    for place, commands, told, top in asked:
        place.unknown = next((c.reason for c in commands if c.code is None), "")
        if commands[0].code not in {0, _NOTHING_FOUND} or any(c.code for c in commands[1:]):
            place.unknown = place.unknown or REFUSED
        elif not place.unknown:
            if not place.is_plain:
                place.top = os.fsdecode(bytes(top).removesuffix(b"\n"))
            _heed(place, bytes(told).split(b"\0"))


def _heed(place: Place, told: list[bytes]) -> None:
    excludes = _of_the_user()[1]
    for scope, setting in zip(told[::2], told[1::2], strict=False):
        name, _, value = setting.partition(b"\n")
        if name == _EXCLUDES:
            excludes = os.fsdecode(value)  # the last one counts
        elif scope in _OF_THE_REPOSITORY:
            place.unknown = FILTERED
    try:
        place.excluded(excludes)
    except (OSError, ValueError, Unknown) as error:
        place.unknown = reason_of(error)


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
        raise Unknown(TOO_MUCH)
    return content


def _patiently(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe does not make us wait
