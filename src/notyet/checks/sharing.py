"""Connections that are shared: who holds one, and how the next one finds it.

Each is made under a name of its own, so that several can be made at the same time without getting
into each other's way. Then it gets the name under which it is looked for, if nobody has that.
"""

from __future__ import annotations

import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket

_STALE = 60.0  # seconds; what is younger may be about to listen
# What is said on such a socket: the length of a message, its kind, and numbers.
_HELLO, _VERSION, _IS_ALIVE, _ALIVE = 1, 4, 0x10000004, 0x80000005
_WORD = 4
LOG = ".log"


def listens(path: str) -> bool:
    """Tell whether somebody listens on a socket."""
    import _socket

    asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        asked.settimeout(0.5)
        asked.connect(path)
    except OSError:
        return False
    finally:
        asked.close()
    return True


def holder(path: str) -> int:
    """Ask for the process that listens on a socket, in ssh's own words; 0 when nobody says it."""
    import _socket

    asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        asked.settimeout(2.0)
        asked.connect(path)
        asked.sendall(message(numbers(_HELLO, _VERSION)) + message(numbers(_IS_ALIVE, 0)))
        for _ in range(2):  # its own hello comes first
            kind, *said = _values(_received(asked, _values(_received(asked, _WORD))[0]))
            if kind == _ALIVE:
                return said[1]
    except (OSError, IndexError):
        pass
    finally:
        asked.close()
    return 0


def publish(path: str, name: str) -> None:
    """Let others find a connection, unless they find another one already."""
    for _ in range(2):
        try:
            os.link(path, name)
        except FileExistsError:
            if listens(name):
                return
            forget(name)
        except OSError:  # then it is ours alone
            return
        else:
            _publish_log(path + LOG, name + LOG)
            return


def _publish_log(path: str, name: str) -> None:
    forget(name)
    try:  # noqa: SIM105  # contextlib is not free
        os.link(path, name)
    except OSError:
        pass


def forget(name: str) -> None:
    """Let nobody find a connection that is of no use."""
    try:  # noqa: SIM105  # contextlib is not free
        os.unlink(name)
    except OSError:
        pass


def tidy(folder: str) -> None:
    """Remove what killed processes left in a folder of sockets."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            found = os.lstat(path)
        except OSError:
            continue
        if time.time() - found.st_mtime < _STALE:
            continue
        if stat.S_ISSOCK(found.st_mode):
            if not listens(path):
                forget(path)
        elif name.endswith(LOG) and name.removesuffix(LOG) not in names:
            forget(path)


def message(content: bytes) -> bytes:
    """Return a message as it is sent."""
    return len(content).to_bytes(_WORD, "big") + content


def numbers(*values: int) -> bytes:
    """Return numbers as they stand in a message."""
    return b"".join(value.to_bytes(_WORD, "big") for value in values)


def text(content: bytes) -> bytes:
    """Return a text as it stands in a message."""
    return numbers(len(content)) + content


def _values(content: bytes) -> list[int]:
    return [int.from_bytes(content[i : i + _WORD], "big") for i in range(0, len(content), _WORD)]


def _received(asked: _socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        content += asked.recv(size - len(content)) or _ended()
    return content


def _ended() -> bytes:
    raise OSError("the other end is gone")
