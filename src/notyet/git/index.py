"""The index of a repository as `git ls-files` prints it: its digest, and hidden entries."""

from __future__ import annotations

from notyet import light
from notyet.git.run import LINKED, TOO_MUCH, Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b

__all__ = ["LIST", "Listing", "blake2b", "exact_globs", "nested_repositories"]

MOST_HIDDEN = 200_000  # entries that `git status` skips (skip-worktree, assume-unchanged)
LIST = ("ls-files", "--full-name", "-v", "--stage", "-z")
_MOST_LISTED = 512 * 1024 * 1024  # bytes; they are digested, not stored
_PLAIN = frozenset({b"H 100644 ", b"H 100755 ", b"H 120000 "})
_CONFLICT, _OTHER = b"M ", b"160000 "  # the status shows conflicts, but not inside submodules
_WILD = "*?[\\"
_KIND, _LINK = 0o170000, 0o120000  # S_IFMT and S_IFLNK


class Listing:
    """The entries that git prints, digested as they come; `hidden` are those that it skips."""

    def __init__(self, folders: Mapping[str, bytes]) -> None:
        self.hidden: list[bytes] = []
        self.unseen = {**folders}  # no entry of these was seen yet
        self.is_filled = False
        self._seen = blake2b(digest_size=16)
        self._left = _MOST_LISTED
        self._rest = b""

    def digest(self) -> bytes:
        """Return the digest of all entries."""
        return self._seen.digest()

    def take_chunk(self, chunk: bytes) -> None:
        """Parse the next bytes. Raises Unknown if there are too many."""
        self._left -= len(chunk)
        self.is_filled = True
        self._seen.update(chunk)
        text = self._rest + chunk
        *entries, self._rest = text.split(b"\0")
        for folder, name in [*self.unseen.items()]:
            if b"\t%b/" % name in text:
                del self.unseen[folder]
        plain = _PLAIN
        odd = [entry for entry in entries if entry[:9] not in plain]
        self.hidden += [
            entry.partition(b"\t")[2]
            for entry in odd
            if entry[:2] != _CONFLICT or entry[2:9] == _OTHER
        ]
        if self._left < 0 or len(self.hidden) > MOST_HIDDEN:
            raise Unknown(TOO_MUCH)


def nested_repositories(folder: str, paths: Sequence[str], top: str) -> Iterator[bytes]:
    """Yield the nested repositories that paths enter by name; git's globs do not match in them.

    Raises Unknown if a path leads through a symbolic link.
    """
    for place in _named(folder, paths, top):
        if _is_link(place):  # git's globs do not match behind it
            raise Unknown(LINKED)
        if light.lexists(light.join(place, ".git")):
            yield light.fsencode(_inside(place, top))


def exact_globs(folder: str, paths: Sequence[str], top: str) -> list[str]:
    """Return globs for the folders that paths lead through by name, without their content.

    The index may have a nested repository there, in which git lists nothing.
    """
    return [
        *dict.fromkeys(_exact_glob(_inside(place, top)) for place in _named(folder, paths, top))
    ]


def _exact_glob(name: str) -> str:
    """Return a glob for one name; a plain name would also match all that is in that folder."""
    plain = "".join(f"\\{sign}" if sign in _WILD else sign for sign in name[:-1])
    return f":(top,glob){plain}\\{name[-1]}"


def _named(folder: str, paths: Sequence[str], top: str) -> Iterator[str]:
    """Yield the places that paths lead to and through before their first wildcard."""
    for path in paths:
        wild = min((path.find(mark) for mark in _WILD if mark in path), default=len(path))
        named = path if wild == len(path) else path[:wild].rpartition("/")[0]
        place = light.normpath(light.join(folder, named))
        while _inside(place, top):
            yield place
            place = light.dirname(place)


def _inside(place: str, top: str) -> str:
    """Return the path of a place relative to the top; empty if it is not below it."""
    above = f"{top.rstrip('/')}/"
    return place[len(above) :] if place.startswith(above) else ""


def _is_link(path: str) -> bool:
    try:
        return light.lstat(path).st_mode & _KIND == _LINK
    except OSError:
        return False
