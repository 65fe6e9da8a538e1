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
KEPT = 300  # seconds that an unused connection stays
_TMP = "/tmp"  # noqa: S108  # owner and mode of the folder in it are checked
# ssh adds 17 characters while it makes the socket, and the system takes 104 where it takes least.
_LONGEST = 86
_PRIVATE = 0o077
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


def client_argv(
    remote: Remote, *, socket: str, log: str, patience: float, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the client that runs a command there; the command is what is still to be added.

    Where nobody listens on the socket any more, it connects by itself.
    """
    return ("ssh", "-o", "ControlMaster=no", *_common(remote, socket, log, patience, environ))


def master_argv(
    remote: Remote, *, socket: str, log: str, patience: float, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what connects, goes into the background with that, and exits with 0."""
    own = ("-N", "-o", "ControlMaster=yes", "-o", f"ControlPersist={KEPT}")
    return ("ssh", *own, *_common(remote, socket, log, patience, environ))


def _common(
    remote: Remote, socket: str, log: str, patience: float, environ: Mapping[str, str]
) -> tuple[str, ...]:
    config = environ.get(CONFIG, "")
    return (
        *_OPTIONS,
        *("-o", f"ConnectTimeout={max(1, int(patience))}"),
        *("-S", socket.replace("%", "%%") or "none"),
        *(("-E", log) if log else ()),
        *(("-F", os.path.abspath(config)) if config else ()),
        *(("-l", remote.user) if remote.user else ()),
        *(("-p", str(remote.port)) if remote.port else ()),
        *("--", remote.host),
    )


def socket_name(remote: Remote, number: int, environ: Mapping[str, str]) -> str:
    """Return the name under which a connection is found again."""
    told = f"{remote.machine}\0{environ.get(CONFIG, '')}"
    digest = blake2b(told.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return f"{digest}-{number}"


def control_folder(environ: Mapping[str, str]) -> str:
    """Return a folder that only we can enter, made if need be; empty when there is none."""
    runtime, home = environ.get("XDG_RUNTIME_DIR", ""), environ.get("HOME", "")
    places = [os.path.join(_TMP, f"notyet-{os.geteuid()}")]
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        places.insert(0, os.path.join(runtime, "notyet", "ssh"))
    if os.path.isabs(home):
        places.append(os.path.join(home, ".cache", "notyet", "ssh"))
    return next(filter(_is_usable, places), "")


def _is_usable(folder: str) -> bool:
    if "${" in folder or len(os.fsencode(folder)) > _LONGEST - len("/0123456789abcdef-99.01234567"):
        return False
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
    return is_ours and not found.st_mode & _PRIVATE and os.access(folder, os.W_OK | os.X_OK)
