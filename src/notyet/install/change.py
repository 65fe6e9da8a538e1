"""`Change`: a file as it is and as it shall be, shown, and then written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from difflib import unified_diff
from fcntl import LOCK_EX, flock

from notyet.core.record import Record
from notyet.errors import NotyetError
from notyet.install.backup import keep, leave_folder, note_folder
from notyet.install.replacing import losses, replace_file
from notyet.ledger.place import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Stale(NotyetError):  # noqa: N818  # named after what happened
    """Somebody else changed the file after it was read; nothing was written."""


class Change(Record, kw_only=True):
    """What a file holds and shall hold; None: there is, or shall be, none."""

    path: str
    before: bytes | None
    after: bytes | None
    is_first: bool = False  # the file has no entries of ours yet
    note: str = ""  # what a person should know of it

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after

    def diff(self) -> list[str]:
        """Return the difference, line by line, as people know it."""
        old, new = (_lines(content) for content in (self.before, self.after))
        was = "/dev/null" if self.before is None else self.path
        will_be = "/dev/null" if self.after is None else self.path
        return list(unified_diff(old, new, was, will_be, lineterm=""))

    def notes(self) -> list[str]:
        """Return what a person should know of it, whatever stands in the file."""
        said = [self.note] if self.note else []
        return said if self.after is None else [*said, *losses(os.path.realpath(self.path))]

    def write(self, state: str) -> str:
        """Put it into force; return where the old content is kept. Raises OSError and Stale."""
        real = os.path.realpath(self.path)  # a symbolic link stays one
        with _alone(state):
            if _content(real) != self.before:
                raise Stale(f"{self.path} was changed by somebody else just now")
            backup = keep(state, self.path, self.before, "first" if self.is_first else "later")
            if self.after is None:
                os.unlink(real)
                leave_folder(state, self.path)
            else:
                folder = os.path.dirname(real)
                is_new = not os.path.isdir(folder)
                replace_file(real, self.after)
                if is_new:
                    note_folder(state, folder)
        return backup


def text_of(content: bytes | None) -> str:
    """Return a content as text, whatever bytes it holds; empty for no file."""
    return (content or b"").decode("utf-8", "surrogateescape")


def _lines(content: bytes | None) -> list[str]:
    lines = text_of(content).split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\\ (no line end)"]


@contextmanager
def _alone(state: str) -> Iterator[None]:
    """Wait until no other notyet changes settings."""
    path = os.path.join(state, "install.lock")
    make_private(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        flock(descriptor, LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _content(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
