"""Connections that are shared: who holds one, and how the next one finds it.

Each is made under a name of its own, so that several can be made at the same time without getting
into each other's way. Then it gets the name under which it is looked for, if nobody has that.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from notyet.checks.control import ALIVE, HELLO, IS_ALIVE, first, message, numbers

_STALE = 60.0  # seconds; what is younger may be about to listen
# Too many files are open here, or too many ask there at this moment: it will be seen in using it.
_UNKNOWN = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN})
_CHUNK = 4096
_ALIVE_SIZE = 3  # its kind, our number, the process
LOG = ".log"


def listens(path: str) -> bool:
    """Tell whether somebody listens on a socket, as far as that can be said."""
    import _socket

    try:
        asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            asked.settimeout(0.5)
            asked.connect(path)
        finally:
            asked.close()
    except OSError as error:
        return error.errno in _UNKNOWN
    return True


def holder(path: str) -> int:
    """Ask for the process that listens on a socket, in ssh's own words; 0 when nobody says it."""
    import _socket

    try:
        asked = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            asked.settimeout(2.0)
            asked.connect(path)
            asked.sendall(HELLO + message(numbers(IS_ALIVE, 0)))
            heard = b""
            while chunk := asked.recv(_CHUNK):
                values, heard = first(heard + chunk)
                while values is not None:  # its own hello comes first
                    if values[:1] == [ALIVE] and len(values) == _ALIVE_SIZE:
                        return values[-1]
                    values, heard = first(heard)
        finally:
            asked.close()
    except OSError:
        pass
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
