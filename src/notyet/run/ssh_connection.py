"""Connections of OpenSSH's client: one per machine, shared and kept open for a while.

An ssh process in the background holds a connection. It listens on a socket in a folder that only
this user can enter, and the next session reuses it.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
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
FAILED = 255  # ssh's exit code if there is no connection
_KEPT = 300  # seconds that an unused connection stays
_TMP = "/tmp"  # noqa: S108  # owner and mode of the folder in it are checked
_LONGEST = 86  # ssh appends 17 characters to a socket's path; the smallest limit of a system is 104
_LONGEST_REASON = 300  # characters of ssh's message
_PRIVATE = 0o077
_OTHERS_WRITE = 0o022
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


def connect_argv(remote: Remote, socket_path: str, patience: float) -> tuple[str, ...]:
    """Return the command that connects and leaves ssh in the background.

    If another process connects at the same time, only one of the connections stays.
    """
    options = ("-o", "ControlMaster=auto", "-o", f"ControlPersist={_KEPT}")
    return _argv(remote, socket_path, patience, *options, command="exit")


def session_argv(remote: Remote, socket_path: str, command: str) -> tuple[str, ...]:
    """Return the command that runs a command over a connection.

    If the connection takes no more sessions (sshd allows ten), ssh makes its own.
    """
    return _argv(remote, socket_path, PATIENCE, "-o", "ControlMaster=no", command=command)


def _argv(
    remote: Remote, socket_path: str, patience: float, *options: str, command: str
) -> tuple[str, ...]:
    config = os.environ.get(CONFIG, "")
    return (
        *("ssh", *options, "-o", f"ConnectTimeout={max(1, int(patience))}", *_OPTIONS),
        *("-S", socket_path.replace("%", "%%")),
        *(("-F", os.path.abspath(config)) if config else ()),
        *(("-l", remote.user) if remote.user else ()),
        *(("-p", str(remote.port)) if remote.port else ()),
        *("--", remote.host, command),
    )


# The sockets.


def socket_name(remote: Remote) -> str:
    """Return the name under which connections to a machine are shared.

    It changes with the user's configuration of ssh: the same destination may then be another
    machine.
    """
    path = os.path.abspath(os.environ.get(CONFIG, "") or _user_config())
    version = ""
    with suppress(OSError):
        found = os.stat(path)
        version = f"{found.st_mtime_ns} {found.st_size} {found.st_ino}"
    text = f"{remote.machine}\0{path}\0{version}"
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _user_config() -> str:
    """Return where ssh looks for its configuration; it ignores HOME."""
    with suppress(KeyError):
        return os.path.join(getpwuid(os.getuid()).pw_dir, ".ssh", "config")
    return "/etc/ssh/ssh_config"


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
        try:
            found = os.stat(folder)
        except OSError:
            return ""
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
            return ""
        folder = os.path.join(folder, name)
        with suppress(OSError):  # it exists, or cannot be made
            os.mkdir(folder, 0o700)
    return _usable(folder)


def _usable(folder: str) -> str:
    if "${" in folder or len(os.fsencode(folder)) > _LONGEST - len("/0123456789abcdef"):
        return ""
    with suppress(OSError):
        os.mkdir(folder, 0o700)
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


def forget(path: str) -> None:
    """Remove the socket of a connection that does not work."""
    with suppress(OSError):
        os.unlink(path)


# Machines that cannot be reached.

_LIFE = 10.0  # seconds that a machine is taken for unreachable
_AT_ONCE = 0.5  # seconds; a failure this fast is not remembered, since a retry is cheap
_MUCH = 2  # times as much patience is worth a new attempt

_lost: dict[str, tuple[float, float, str]] = {}  # by socket: until when, the patience, and why


def note_lost(socket_path: str, problem: str, *, patience: float, seconds: float) -> None:
    """Remember for some seconds that a machine is unreachable.

    A stop reads the configuration of a machine and then runs several stages there. If each waited
    for the machine, the host would stop waiting for us.
    """
    if seconds >= _AT_ONCE:
        _lost[socket_path] = (monotonic() + _LIFE, patience, problem)


def why_lost(socket_path: str, patience: float) -> str:
    """Return why connecting with so much patience would fail now; empty if unknown."""
    until, waited, problem = _lost.get(socket_path, (0.0, 0.0, ""))
    is_known = monotonic() < until and patience <= _MUCH * waited
    return problem if is_known else ""


def no_connection(remote: Remote, said: str) -> str:
    """Return why there is no connection, from ssh's messages."""
    host = remote.host
    last = last_line(said) or "ssh did not say why"
    if "IDENTIFICATION HAS CHANGED" in said:
        return f"the host key of {host} is not the one that is known"
    if "Host key verification failed" in said or "host key is known" in said:
        return f"the host key of {host} is not known here"
    if "Permission denied" in said or "Too many authentication failures" in said:
        return f"{host} refused the login: {last}"
    if "Could not resolve" in said:
        return f"{host} is not known: {last}"
    return f"there is no connection to {host}: {last}"


def advice_for(remote: Remote, problem: str) -> str:
    """Return what a person can do if connecting failed.

    It is not part of the problem, which agents read: they would accept an unknown host key.
    """
    host, port = remote.host, f" -p {remote.port}" if remote.port else ""
    line = f"ssh{port} {remote.destination}"
    known = {
        f"the host key of {host} is not the one": "if it was changed on purpose, remove the old "
        f"one with `ssh-keygen -R`, and connect once with: {line}",
        f"the host key of {host} is not known": f"connect once with: {line}",
        f"{host} refused the login": f"a key or an agent is needed, as for: {line}",
        f"{host} is not known": f"try: {line}",
        f"there is no connection to {host}": f"try: {line}",
        f"there was no connection to {host}": f"try: {line}",
    }
    return next((then for said, then in known.items() if problem.startswith(said)), "")


def last_line(said: str) -> str:
    """Return the last line of ssh's messages that is not empty."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if ": terminating, " not in line] or lines
    return lines[-1][:_LONGEST_REASON].rstrip(".") if lines else ""
