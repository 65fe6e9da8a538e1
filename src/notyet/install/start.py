"""How hosts start notyet: by the launcher where there can be one, else by its script."""

from __future__ import annotations

import os
import re
import shlex

from notyet.core.record import Record, replace
from notyet.errors import NotyetError
from notyet.hosts.own_line import is_own_hook
from notyet.install.launcher import command_words

# Folders that a tool makes for one run, and may clear at any time. Those of uv have usual names.
_OF_UV = re.compile(r"/(archive|environments|builds)-v\d+/")
_THROWN_AWAY = (
    (_OF_UV, "uvx", "uv tool install notyet"),
    (re.compile(r"/pipx/\.cache/|/(\.cache|Caches)/pipx/"), "pipx run", "pipx install notyet"),
)
_GUARD = "test -r {}"  # ends with 1 where it is not, or cannot be read
_THEN = " && exec "


class NoCommand(NotyetError):  # noqa: N818  # named after what happened
    """There is no command that would still work tomorrow; the message says what to do."""


class Start(Record, kw_only=True):
    """How notyet is started, up to `hook`; and what a person should know of that."""

    line: str
    note: str = ""
    folder: str = ""  # into which the launcher has to be written first; empty: there is none


def launched_start(usual: Start, folder: str, python: str) -> Start:
    """Return the start by a launcher in this folder; the usual one, with the reason, if not."""
    why = ""
    line = ""
    try:
        line = launched(folder, python)
    except NoCommand as error:
        why = str(error)
    if not folder:
        why = "there is no home folder to keep the launcher in; set HOME, or XDG_DATA_HOME"
    elif not why and not is_own_hook(f"{line} hook"):  # we would not know it again
        why = f"{python or 'this Python'} is no usual name of a Python"
    elif not why:
        why = _unwritable(folder)
    if why:
        note = f"hooks start slower than they could: {why}"
        return replace(usual, note="; ".join(filter(None, (usual.note, note))))
    return Start(line=line, folder=folder)


def launched(folder: str, python: str) -> str:
    """Return the line that starts the launcher in a folder, up to `hook`. Raises NoCommand.

    A Python that cannot read its file ends with 2, by which hosts send an agent back. So where
    the launcher is missing, or somebody else's, the line fails in another way, of which hosts tell
    their user.
    """
    *start, launcher = command_words(folder, python)
    line = " ".join(_quoted(word) for word in (*start, launcher))
    return _GUARD.format(_quoted(launcher)) + _THEN + line


def _unwritable(folder: str) -> str:
    """Say why no file can be written into a folder, which may not be there yet."""
    place = folder
    while place != "/" and not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        return f"{place} is no folder"
    return "" if os.access(place, os.W_OK | os.X_OK) else f"{place} cannot be written"


def absolute_start(argv0: str, prefix: str, python: str, main: str) -> Start:
    """Return a start that outlives upgrades of notyet and of Python. Raises NoCommand.

    That is the script by which notyet was called, with its symbolic links: pipx and uv keep
    theirs in one place, whatever lies behind it.
    """
    script = os.path.abspath(argv0)
    if os.path.basename(argv0) != "notyet" or not os.access(script, os.X_OK):
        script = os.path.join(prefix, "bin", "notyet")
    for part, tool, better in _THROWN_AWAY:
        if any(_is_within(part, path) for path in (f"{prefix}/", script)):
            raise NoCommand(
                f"this is {tool}'s throw-away copy of notyet ({prefix}), which will be gone; "
                f"run `{better}`, and then this command again"
            )
    if os.path.isfile(script) and os.access(script, os.X_OK):
        return Start(line=_quoted(script))
    if not os.path.isabs(python):
        raise NoCommand(
            f"there is no {script}, and this Python does not know where it is; "
            "start notyet with a Python by its whole path, or install it"
        )
    words = (python, "-I", "-S", os.path.abspath(main))
    note = f"there is no {script}, so hooks run {words[-1]} with {python}"
    return Start(line=" ".join(_quoted(word) for word in words), note=note)


def _is_within(part: re.Pattern[str], path: str) -> bool:
    found = part.search(path)
    if found is None or part is not _OF_UV:
        return found is not None
    cache = path[: found.start()]
    return os.path.basename(cache) == "uv" or os.path.exists(os.path.join(cache, "CACHEDIR.TAG"))


def _quoted(word: str) -> str:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise NoCommand(
            f"the path {os.fsencode(word)!r} is not UTF-8, so it cannot stand in a settings file; "
            "install notyet in another folder"
        ) from None
    return shlex.quote(word)
