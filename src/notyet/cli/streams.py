"""Standard streams: open them where they are closed, give up one whose reader is gone."""

from __future__ import annotations

import codecs
import json
import os
import select
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

# What is drawn where an encoding lacks our signs; of other letters, the number is shown.
_ASCII = {"✓": "+", "✗": "x", "■": "#", "·": "-", "…": "...", "●": "*", "━": "=", "─": "-"}
_ASCII |= dict(zip("▁▂▃▄▅▆▇█", "_.:-=+*#", strict=True))
_ASCII |= dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧", "|/-\\" * 2, strict=True))
IN_ASCII = "notyet.ascii"  # the name of the error handler that does it


def _in_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    assert isinstance(error, UnicodeEncodeError)  # only writing needs it
    sign = _ASCII.get(error.object[error.start])
    return (sign, error.start + 1) if sign else codecs.backslashreplace_errors(error)


codecs.register_error(IN_ASCII, _in_ascii)


def give_up(stream: TextIO) -> None:
    """Drop what is still written to a stream: Python tries once more when it ends."""
    try:
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        return


def give_up_unwritable() -> None:
    """Give up standard streams that cannot be written, as on a closed terminal."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            give_up(stream)


def is_reader_gone() -> bool:
    """Return True if nothing can read standard output any more."""
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    except (OSError, ValueError):
        return False


def json_line(value: object) -> str:
    """Return a value as JSON on one line, without lone surrogates."""
    return json.dumps(readable(value))


def readable(value: object) -> object:
    """Return a plain value in which all text can be encoded in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {name: readable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return value


def open_streams() -> None:
    """Open standard streams that were closed, so that no other file gets their number."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # which is `fd`, the lowest that is free
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # its encoding may lack a letter
            stream.reconfigure(errors=IN_ASCII)
