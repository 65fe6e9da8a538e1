"""OpenSSH's own client: its options, and the private folder for the connections that are shared.

One connection per machine stays for a while after it was used, and the next command is there in a
moment. It is held by a process of ssh in the background, which listens on a socket in a folder
that only this user can enter.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
try:
    from _blake2 import blake2b  # not hashlib: it loads OpenSSL
except ImportError:
    from hashlib import blake2b
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.remote import Remote

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
