"""What files contain, as far as git has not hashed them for us: in short, and with bounds."""

from __future__ import annotations

import os
import stat
from time import monotonic

from notyet.workspace.unknown import SLOW, TOO_MUCH, UNREADABLE, Unknown

TYPE_CHECKING = False
try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Contents", "Reading", "blake2b"]

MOST_BYTES = 64 * 1024 * 1024  # of content read; beyond, size and time stand for it
MOST_FILES = 50_000  # that are read; beyond, size and time stand for them
MOST_ENTRIES = 20_000  # of the repositories inside this one
_CHUNK = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class Contents:
    """What stands for the content of files; each is read once for all who look."""

    def __init__(self, ends: float) -> None:
        self._ends = ends
        self._known: dict[bytes, bytes] = {}

    def expect_time(self) -> None:
        """Raise Unknown when there is no time left."""
        if monotonic() >= self._ends:
            raise Unknown(SLOW)

    def of_file(self, path: bytes, info: os.stat_result) -> bytes:
        """Return what stands for a plain file, read whole."""
        if path not in self._known:
            self._known[path] = self._read(path, info)
        return self._known[path]

    def of_repository(self, path: bytes) -> bytes:
        """Return what stands for all that is in another repository; raises Unknown for a part."""
        if path not in self._known:
            try:
                self._known[path] = b"repository " + self._walked(path)
            except OSError as error:
                raise Unknown(UNREADABLE) from error
        return self._known[path]

    def _read(self, path: bytes, info: os.stat_result) -> bytes:
        mode = b"x " if info.st_mode & stat.S_IXUSR else b"- "
        fd = os.open(path, _OPEN)
        try:
            seen = blake2b(digest_size=16)
            while chunk := os.read(fd, _CHUNK):
                seen.update(chunk)
                self.expect_time()
        finally:
            os.close(fd)
        return mode + seen.digest()

    def _walked(self, top: bytes) -> bytes:
        seen = blake2b(digest_size=16)
        left = MOST_ENTRIES
        for line in self._walk(top):
            left -= 1
            if left < 0:
                raise Unknown(TOO_MUCH)
            seen.update(b"%d " % len(line) + line)
        return seen.digest()

    def _walk(self, top: bytes) -> Iterator[bytes]:
        """Yield name, size and time of all that is below a folder, but for what git keeps."""
        folders = [top]
        while folders:
            folder = folders.pop()
            self.expect_time()
            with os.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
            for entry in inside:
                if entry.name == b".git":
                    continue
                name = entry.path[len(top) :]
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    yield name
                else:
                    yield name + b"\0" + outside(entry.stat(follow_symlinks=False))


class Reading:
    """One look's reading, with its own bounds: what it finds does not depend on other looks."""

    def __init__(self, contents: Contents, top: bytes) -> None:
        self._contents = contents
        self._top = top
        self._bytes = MOST_BYTES
        self._files = MOST_FILES

    def content(self, name: bytes) -> bytes:
        """Return what stands for a file: its mode and content, or its size and time if too big."""
        self._contents.expect_time()
        path = os.path.join(self._top, name.rstrip(b"/"))
        try:
            info = os.lstat(path)
        except OSError as error:  # gone: that too is a state
            return type(error).__name__.encode()
        try:
            if stat.S_ISREG(info.st_mode):
                return self._plain(path, info)
            if stat.S_ISLNK(info.st_mode):
                return b"link " + os.readlink(path)
            if not stat.S_ISDIR(info.st_mode):
                return b"odd " + outside(info)
            # A submodule, or a repository inside this one; else its files are listed.
            if os.path.lexists(os.path.join(path, b".git")):
                return self._contents.of_repository(path)
        except OSError as error:  # not ours to read, or gone by now
            return type(error).__name__.encode() + b" " + outside(info)
        return b"folder"

    def present(self, names: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the names that are there; of a sparse checkout, whole folders are not."""
        last, is_there = b"", True
        for name in names:
            folder = os.path.dirname(name)
            if folder != last:
                self._contents.expect_time()
                last, is_there = folder, os.path.isdir(os.path.join(self._top, folder))
            if is_there and os.path.lexists(os.path.join(self._top, name)):
                yield name

    def _plain(self, path: bytes, info: os.stat_result) -> bytes:
        self._files -= 1
        if self._files < 0 or info.st_size > self._bytes:
            return b"big " + outside(info)
        self._bytes -= info.st_size
        return self._contents.of_file(path, info)


def outside(info: os.stat_result) -> bytes:
    """Return what can be told of a file that is not read; its last time is nobody's to set."""
    return b"%o %d %d %d" % (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
