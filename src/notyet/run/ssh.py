"""Shared connections of OpenSSH's client: one per machine, kept open for a while.

An ssh process in the background holds a connection. It listens on a socket in a folder that only
this user can enter, and the next session reuses it. Each connection is made under a unique name
and then linked to the name that others look for, so that several processes can connect at the same
time.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from contextlib import suppress
from hashlib import blake2b
from pwd import getpwuid
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.remote import Remote

CONFIG = "NOTYET_SSH_CONFIG"  # replaces ~/.ssh/config
PATIENCE = 20.0  # seconds for a machine to answer at all
_SYSTEM = "/etc/ssh/ssh_config"
_KEPT = 300  # seconds that an unused connection stays
_TMP = "/tmp"  # noqa: S108  # owner and mode of the folder in it are checked
# ssh appends 17 characters while it makes the socket; the smallest limit of a system is 104.
_LONGEST = 86
_PRIVATE = 0o077
_OTHERS_WRITE = 0o022
_STALE = 60.0  # seconds; a younger socket may be about to listen
# Too many open files here, or too many clients there: using the connection will show if it works.
_UNKNOWN = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN})
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
_LIFE = 10.0  # seconds that a machine is taken for unreachable
_AT_ONCE = 0.5  # seconds; a failure this fast is not remembered, since a retry is cheap
_MUCH = 2  # times as much patience is worth a new attempt

_lost: dict[str, tuple[float, float, str]] = {}  # by machine: until when, the patience, and why


def note_lost(machine: str, problem: str, *, patience: float, seconds: float) -> None:
    """Remember for some seconds that a machine is unreachable.

    A stop reads the configuration of a machine and then runs several stages there. If each waited
    for the machine, the host would stop waiting for us.
    """
    if seconds >= _AT_ONCE:
        _lost[machine] = (monotonic() + _LIFE, patience, problem)


def why_lost(machine: str, patience: float) -> str:
    """Return why connecting with so much patience would fail now; empty if unknown."""
    until, waited, problem = _lost.get(machine, (0.0, 0.0, ""))
    is_known = monotonic() < until and patience <= _MUCH * waited
    return problem if is_known else ""


def connect_argv(remote: Remote, socket_path: str, patience: float) -> tuple[str, ...]:
    """Return the command that connects, leaves ssh in the background, and exits with 0."""
    return (
        *("ssh", "-N", "-o", "ControlMaster=yes", "-o", f"ControlPersist={_KEPT}"),
        *("-o", f"ConnectTimeout={max(1, int(patience))}"),
        *_rest(remote, socket_path),
    )


def session_argv(remote: Remote, socket_path: str, command: str) -> tuple[str, ...]:
    """Return the command that runs a command over a connection.

    If the connection takes no more sessions (sshd allows ten), ssh makes its own.
    """
    options = ("-o", "ControlMaster=no", "-o", f"ConnectTimeout={int(PATIENCE)}")
    return ("ssh", *options, *_rest(remote, socket_path), command)


def _rest(remote: Remote, socket_path: str) -> tuple[str, ...]:
    config = os.environ.get(CONFIG, "")
    return (
        *_OPTIONS,
        *("-S", socket_path.replace("%", "%%")),
        *(("-F", os.path.abspath(config)) if config else ()),
        *(("-l", remote.user) if remote.user else ()),
        *(("-p", str(remote.port)) if remote.port else ()),
        *("--", remote.host),
    )


def socket_name(remote: Remote) -> str:
    """Return the name under which connections to a machine are shared.

    It changes with ssh's configuration: the same destination may then be another machine.
    """
    own = os.environ.get(CONFIG, "")
    files = (os.path.abspath(own),) if own else _own_files()
    text = "\0".join((remote.machine, *map(_version, files)))
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _own_files() -> tuple[str, ...]:
    """Return ssh's configuration files, without included ones; ssh ignores HOME."""
    try:
        home = getpwuid(os.getuid()).pw_dir
    except KeyError:
        return (_SYSTEM,)
    return (os.path.join(home, ".ssh", "config"), _SYSTEM)


def _version(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return path
    return f"{path} {found.st_mtime_ns} {found.st_size} {found.st_ino}"


def control_folder(environ: Mapping[str, str]) -> str:
    """Return a folder that only this user can enter, made if needed; empty if there is none."""
    return (
        _below(environ.get("XDG_RUNTIME_DIR", ""), "notyet", "ssh")
        or _usable(os.path.join(_TMP, f"notyet-{os.geteuid()}"))
        or _below(environ.get("HOME", ""), ".cache", "notyet", "ssh")
    )


def _below(folder: str, *names: str) -> str:
    """Return a folder below one that this user owns: another owner could replace it."""
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
    with suppress(OSError):  # it exists, or cannot be made
        os.mkdir(folder, 0o700)


def _usable(folder: str) -> str:
    if "${" in folder or len(os.fsencode(folder)) > _LONGEST - len("/0123456789abcdef.01234567"):
        return ""
    _make(folder)
    try:
        found = os.lstat(folder)
    except OSError:
        return ""
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    is_private = is_ours and not found.st_mode & _PRIVATE
    return folder if is_private and os.access(folder, os.W_OK | os.X_OK) else ""


def listens(path: str) -> bool:
    """Return True if a process listens on a socket, or if that is unknown."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as tried:
            tried.settimeout(0.5)
            tried.connect(path)
    except OSError as error:
        return error.errno in _UNKNOWN
    return True


def publish(path: str, name: str) -> None:
    """Share a connection under a name, unless the name has a working one."""
    for _ in range(2):
        try:
            os.link(path, name)
        except FileExistsError:
            if listens(name):
                return
            forget(name)
        except OSError:  # then it is not shared
            return
        else:
            return


def forget(path: str) -> None:
    """Remove the socket of a connection that does not work."""
    with suppress(OSError):
        os.unlink(path)


def tidy(folder: str) -> None:
    """Remove the sockets of killed processes from a folder."""
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
        is_old = time.time() - found.st_mtime >= _STALE
        if is_old and stat.S_ISSOCK(found.st_mode) and not listens(path):
            forget(path)
