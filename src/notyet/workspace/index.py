"""The index, read from the file that git keeps it in: one process less than asking git.

Only the usual form is read: versions 2 and 3, whole, with hashes of 20 bytes. For any other one
git is asked (see `listing`). What counts of an entry is its mode, hash, flags and name; what git
remembers beside them of a file's times and numbers changes without the file.
"""

from __future__ import annotations

from time import monotonic

from notyet.workspace.place import read_kept
from notyet.workspace.unknown import SLOW, TOO_MUCH, Unknown

TYPE_CHECKING = False
try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["MOST_HIDDEN", "Entries", "blake2b", "read_index"]

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
