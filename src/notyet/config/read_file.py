"""Reads a configuration file's text, whatever the file turns out to be."""

from __future__ import annotations

import os
import stat

from notyet.config.document import Mistake

MOST_BYTES = 4 * 1024 * 1024
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_file(path: str) -> tuple[str | None, Mistake | None]:
    """Return a file's text, or the one reason why there is none."""
    try:
        content = _read_bytes(path)
    except _NotAFile as error:
        return None, Mistake(file=path, message=str(error))
    except OSError as error:
        return None, Mistake(file=path, message=f"it cannot be read: {error.strerror}")
    except ValueError:
        return None, Mistake(file=path, message="it cannot be read: no file has such a name")
    if len(content) > MOST_BYTES:
        message = f"it is larger than {MOST_BYTES // 1024 // 1024} MB, so it is not read"
        return None, Mistake(file=path, message=message)
    try:
        return content.decode("utf-8"), None
    except UnicodeDecodeError as error:
        return None, _not_utf8(path, content, error.start)


class _NotAFile(Exception):  # noqa: N818  # it never leaves this module
    pass


def _read_bytes(path: str) -> bytes:
    # Not blocking, because opening a pipe that nobody writes to would wait for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise _NotAFile("it is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise _NotAFile("it is not a regular file")
        parts = []
        left = MOST_BYTES + 1
        while left > 0:
            part = os.read(descriptor, left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _not_utf8(path: str, content: bytes, start: int) -> Mistake:
    if content.startswith(_UTF16):
        return Mistake(file=path, message="it is UTF-16 text", hint="save it as UTF-8")
    line = content.count(b"\n", 0, start) + 1
    before = content[content.rfind(b"\n", 0, start) + 1 : start]
    return Mistake(
        file=path,
        line=line,
        column=len(before.decode("utf-8")) + 1,
        message=f"it is not UTF-8: byte 0x{content[start]:02x}",
        hint="save it as UTF-8",
    )
