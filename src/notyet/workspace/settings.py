"""What git takes the settings of a repository to mean, where more than one file may say it."""

from __future__ import annotations

from notyet import system
from notyet.workspace.git import Command, Output
from notyet.workspace.place import of_the_user
from notyet.workspace.unknown import FILTERED, REFUSED, Unknown, reason_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.workspace.place import Place

FILTERS = r"^filter\..*\.(clean|process)$"
# What of the settings matters: filters, and the file that names what the user wants ignored.
_SETTINGS = FILTERS.replace("^", "^(").replace("$", r"|core\.excludesfile)$")
_READ = ("config", "--show-scope", "--includes", "--type=path", "-z", "--get-regexp", _SETTINGS)
_FIND = ("rev-parse", "--show-toplevel")
_EXCLUDES = b"core.excludesfile"
_OF_THE_REPOSITORY = frozenset({b"local", b"worktree"})
_NOTHING_FOUND = 1  # how `git config` exits when no name fits
_MOST_PRINTED = 1024 * 1024


class Settings:
    """What git is asked about a place, and what that means for a look at its files.

    Filters that the user set up may run; those that the repository names make it unknown.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._told, self._top = Output(_MOST_PRINTED), Output(_MOST_PRINTED)
        self.commands = [Command(place.root, _READ, self._told.take, place.root)]
        if not place.is_plain:
            self.commands.append(Command(place.root, _FIND, self._top.take, place.root))

    def heed(self) -> None:
        """Write into the place what git has told of it."""
        place, (read, *found) = self._place, self.commands
        place.unknown = next((c.reason for c in self.commands if c.code is None), "")
        if read.code not in {0, _NOTHING_FOUND} or any(command.code for command in found):
            place.unknown = place.unknown or REFUSED
        elif not place.unknown:
            if found:
                place.top = system.fsdecode(bytes(self._top).removesuffix(b"\n"))
            self._read(bytes(self._told).split(b"\0"))

    def _read(self, told: list[bytes]) -> None:
        excludes = of_the_user()[1]
        for scope, setting in zip(told[::2], told[1::2], strict=False):
            name, _, value = setting.partition(b"\n")
            if name == _EXCLUDES:
                excludes = system.fsdecode(value)  # the last one counts
            elif scope in _OF_THE_REPOSITORY:
                self._place.unknown = FILTERED
        try:
            self._place.excluded(excludes)
        except (OSError, ValueError, Unknown) as error:
            self._place.unknown = reason_of(error)
