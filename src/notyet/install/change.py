"""Change a settings file: show the difference, keep a backup, replace the file as a whole.

Backups lie below the state folder, 0600, under the path of the file that they are copies of.
"""

from __future__ import annotations

import os
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import unified_diff
from fcntl import LOCK_EX, flock
from typing import TYPE_CHECKING

from notyet.config.document import Mistake
from notyet.errors import NotyetError
from notyet.install.settings import CannotInstall, Entry, read_settings, settings_text
from notyet.ledger.connection import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from notyet.install.settings import Settings, SettingsFile

_MOST_BACKUPS = 10  # of one file
# Endings of backups: there was no file; a file without entries of ours, which uninstalling needs.
_NONE, _FIRST = ".none", ".first"
_NO_FOLDER = f".new{_NONE}"  # there was not even a folder; holds the topmost one that we made


class Stale(NotyetError):  # noqa: N818  # named after what happened
    """Another program changed the file after we read it; nothing was written."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """The content of a file before and after; None: there is no file."""

    path: str
    before: bytes | None
    after: bytes | None
    is_first: bool = False  # the file has no entries of ours yet
    note: str = ""  # printed when the change is done
    trust: Change | None = None  # a change of another file, which is written first

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.before == self.after

    def diff(self) -> list[str]:
        """Return the unified diff, line by line."""
        old, new = (_lines(content) for content in (self.before, self.after))
        was = "/dev/null" if self.before is None else self.path
        will_be = "/dev/null" if self.after is None else self.path
        return list(unified_diff(old, new, was, will_be, lineterm=""))

    def write(self, state: str) -> str:
        """Write the change; return the path of the backup. Raises OSError and Stale.

        Trust is written first: if we are killed in between, the settings still show what is left
        to do. If the settings cannot be written, trust is set back.
        """
        with _locked(state):
            for one in filter(None, (self, self.trust)):
                if _content(os.path.realpath(one.path)) != one.before:
                    raise Stale(
                        f"{one.path} was changed by another program just now; run the command again"
                    )
            if self.trust is None:
                return _put(self, state)
            _put(self.trust, state)
            try:
                return _put(self, state)
            except OSError:
                back = Change(path=self.trust.path, before=None, after=self.trust.before)
                _put(back, state)
                raise


def to_install(settings: Settings, file: SettingsFile, entries: Sequence[Entry]) -> Change:
    """Return the change that registers us in a file. Raises CannotInstall."""
    text = settings_text(file)
    change = change_of(file.path, text, settings.text_with(text or "", file, entries))
    return replace(change, is_first=settings.text_without(text or "", file) == (text or ""))


def to_uninstall(settings: Settings, file: SettingsFile, state: str) -> Change:
    """Return the change that takes us out of a file. Raises CannotInstall.

    It restores a backup byte for byte if nothing else changed since, that is, if installing into
    the backup gives the file as it is now. Otherwise it removes our entries.
    """
    text = settings_text(file)
    if text is None:
        return change_of(file.path, None, None)
    without = settings.text_without(text, file)
    if without == text:
        return change_of(file.path, text, text)
    entries = _entries(settings, text, file)
    for content in backups(state, file.path) if entries else ():
        try:
            before = (content or b"").decode()
            had_ours = settings.text_without(before, file) != before
            if not had_ours and settings.text_with(before, file, entries) == text:
                return Change(path=file.path, before=text.encode(), after=content)
        except (CannotInstall, UnicodeDecodeError):  # it was not a settings file then
            continue
    return change_of(file.path, text, None if _is_used_up(settings, file, without) else without)


def _is_used_up(settings: Settings, file: SettingsFile, rest: str) -> bool:
    """Return True if only notyet writes such a file, and nothing of others is left in it."""
    if file.form == "plugin":
        return not rest
    folder, name = os.path.split(file.path)
    is_own = name == "notyet.json" or "/plugins/notyet/" in f"{folder}/"
    return is_own and read_settings(rest, file).value in ({}, settings.host.beside)


def change_of(path: str, before: str | None, after: str | None) -> Change:
    """Return a change of texts. Raises CannotInstall for a text that cannot be encoded."""
    try:
        old, new = (text if text is None else text.encode() for text in (before, after))
    except UnicodeEncodeError:
        message = "what would be written is not UTF-8"
        raise CannotInstall(Mistake(file=path, message=message)) from None
    return Change(path=path, before=old, after=new)


def _entries(settings: Settings, text: str, file: SettingsFile) -> list[Entry]:
    """Return our entries as they stand in a text; only those in the form that we write."""
    found: dict[str, Entry] = {}
    for one in settings.registrations(file, read_settings(text, file)):
        timeout = one.given_timeout
        if one.is_hook and one.event in settings.events and type(timeout) is int:
            entry = Entry(event=one.event, command=one.command, timeout=timeout)
            found.setdefault(one.event, entry)
    return [found[event] for event in settings.events if event in found]


def text_of(content: bytes | None) -> str:
    """Return a content as text, whatever bytes it holds; empty for no file."""
    return (content or b"").decode("utf-8", "surrogateescape")


def _put(change: Change, state: str) -> str:
    """Keep a backup, and write the new content."""
    real = os.path.realpath(change.path)  # a symbolic link stays one
    backup = keep_backup(state, change.path, _content(real), is_first=change.is_first)
    if change.after is None:
        os.unlink(real)
        _remove_folders(os.path.dirname(real), os.path.dirname(backup))
        return backup
    with _about(real):
        os.makedirs(os.path.dirname(real), exist_ok=True)
    replace_file(real, change.after)
    return backup


def _remove_folders(folder: str, backup_folder: str) -> None:
    """Remove the folders that we made for a file, and which are empty."""
    made = [name for name in _backup_names(backup_folder) if name.endswith(_NO_FOLDER)]
    if not made:
        return
    with open(os.path.join(backup_folder, made[0]), "rb") as file:
        top = os.fsdecode(file.read()) or folder
    with suppress(OSError):  # others have files there
        os.rmdir(folder)
        while folder.startswith(f"{top}/"):
            folder = os.path.dirname(folder)
            os.rmdir(folder)


def _topmost_missing(folder: str) -> str:
    """Return the topmost folder that must be made for this one."""
    while not os.path.isdir(os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    return folder


def _lines(content: bytes | None) -> list[str]:
    lines = text_of(content).split("\n")
    return lines[:-1] if lines[-1] == "" else [*lines[:-1], f"{lines[-1]}\\ (no line end)"]


@contextmanager
def _locked(state: str) -> Iterator[None]:
    """Hold the lock that every notyet takes while it changes settings."""
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


def keep_backup(state: str, path: str, content: bytes | None, *, is_first: bool = False) -> str:
    """Keep the content of a file, None for no file; return the backup's path. Raises OSError.

    Old backups are deleted, except the newest one without entries of ours.
    """
    folder = _backup_folder(state, path)
    now = time.time_ns()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 10**9)) + f".{now % 10**9:09}"
    ending = _FIRST if is_first else ""
    if content is None:
        parent = os.path.dirname(os.path.realpath(path))
        ending = _NONE if os.path.isdir(parent) else _NO_FOLDER
        content = b"" if ending == _NONE else os.fsencode(_topmost_missing(parent))
    backup = os.path.join(folder, stamp + ending)
    try:
        make_private(backup)
        with open(backup, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if os.path.exists(backup):
            os.unlink(backup)
        raise OSError(error.errno, error.strerror, backup) from error
    names = _backup_names(folder)
    first = next((name for name in names if name.endswith((_NONE, _FIRST))), "")
    for name in names[_MOST_BACKUPS:]:
        if name != first:
            os.unlink(os.path.join(folder, name))
    return backup


def backups(state: str, path: str) -> list[bytes | None]:
    """Return the backups of a file, newest first; None where there was no file."""
    folder = _backup_folder(state, path)
    found: list[bytes | None] = []
    for name in _backup_names(folder):
        if name.endswith(_NONE):
            found.append(None)
            continue
        with suppress(OSError), open(os.path.join(folder, name), "rb") as file:
            found.append(file.read())
    return found


def changed_files(state: str) -> Iterator[str]:
    """Yield the files that we ever changed, which may be gone by now."""
    root = os.path.join(state, "backups")
    for folder, _, names in os.walk(root):
        if names:
            yield os.path.join("/", os.path.relpath(folder, root))


def _backup_folder(state: str, path: str) -> str:
    return os.path.join(state, "backups", path.lstrip("/"))


def _backup_names(folder: str) -> list[str]:
    """Return the names of backups, newest first."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name for entry in entries if entry.is_file()), reverse=True)
    except OSError:
        return []


