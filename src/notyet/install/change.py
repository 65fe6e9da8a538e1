"""`Change`: a file as it is and as it shall be, shown, and then written whole or not at all."""

from __future__ import annotations

import os
from contextlib import contextmanager
from difflib import unified_diff
from fcntl import LOCK_EX, flock

from notyet.core.record import Record
from notyet.errors import NotyetError
from notyet.install.backup import keep, leave_folder, note_folder
from notyet.install.replacing import losses, make_folder, replace_file
from notyet.ledger.file import make_private

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
    note: str = ""  # what a person should know of it when it is done
    trust: Change | None = None  # what has to be written before, of another file

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
        """Return what a person should know before it is done, whatever stands in the file."""
        return [] if self.after is None else list(losses(os.path.realpath(self.path)))

    def write(self, state: str) -> str:
        """Put it into force; return where the old content is kept. Raises OSError and Stale.

        What is trusted is written first: then whoever is killed in between can do this again,
        for the file still says what is to be done. Where one cannot be written, none is.
        """
        with _alone(state):
            for one in filter(None, (self, self.trust)):
                if _content(os.path.realpath(one.path)) != one.before:
                    raise Stale(f"{one.path} was changed by somebody else just now")
            if self.trust is None:
                return self._put(state)
            self.trust._put(state)  # noqa: SLF001  # of the same class
            try:
                return self._put(state)
            except BaseException:
                back = Change(path=self.trust.path, before=None, after=self.trust.before)
                back._put(state)  # of the same class
                raise

    def _put(self, state: str) -> str:
        """Keep the old content, and write the new one."""
        real = os.path.realpath(self.path)  # a symbolic link stays one
        backup = keep(state, self.path, _content(real), "first" if self.is_first else "later")
        if self.after is None:
            os.unlink(real)
            leave_folder(state, self.path)
            return backup
        folder = os.path.dirname(real)
        if not os.path.isdir(folder):
            make_folder(real)
            note_folder(state, folder)  # before there is a file, in case we are killed
        replace_file(real, self.after)
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
