"""The index, read from the file that git keeps it in: one process less than asking git.

Only the usual form is read: versions 2 and 3, whole, with hashes of 20 bytes. For any other one
git is asked (see `listing`). What counts of an entry is its mode, hash, flags and name; what git
remembers beside them of a file's times and numbers changes without the file.
"""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.git.place import read_kept
from notyet.git.run import LINKED, SLOW, TOO_MUCH, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["MOST_HIDDEN", "Entries", "blake2b", "read_index"]

try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b


MOST_HIDDEN = 200_000  # entries of the index that git was told to overlook
_MOST_READ = 256 * 1024 * 1024  # bytes; beyond, git is asked, who need not keep them here
_AT_ONCE = 512  # entries: few enough that their room is used again
_HEAD, _VERSIONS = b"DIRC\0\0\0", b"\2\3"
_HEAD_SIZE, _HASH_SIZE = 12, 20
# Where in an entry: the mode, the hash, the flags with the length of the name, and this.
_MODE, _HASH, _FLAGS, _LENGTH, _NAME = 24, 40, 60, 61, 62
_KIND, _RIGHTS = 26, 27  # the bytes of a mode that tell
_REGULAR, _LINK, _FOLDER = 0x81, 0xA0, 0x40
_USUAL_RIGHTS = 0xA4  # git gives them to regular files only
# Of the flags:
_VALID, _EXTENDED, _STAGE, _LONGEST = 0x8000, 0x4000, 0x3000, 0x0FFF
_SKIPPED = 0x40  # in the upper byte of what follows the extended ones
# How much room an entry takes whose name is that short: at least one zero byte follows.
_ROOM = tuple((_NAME + length + 8) & -8 for length in range(256))


class Entries:
    """What stands for the entries of an index, and those of them that git does not look at."""

    def __init__(self, folders: Mapping[str, bytes]) -> None:
        self.hidden: list[bytes] = []
        self.odd: list[bytes] = []  # those with another mode than usual, or with flags
        self.unmet = {**folders}  # in which no entry was met yet
        self.is_filled = False
        self._seen = blake2b(digest_size=16)

    def digest(self) -> bytes:
        """Return what stands for all entries."""
        odd = b"".join([b"%d " % len(entry) + entry for entry in self.odd])
        return self._seen.digest() + blake2b(odd, digest_size=16).digest()

    def take(self, entries: Iterable[bytes]) -> None:
        """Count usual entries in."""
        self.is_filled = True
        self._seen.update(b"".join(entries))

    def meet(self, names: Sequence[bytes], start: int = 0) -> None:
        """Find out in which of the folders names lie; they begin at `start`."""
        for folder, name in [*self.unmet.items()]:
            if any(entry.startswith(name + b"/", start) for entry in names):
                del self.unmet[folder]


class _OddError(Exception):
    """An index of another form."""


def read_index(path: str, folders: Mapping[str, bytes], ends: float) -> Entries | None:
    """Read the index; None where it has not the form that is known here. Raises Unknown.

    Of the folders it finds out whether it has an entry in them.
    """
    try:
        data = read_kept(path, _MOST_READ)
    except (OSError, Unknown):  # it cannot be read, or not at once
        return None
    try:
        return _Reader(data, folders).read(ends)
    except (IndexError, ValueError, _OddError):  # it ends too soon
        return None


