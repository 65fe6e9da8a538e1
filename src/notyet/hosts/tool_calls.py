"""The tool calls of an agent, from the transcript that its host writes: commands and edits.

Each host's records are recognised by their shape. Only what the host itself wrote about a call
counts: texts of users, agents and tools stand inside of strings, and are never read as records.
A result that a host does not tell is None, and proves nothing. Another process may be writing the
file, and it may be anything but a transcript: content never raises.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote

from notyet.hosts.call_records import read_opencode, reader_of
from notyet.hosts.tool_call import Calls
from notyet.hosts.transcript import own_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.core.event import StopEvent
    from notyet.hosts.tool_call import ToolCall

_MOST_READ = 64 * 1024 * 1024  # bytes from the end
_LONGEST_LINE = 8 * 1024 * 1024
_BLOCK = 1024 * 1024
_SQLITE = b"SQLite format 3\0"
_DATABASE_PATIENCE = 5.0  # seconds


class Unreadable(Exception):  # noqa: N818  # not an error of ours
    """There are no tool calls to read; the message says why."""


def calls_of(event: StopEvent) -> list[ToolCall]:
    """Return the tool calls of the stopping agent (L1). Raises Unreadable."""
    path, session = own_transcript(event), ""
    if event.host == "opencode":
        path, session = _opencode_database(), event.agent_id or event.session_id
    if not path:
        of = "this subagent" if event.scope == "subagent" else "this agent"
        raise Unreadable(f"its host names no transcript of {of}")
    calls, is_known = _read(path, session)
    if not is_known:
        raise Unreadable(f"the transcript {path} is missing, or not one that notyet can read")
    return calls


def tool_calls(path: str, session: str = "") -> list[ToolCall]:
    """Return the tool calls of a transcript in their order; none if it cannot be read.

    A database has the calls of many sessions, so there one must be named.
    """
    return _read(path, session)[0]


def _read(path: str, session: str) -> tuple[list[ToolCall], bool]:
    """Return the calls of a transcript, and whether it is one at all."""
    calls = Calls()
    with suppress(OSError, ValueError):  # ValueError: a NUL or a lone surrogate in the path
        _read_file(path, session, calls)
    return calls.finished(), calls.is_known  # what was read until an error counts


def _read_file(path: str, session: str, calls: Calls) -> None:
    # Without O_NONBLOCK, opening a pipe would wait for a writer.
    handle = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return
        if os.pread(handle, len(_SQLITE), 0) == _SQLITE:
            _read_opencode(path, session, calls)
        else:
            for number, line in enumerate(_lines(handle, about.st_size)):
                _add(calls, number, line)
    finally:
        os.close(handle)


def _lines(handle: int, size: int) -> Iterator[bytes]:
    """Yield the last lines of a file, the first one first, without those that are too long."""
    at = max(0, size - _MOST_READ)
    is_cut = at > 0  # then the first line is only the end of one
    held: list[bytes] = []
    length = 0
    while block := os.pread(handle, min(_BLOCK, size - at), at):
        at += len(block)
        first, *others = block.split(b"\n")
        for piece in (first, *others[:-1]) if others else ():
            if not is_cut and length + len(piece) <= _LONGEST_LINE:
                yield b"".join((*held, piece))
            held, length, is_cut = [], 0, False
        rest = others[-1] if others else block
        length += len(rest)
        held = [*held, rest] if length <= _LONGEST_LINE else []
    if not is_cut and length <= _LONGEST_LINE:
        yield b"".join(held)


def _add(calls: Calls, number: int, line: bytes) -> None:
    """Read one line; one that is no record is skipped."""
    bare = line.strip(b" \t\r\0")  # a crash can leave NULs where a line was never written
    if bare[:1] != b"{" or bare[-1:] != b"}":
        return
    try:
        entry = json.loads(bare.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return
    with suppress(TypeError):  # a list where only a text makes sense
        reader = reader_of(entry)
        if reader is not None:
            calls.is_known = True
            reader(calls, number, entry)


# OpenCode: a database with the parts of all messages of all sessions.

_PARTS = """
SELECT substr(data, 1, ?) FROM part
WHERE session_id = ? ORDER BY time_created, id
"""


def _opencode_database() -> str:
    home = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(home, "opencode", "opencode.db")


def _read_opencode(path: str, session: str, calls: Calls) -> None:
    address = f"file:{quote(os.path.abspath(os.path.expanduser(path)))}?mode=ro"
    with (
        suppress(sqlite3.Error),  # what was read until then counts
        closing(sqlite3.connect(address, uri=True, timeout=_DATABASE_PATIENCE)) as database,
    ):
        found = database.execute(
            "SELECT directory FROM session WHERE id = ?", (session,)
        ).fetchone()
        if found is None:
            return
        calls.is_known = True
        calls.folder = found[0] if isinstance(found[0], str) else ""
        rows = database.execute(_PARTS, (_LONGEST_LINE + 1, session))
        for number, (data,) in enumerate(rows):
            with suppress(TypeError):
                read_opencode(calls, number, data)
