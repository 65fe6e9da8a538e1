"""Transcripts that we write: one compact JSON object per line (L5).

A transcript is also the session's journal: a prompt is written with its key before it is sent, so
that a session reopened after a crash knows which prompts did not arrive.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING

from notyet.core.text import bounded
from notyet.errors import SendError
from notyet.ledger.connection import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO, Literal

    Fate = Literal["sent", "accepted", "refused"]

_FATES: dict[object, Fate] = {"user": "sent", "accepted": "accepted", "refused": "refused"}
_LONGEST_TEXT = 1_000_000  # characters; a line stays below what `last_message` reads
_LONGEST_RESULT = 64_000
_LONGEST_INPUT = 256_000
_LONGEST_LINE = 8 * 1024 * 1024
_WRITE = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class SentBefore(SendError):  # noqa: N818  # reads as what happened
    """The agent has this prompt already: it was sent under the same key."""


class Transcript:
    """One conversation's file; it is opened for each line, so idle sessions cost nothing.

    Without a path nothing is written.
    """

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def prompt(self, key: str, text: str) -> None:
        """Write a prompt before it is sent. Raises OSError or SentBefore: do not send it then.

        A supervisor that was suspended may send what its successor has sent meanwhile.
        """
        message = {"role": "user", "content": bounded(text, _LONGEST_TEXT)}
        if not self._has(key):  # else do not write it: its fate is known
            begins = self._add("user", {"key": key, "message": message})
            if not self._has(key, begins):  # no other process was faster
                return
        raise SentBefore("another process has sent this prompt")

    def _has(self, key: str, before: int | None = None) -> bool:
        """Return True if a prompt was written, and not refused, before this place in the file."""
        try:
            with open(self.path, "rb") as file:
                written = file.read(before)
        except OSError:
            return False
        if b'"key":' + _dumps(key) not in written:  # mostly: parsing is slow
            return False
        fates = dict(_fates_in(_entries(BytesIO(written))))
        return fates.get(key, "refused") != "refused"

    def accepted(self, key: str) -> None:
        """Write that the agent has the prompt."""
        self._add("accepted", {"key": key})

    def refused(self, key: str) -> None:
        """Write that the agent did not get the prompt."""
        self._add("refused", {"key": key})

    def said(self, text: str) -> None:
        """Write the agent's words."""
        blocks = [{"type": "text", "text": bounded(text, _LONGEST_TEXT)}]
        self._add("assistant", {"message": {"role": "assistant", "content": blocks}})

    def tool(self, name: str, given: object) -> None:
        """Write a tool call: its name and its input, side by side on one line."""
        self._add("tool", {"tool_name": name, "tool_input": _small(given)})

    def result(self, text: str) -> None:
        """Write the result of a tool."""
        self._add("tool_result", {"output": bounded(text, _LONGEST_RESULT)})

    def fates(self) -> dict[str, Fate] | None:
        """Return whether each prompt arrived, by its key; None without a file."""
        try:
            return dict(self.history())
        except OSError:
            return None

    def history(self) -> Iterator[tuple[str, Fate]]:
        """Yield the key and fate of each prompt, in order. Raises OSError."""
        with open(self.path, "rb") as file:
            yield from _fates_in(_entries(file))

    def remove(self) -> None:
        """Delete the file, if it exists."""
        with suppress(OSError):
            os.unlink(self.path)

    def _add(self, kind: str, fields: dict[str, object]) -> int:
        """Append a line; return where it begins in the file."""
        if not self.path:
            return 0
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = _dumps({"type": kind, "timestamp": at, **fields}) + b"\n"
        try:
            fd = os.open(self.path, _WRITE)
        except FileNotFoundError:
            make_private(self.path)
            fd = os.open(self.path, _WRITE)
        try:
            # One call, appending: lines of two writers never mix.
            written = os.write(fd, line)
            if written != len(line):  # the disk is full: end the line
                os.write(fd, b"\n")
                raise OSError(f"only {written} of {len(line)} bytes could be written")
            return os.lseek(fd, 0, os.SEEK_CUR) - written
        finally:
            os.close(fd)


def _small(given: object) -> object:
    text = _dumps(given)
    if len(text) <= _LONGEST_INPUT:
        return given
    return {"cut": bounded(text.decode(), _LONGEST_INPUT)}


def _dumps(value: object) -> bytes:
    # Not ASCII: people search these files for their own words.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "replace")


def _entries(file: BinaryIO) -> Iterator[dict[str, Any]]:
    for line in iter(lambda: file.readline(_LONGEST_LINE), b""):
        try:
            entry = json.loads(line.decode("utf-8", "replace"), strict=False)
        except (ValueError, RecursionError):  # a line that was never finished
            continue
        if isinstance(entry, dict):
            yield entry


def _fates_in(entries: Iterator[dict[str, Any]]) -> Iterator[tuple[str, Fate]]:
    for entry in entries:
        fate, key = _FATES.get(entry.get("type")), entry.get("key")
        if fate is not None and isinstance(key, str):
            yield key, fate