class _Reader:
    def __init__(self, data: bytes, folders: Mapping[str, bytes]) -> None:
        self._data = data
        self._entries = Entries(folders)

    def read(self, ends: float) -> Entries:
        data = self._data
        if not data:  # nothing was ever added
            return self._entries
        if data[:7] != _HEAD or data[7] not in _VERSIONS:
            raise _OddError
        left = int.from_bytes(data[8:_HEAD_SIZE], "big")
        at = _HEAD_SIZE
        while left > 0:
            at = self._read_some(at, min(left, _AT_ONCE))
            left -= _AT_ONCE
            if monotonic() >= ends:
                raise Unknown(SLOW)
        self._expect_known_rest(at)
        return self._entries

    def _read_some(self, at: int, count: int) -> int:
        """Take some entries; return where the next one begins."""
        data, room = self._data, _ROOM
        usual: list[bytes] = []
        add = usual.append
        for _ in range(count):  # of which there are many: it must be short
            if data[at + _FLAGS] or data[at + _RIGHTS] != _USUAL_RIGHTS:
                at = self._take_odd(at)
                continue
            end = at + room[data[at + _LENGTH]]
            add(data[at + _HASH : end])
            at = end
        self._entries.take(usual)
        if self._entries.unmet:
            self._entries.meet(usual, _NAME - _HASH)
        return at

    def _take_odd(self, at: int) -> int:
        """Take an entry that is no plain file, has a long name, or is overlooked."""
        data, mode = self._data, self._data[at + _KIND]
        flags = data[at + _FLAGS] << 8 | data[at + _LENGTH]
        start, is_skipped = at + _NAME, False
        if flags & _EXTENDED:
            is_skipped = bool(data[start] & _SKIPPED)
            start += 2
        if mode == _FOLDER:  # which stands for all that is in it
            raise _OddError
        length = flags & _LONGEST
        if length == _LONGEST:  # or more
            length = data.index(b"\0", start) - start
        stop = start + length
        name = data[start:stop]
        self._entries.odd.append(data[at + _MODE : at + _MODE + 4] + data[at + _HASH : stop])
        is_file = mode in (_REGULAR, _LINK)
        # Conflicts the status tells, unless it was told to overlook them.
        if flags & _VALID or not is_file or (is_skipped and not flags & _STAGE):
            self._entries.hidden.append(name)
            if len(self._entries.hidden) > MOST_HIDDEN:
                raise Unknown(TOO_MUCH)
        self._entries.meet((name,))
        return stop - (stop - at) % 8 + 8

    def _expect_known_rest(self, at: int) -> None:
        """Raise if there is more than hints: another file, or what changes what entries mean."""
        data, end = self._data, len(self._data) - _HASH_SIZE
        while at < end:
            if not data[at : at + 1].isupper():
                raise _OddError
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
        if at != end:
            raise _OddError


LIST = ("ls-files", "--full-name", "-v", "--stage", "-z")
_MOST_LISTED = 512 * 1024 * 1024  # bytes; they are not kept
_PLAIN = frozenset({b"H 100644 ", b"H 100755 ", b"H 120000 "})
_CONFLICT, _OTHER = b"M ", b"160000 "  # the status tells what conflicts, but of no other repository
_WILD = "*?[\\"
_KIND_LISTING, _LINK_LISTING = 0o170000, 0o120000  # in a mode


class Listing(Entries):
    """The entries that git lists, digested as they come; those git does not look at are kept."""

    def __init__(self, folders: Mapping[str, bytes]) -> None:
        super().__init__(folders)
        self._left = _MOST_LISTED
        self._rest = b""

    def take_chunk(self, chunk: bytes) -> None:
        """Read one piece."""
        self._left -= len(chunk)
        self.take((chunk,))
        text = self._rest + chunk
        *entries, self._rest = text.split(b"\0")
        for folder, name in [*self.unmet.items()]:
            if b"\t%b/" % name in text:
                del self.unmet[folder]
        plain = _PLAIN
        odd = [entry for entry in entries if entry[:9] not in plain]
        self.hidden += [
            entry.partition(b"\t")[2]
            for entry in odd
            if entry[:2] != _CONFLICT or entry[2:9] == _OTHER
        ]
        if self._left < 0 or len(self.hidden) > MOST_HIDDEN:
            raise Unknown(TOO_MUCH)


def led_into(folder: str, paths: Sequence[str], top: str) -> Iterator[bytes]:
    """Yield the other repositories that a path leads into by name; globs do not get there."""
    for place in _named(folder, paths, top):
        if _is_link(place):  # what it leads to is named by no glob
            raise Unknown(LINKED)
        if light.lexists(light.join(place, ".git")):
            yield light.fsencode(_inside(place, top))


def exact(folder: str, paths: Sequence[str], top: str) -> list[str]:
    """Return globs for what paths lead through by name, but for all that is in folders of the name.

    The index may hold another repository there: then git lists nothing of what is in it.
    """
    return [*dict.fromkeys(_exact(_inside(place, top)) for place in _named(folder, paths, top))]


def _exact(name: str) -> str:
    """Return a glob for one name; without any sign of a glob git takes it for a folder, too."""
    plain = "".join(f"\\{sign}" if sign in _WILD else sign for sign in name[:-1])
    return f":(top,glob){plain}\\{name[-1]}"


def _named(folder: str, paths: Sequence[str], top: str) -> Iterator[str]:
    """Yield what paths lead to and through by name."""
    for path in paths:
        wild = min((path.find(mark) for mark in _WILD if mark in path), default=len(path))
        named = path if wild == len(path) else path[:wild].rpartition("/")[0]
        place = light.normpath(light.join(folder, named))
        while _inside(place, top):
            yield place
            place = light.dirname(place)


def _inside(place: str, top: str) -> str:
    """Return the name of a place from the top on; empty if it lies elsewhere."""
    above = f"{top.rstrip('/')}/"
    return place[len(above) :] if place.startswith(above) else ""


def _is_link(path: str) -> bool:
    try:
        return light.lstat(path).st_mode & _KIND_LISTING == _LINK_LISTING
    except OSError:  # it is not there
        return False
