"""Digests of files that git has not hashed, with limits on what is read."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.git.fingerprint import blake2b  # type: ignore[attr-defined]  # not of ours
from notyet.git.run import SLOW, TOO_MUCH, UNREADABLE, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Beyond these two, a file's size and times replace its content.
MOST_BYTES = 64 * 1024 * 1024
MOST_FILES = 50_000
MOST_ENTRIES = 20_000  # of each nested repository
_CHUNK = 1024 * 1024
_OPEN = light.O_RDONLY | light.O_CLOEXEC | light.O_NONBLOCK | light.O_NOFOLLOW
# S_IFMT and its values, without importing `stat`.
_KIND, _REGULAR, _LINK, _FOLDER = 0o170000, 0o100000, 0o120000, 0o040000
_IS_EXECUTABLE = 0o100


class FileReader:
    """Digests of files and folders; each is read once for all scans."""

    def __init__(self, ends: float) -> None:
        self._ends = ends
        self._known: dict[bytes, bytes] = {}
        self._bytes = self._files = 0  # left to read
        self.newest = 0.0  # when one of these files changed last; programs cannot set a ctime

    def begin_scan(self) -> None:
        """Start with new limits, so that scans do not affect each other."""
        self._bytes, self._files = MOST_BYTES, MOST_FILES

    def content(self, top: bytes, name: bytes, *, is_listed: bool) -> bytes:
        """Return the mode and digest of a file, or its size and times if it is too big.

        For a folder whose files git does not list, return the digest of all files in it: that is a
        nested repository, or a folder that the index has as one (`is_listed` is False).
        """
        self._check_time()
        path = _join(top, name.rstrip(b"/"))
        try:
            info = light.lstat(path)
        except OSError as error:  # a missing file is a state too
            self._note_removal(path)
            return type(error).__name__.encode()
        self.newest = max(self.newest, info.st_ctime)
        try:
            kind = info.st_mode & _KIND
            if kind == _REGULAR:
                return self._of_file(path, info)
            if kind == _LINK:
                return b"link " + light.readlink(path)
            if kind != _FOLDER:
                return b"odd " + _metadata(info)
            if not is_listed or _is_there(path + b"/.git"):
                return self._of_folder(path)
        except OSError as error:  # unreadable, or gone meanwhile
            return type(error).__name__.encode() + b" " + _metadata(info)
        return b"folder"

    def _note_removal(self, path: bytes) -> None:
        """Note when the folder of a missing file changed, or the nearest folder that is there."""
        while path := path.rpartition(b"/")[0]:
            try:
                self.newest = max(self.newest, light.lstat(path).st_ctime)
            except OSError:
                continue
            return

    def present(self, top: bytes, names: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the names that exist; a sparse checkout lacks whole folders."""
        last, is_there = b"", True
        for name in names:
            folder = name.rpartition(b"/")[0]
            if folder != last:
                self._check_time()
                last, is_there = folder, _is_there(_join(top, folder) + b"/.")
            if is_there and _is_there(_join(top, name)):
                yield name

    def _check_time(self) -> None:
        if monotonic() >= self._ends:
            raise Unknown(SLOW)

    def _of_file(self, path: bytes, info: light.stat_result) -> bytes:
        self._files -= 1
        if self._files < 0 or info.st_size > self._bytes:
            return b"big " + _metadata(info)
        self._bytes -= info.st_size
        if path in self._known:
            return self._known[path]
        seen = blake2b(digest_size=16)
        fd = light.open(path, _OPEN)
        try:
            while chunk := light.read(fd, min(info.st_size + 1, _CHUNK)):
                seen.update(chunk)
                self._check_time()
        finally:
            light.close(fd)
        mode = b"x " if info.st_mode & _IS_EXECUTABLE else b"- "
        self._known[path] = mode + seen.digest()
        return self._known[path]

    def _of_folder(self, top: bytes) -> bytes:
        """Return the digest of all that is in a folder. Raises Unknown if a part is unreadable."""
        if top not in self._known:
            seen = blake2b(digest_size=16)
            left = MOST_ENTRIES
            try:
                for line in self._walk(top):
                    left -= 1
                    if left < 0:
                        raise Unknown(TOO_MUCH)
                    seen.update(b"%d " % len(line) + line)
            except OSError as error:
                raise Unknown(UNREADABLE) from error
            self._known[top] = b"all of " + seen.digest()
        return self._known[top]

    def _walk(self, top: bytes) -> Iterator[bytes]:
        """Yield name, size and times of all files below a folder, except in `.git`."""
        folders = [top]
        while folders:
            folder = folders.pop()
            self._check_time()
            with light.scandir(folder) as entries:
                inside = sorted(entries, key=lambda entry: entry.name)
            for entry in inside:
                if entry.name == b".git":
                    continue
                name = entry.path[len(top) :]
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                    yield name
                else:
                    info = entry.stat(follow_symlinks=False)
                    self.newest = max(self.newest, info.st_ctime)
                    yield name + b"\0" + _metadata(info)


def _join(top: bytes, name: bytes) -> bytes:
    return top.rstrip(b"/") + b"/" + name


def _metadata(info: light.stat_result) -> bytes:
    """Return mode, size and times of a file that is not read; programs cannot set its ctime."""
    return b"%o %d %d %d" % (info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _is_there(path: bytes) -> bool:
    """Return True if a path exists; a broken link does."""
    try:
        light.lstat(path)
    except (OSError, ValueError):
        return False
    return True