def replace_file(path: str, content: bytes) -> None:
    """Replace a file as a whole, keep its mode and owner. Raises OSError that names this file."""
    with _about(path), _beside(path) as (beside, file):
        mode = _take_owner(path, file.fileno())  # before there is something to read
        file.write(content)
        file.flush()
        os.fchmod(file.fileno(), mode)  # a change of the owner may have narrowed it
        os.fsync(file.fileno())
        os.replace(beside, path)


def write_private_bytes(path: str, content: bytes, moment: int | None = None) -> None:
    """Write a file of our own as a whole, 0600; `moment` is its time. Raises OSError about it."""
    with _about(path):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with _beside(path) as (beside, file):
            file.write(content)
            file.flush()
            if moment is not None:
                os.utime(file.fileno(), ns=(moment, moment))
            os.fsync(file.fileno())
            os.replace(beside, path)


@contextmanager
def _about(path: str) -> Iterator[None]:
    """Let every OSError name this file."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error


@contextmanager
def _beside(path: str) -> Iterator[tuple[str, BinaryIO]]:
    """Open a new file in the same folder, which is deleted unless it gets another name."""
    folder = os.path.dirname(path)
    beside = os.path.join(folder, f".notyet-{os.getpid()}-{time.time_ns()}.tmp")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            yield beside, file
    finally:
        if os.path.exists(beside):
            os.unlink(beside)
    directory = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _take_owner(path: str, descriptor: int) -> int:
    """Give a new file the owner and group of the one that it replaces; return its mode."""
    try:
        old = os.stat(path)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask
    new = os.fstat(descriptor)
    mode = stat.S_IMODE(old.st_mode)
    if new.st_gid != old.st_gid:
        try:
            os.fchown(descriptor, -1, old.st_gid)
        except PermissionError:  # our own group must not get the rights of theirs
            mode &= ~0o070
    if new.st_uid != old.st_uid:
        try:
            os.fchown(descriptor, old.st_uid, -1)
        except PermissionError as error:
            raise PermissionError(error.errno, "it belongs to another user", path) from None
    return mode
