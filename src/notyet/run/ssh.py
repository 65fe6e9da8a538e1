"""Machines that were found out of reach a moment ago, so that nobody waits for them again at once.

A stop may look at the files of a machine, and then ask gates there in several stages. If each of
them waited for it, its host would stop waiting for us. It is forgotten soon: whoever lives longer
than a stop, as a supervisor does, tries again at the next one.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.remote import Remote

_LIFE = 10.0  # seconds that it is believed
_AT_ONCE = 0.5  # seconds; what is found out so quickly can as well be tried again
_MUCH = 2  # times; whoever waits so much longer may have more luck

_lost: dict[str, tuple[float, float, str]] = {}  # until when, how long was waited, and why


def note(machine: str, problem: str, *, patience: float, seconds: float) -> None:
    """Take down that a machine could not be reached, with so much patience, after so long."""
    if seconds >= _AT_ONCE:
        _lost[machine] = (monotonic() + _LIFE, patience, problem)


def why_not(machine: str, patience: float) -> str:
    """Say why it is of no use to try again now with so much patience; empty if it may be."""
    until, waited, problem = _lost.get(machine, (0.0, 0.0, ""))
    is_known = monotonic() < until and patience <= _MUCH * waited
    return problem if is_known else ""


# What is said to the process that holds a connection of ssh, on its socket.
#
# A message is its length, its kind, and then numbers and texts; OpenSSH describes them in its file
# PROTOCOL.mux.


WORD = 4  # bytes of a number
NEW_SESSION, IS_ALIVE = 0x10000002, 0x10000004
DENIED, FAILED, ALIVE, OPENED = 0x80000002, 0x80000003, 0x80000005, 0x80000006
NO_ESCAPE = 0xFFFFFFFF


def message(*content: bytes) -> bytes:
    """Return a message as it is sent."""
    return text(b"".join(content))


def numbers(*values: int) -> bytes:
    """Return numbers as they stand in a message."""
    return b"".join(value.to_bytes(WORD, "big") for value in values)


def text(content: bytes) -> bytes:
    """Return a text as it stands in a message."""
    return numbers(len(content)) + content


HELLO = message(numbers(1, 4))  # in the fourth version, which is fifteen years old


def first(heard: bytes) -> tuple[list[int] | None, bytes]:
    """Return the numbers of the first message, or None if it has not all come; and the rest."""
    length = int.from_bytes(heard[:WORD], "big")
    if len(heard) < WORD + length or len(heard) < WORD:
        return None, heard
    content = heard[WORD : WORD + length]
    values = [int.from_bytes(content[i : i + WORD], "big") for i in range(0, length, WORD)]
    return values, heard[WORD + length :]


# OpenSSH's own client: its options, and the private folder for the connections that are shared.
#
# One connection per machine stays for a while after it was used, and the next command is there in a
# moment. It is held by a process of ssh in the background, which listens on a socket in a folder
# that only this user can enter.


try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b

CONFIG = "NOTYET_SSH_CONFIG"  # another file than ~/.ssh/config
_SYSTEM = "/etc/ssh/ssh_config"
KEPT = 300  # seconds that an unused connection stays
_TMP = "/tmp"  # noqa: S108  # owner and mode of the folder in it are checked
# ssh adds 17 characters while it makes the socket, and the system takes 104 where it takes least.
_LONGEST = 86
_PRIVATE = 0o077
_OTHERS_WRITE = 0o022
_OPTIONS = (
    *("-T", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", "StrictHostKeyChecking=yes"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=2"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "ForwardAgent=no"),
    *("-o", "RemoteCommand=none"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "LogLevel=ERROR"),
    *("-o", "EscapeChar=none"),
)


def master_argv(
    remote: Remote,
    *,
    socket: str,
    log: str,
    patience: float,
    kept: int,
    environ: Mapping[str, str],
) -> tuple[str, ...]:
    """Return what connects, goes into the background with that, and exits with 0.

    It stays for so many seconds (`kept`) after it was used.
    """
    config = environ.get(CONFIG, "")
    return (
        *("ssh", "-N", "-o", "ControlMaster=yes", "-o", f"ControlPersist={kept}"),
        *_OPTIONS,
        *("-o", f"ConnectTimeout={max(1, int(patience))}"),
        *("-S", socket.replace("%", "%%")),
        *("-E", log),
        *(("-F", os.path.abspath(config)) if config else ()),
        *(("-l", remote.user) if remote.user else ()),
        *(("-p", str(remote.port)) if remote.port else ()),
        *("--", remote.host),
    )


def socket_name(remote: Remote, number: int, environ: Mapping[str, str]) -> str:
    """Return the name under which a connection is found again.

    It is another one once the configuration of ssh has changed: the same words may then mean
    another machine, or another way to it.
    """
    own = environ.get(CONFIG, "")
    files = (os.path.abspath(own),) if own else _own_files()
    told = "\0".join((remote.machine, *map(_version, files)))
    digest = blake2b(told.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return f"{digest}-{number}"


def _own_files() -> tuple[str, ...]:
    """Return what ssh reads by itself; it does not go by HOME. What they include is not seen."""
    from pwd import getpwuid

    try:
        home = getpwuid(os.getuid()).pw_dir
    except KeyError:
        return (_SYSTEM,)
    return (os.path.join(home, ".ssh", "config"), _SYSTEM)


def _version(path: str) -> str:
    """Return what is different once a file was written anew, or replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return path
    return f"{path} {found.st_mtime_ns} {found.st_size} {found.st_ino}"


def control_folder(environ: Mapping[str, str]) -> str:
    """Return a folder that only we can enter, made if need be; empty when there is none."""
    return (
        _below(environ.get("XDG_RUNTIME_DIR", ""), "notyet", "ssh")
        or _usable(os.path.join(_TMP, f"notyet-{os.geteuid()}"))
        or _below(environ.get("HOME", ""), ".cache", "notyet", "ssh")
    )


def _below(folder: str, *names: str) -> str:
    """Return a folder in one of ours: whoever owns that could put another one in its place."""
    if not os.path.isabs(folder):
        return ""
    for name in names:
        if not _is_ours(folder):
            return ""
        folder = os.path.join(folder, name)
        _make(folder)
    return _usable(folder)


def _is_ours(folder: str) -> bool:
    try:
        found = os.stat(folder)
    except OSError:
        return False
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_WRITE


def _make(folder: str) -> None:
    try:  # noqa: SIM105  # contextlib is not free
        os.mkdir(folder, 0o700)
    except OSError:  # it is there, or is not to be had
        pass


def _usable(folder: str) -> str:
    if "${" in folder or len(os.fsencode(folder)) > _LONGEST - len("/0123456789abcdef-99.01234567"):
        return ""
    _make(folder)
    try:
        found = os.lstat(folder)
    except OSError:
        return ""
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    is_private = is_ours and not found.st_mode & _PRIVATE
    return folder if is_private and os.access(folder, os.W_OK | os.X_OK) else ""


# Connections that are shared: who holds one, and how the next one finds it.
#
# Each is made under a name of its own, so that several can be made at the same time without getting
# into each other's way. Then it gets the name under which it is looked for, if nobody has that.


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
