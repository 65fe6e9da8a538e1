"""Which repository a folder is in, and what its settings mean for a look at its files."""

from __future__ import annotations

from notyet import light
from notyet.git.run import FILTERED, REFUSED, TOO_MUCH, Command, Output, Unknown, reason_of
from notyet.light import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def repository_of(folder: str) -> str:
    """Return the top folder of the repository that a folder is in; empty if it is in none."""
    return top_of(real_folder(folder))


def top_of(real: str) -> str:
    """Do the same for a folder that lies where its name says, which may be none at all."""
    for place in upwards(real) if real else ():
        if light.lexists(light.join(place, ".git")):
            return place
    return ""


def upwards(folder: str) -> Iterator[str]:
    """Yield a folder, and all that it lies in."""
    yield folder
    while folder != light.dirname(folder):
        folder = light.dirname(folder)
        yield folder


def main_worktree(folder: str) -> str:
    """Return the root of the main work tree if a folder is in a linked one; else empty."""
    root = top_of(folder)
    if not root or light.isdir(light.join(root, ".git")):
        return ""
    try:
        kept, common = _kept_in(root)
    except Unknown:
        return ""
    shared = light.realpath(common)
    is_linked = common != kept  # else it is a submodule, which is a project of its own
    return light.dirname(shared) if is_linked and light.basename(shared) == ".git" else ""


def in_main_worktree(folder: str) -> str:
    """Return the same folder of the main work tree; the folder itself if it is in that one."""
    main = main_worktree(folder)
    return light.normpath(main + folder[len(top_of(folder)) :]) if main else folder


_MOST_CONFIG = 1024 * 1024
_PIECE = 64 * 1024
# In a config, these can be written in no other way. Then git is asked what it means.
_TELLING = (b"filter", b"include", b"worktree")
_TELLING_EXCLUDES = (b"excludesfile", b"include")
_OF_ALL_USERS = "/etc/gitconfig"
_READ = light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK  # a pipe does not make us wait


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
        self.is_plain = is_plain and ":" not in light.dirname(root)
        users, ignore = of_the_user()
        self.is_clear = self.is_plain and not _tells(config + users, _TELLING_EXCLUDES)
        if self.is_clear:  # else git knows which file it is
            self.excluded(ignore)

    def excluded(self, path: str) -> None:
        """Count what the user wants ignored, in a file outside of the repository."""
        self.said += _read_all((self.top,), (path,)) if path else b""


def of_the_user() -> tuple[bytes, str]:
    """Return the user's settings, and the file that names what is ignored if they name none."""
    environ = light.variables()
    home = environ.get("HOME", "")
    folder = environ.get("XDG_CONFIG_HOME", "") or (home and f"{home}/.config")
    files = [_OF_ALL_USERS]
    files += [f"{home}/.gitconfig"] if home else []
    files += [f"{folder}/git/config"] if folder else []
    return b"".join(map(read_kept, files)), f"{folder}/git/ignore" if folder else ""


def _tells(config: bytes, words: Sequence[bytes]) -> bool:
    config = config.lower()
    return any(word in config for word in words)


def refuse_what_hides(folder: str) -> None:
    """Raise Unknown where git could find another repository on its way up than we do.

    Any folder that looks like what git keeps is one for it.
    """
    for place in upwards(folder):
        if light.lexists(light.join(place, ".git")):
            return
        names = (light.join(place, name) for name in ("HEAD", "objects", "refs"))
        if all(map(light.exists, names)):
            raise Unknown


def _kept_in(root: str) -> tuple[str, str]:
    """Return the folders of what git keeps for this work tree, and for all of the repository."""
    kept = light.join(root, ".git")
    if not light.isdir(kept):
        said = read_kept(kept)
        if not said.startswith(b"gitdir: "):
            raise Unknown
        kept = light.join(root, light.fsdecode(said[len(b"gitdir: ") :].rstrip(b"\r\n")))
    common = light.fsdecode(read_kept(light.join(kept, "commondir")).rstrip(b"\r\n"))
    return kept, light.join(kept, common) if common else kept


def _read_all(folders: Sequence[str], names: Sequence[str]) -> bytes:
    files = (light.join(folder, name) for folder in folders for name in names)
    return b"".join(b"%d " % len(content) + content for content in map(read_kept, files))


def read_kept(path: str, most: int = _MOST_CONFIG) -> bytes:
    """Return what is in a file of git's own; nothing if it is not there."""
    try:
        fd = light.open(path, _READ)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    try:
        pieces, left = [], most
        size = light.fstat(fd).st_size
        if size > most:
            raise Unknown(TOO_MUCH)
        while piece := light.read(fd, max(_PIECE, size + 1)):
            left -= len(piece)
            if left < 0:
                raise Unknown(TOO_MUCH)
            pieces.append(piece)
    finally:
        light.close(fd)
    return b"".join(pieces)


FILTERS = r"^filter\..*\.(clean|process)$"
# What of the settings matters: filters, and the file that names what the user wants ignored.
_SETTINGS = FILTERS.replace("^", "^(").replace("$", r"|core\.excludesfile)$")
_READ_SETTINGS = (
    "config",
    "--show-scope",
    "--includes",
    "--type=path",
    "-z",
    "--get-regexp",
    _SETTINGS,
)
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
        self.commands = [Command(place.root, _READ_SETTINGS, self._told.take, place.root)]
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
                place.top = light.fsdecode(bytes(self._top).removesuffix(b"\n"))
            self._read(bytes(self._told).split(b"\0"))

    def _read(self, told: list[bytes]) -> None:
        excludes = of_the_user()[1]
        for scope, setting in zip(told[::2], told[1::2], strict=False):
            name, _, value = setting.partition(b"\n")
            if name == _EXCLUDES:
                excludes = light.fsdecode(value)  # the last one counts
            elif scope in _OF_THE_REPOSITORY:
                self._place.unknown = FILTERED
        try:
            self._place.excluded(excludes)
        except (OSError, ValueError, Unknown) as error:
            self._place.unknown = reason_of(error)
