"""Where the ledger's file lies, made private, and whether that place can be trusted."""

from __future__ import annotations

from errno import EISDIR, ENOENT

from notyet import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
LEDGER = "ledger.db"
_MOUNTS = "/proc/self/mounts"


def default_path(environ: Mapping[str, str]) -> str:
    """Return `$NOTYET_LEDGER`, or the file in the XDG state folder."""
    if environ.get("NOTYET_LEDGER"):
        return system.path.abspath(system.path.expanduser(environ["NOTYET_LEDGER"]))
    state = state_home(environ)
    return system.path.join(state, "notyet", LEDGER) if state else ""


def real(folder: str) -> str:
    """Return a folder by its own name, which is the same whichever link led there."""
    if not system.path.isabs(folder):  # relative to what, only its host knows
        return folder
    try:
        return system.path.realpath(folder)
    except (OSError, ValueError):  # a name that no file can have
        return folder


def state_home(environ: Mapping[str, str]) -> str:
    """Return the XDG state folder; empty where there is no home, which opening a file will say."""
    state = environ.get("XDG_STATE_HOME", "")
    if system.path.isabs(state):  # the XDG rules: a relative one is to be ignored
        return state
    home = environ["HOME"] if "HOME" in environ else system.path.expanduser("~")
    return system.path.join(home, ".local", "state") if system.path.isabs(home) else ""


def make_private(path: str) -> None:
    """Create the file 0600 and its missing folders 0700; what exists keeps its modes."""
    if not path:
        raise FileNotFoundError(ENOENT, "there is no home folder to keep it in")
    missing = []
    folder = system.path.dirname(path)
    while folder and not system.path.isdir(folder):
        missing.append(folder)
        folder = system.path.dirname(folder)
    for folder in reversed(missing):
        try:
            system.mkdir(folder, 0o700)
        except FileExistsError:
            if not system.path.isdir(folder):
                raise
    try:
        # Never open and close a file that is there: that would drop the locks which another
        # connection of this process holds on it.
        system.close(
            system.open(
                path, system.O_RDWR | system.O_CREAT | system.O_EXCL | system.O_CLOEXEC, 0o600
            )
        )
    except FileExistsError:
        if system.path.isdir(path):
            raise IsADirectoryError(EISDIR, "it is a directory", path) from None


def network_file_system(path: str, mounts: str = _MOUNTS) -> str:
    """Return the kind of network file system a path lies on; empty when it is local or unknown."""
    try:
        with open(mounts, encoding="utf-8", errors="replace") as lines:
            rows = [line.split()[1:3] for line in lines]  # where, and what kind
    except OSError:
        return ""
    real = system.path.realpath(path)
    best, kind = "", ""
    for point, mounted in (row for row in rows if row[1:]):
        # The kernel writes a space in a mount point as \040.
        if "\\" in point:
            point = point.encode("latin-1", "replace").decode("unicode_escape")  # noqa: PLW2901  # the same, as it is meant
        place = point.rstrip("/") + "/"
        if (real + "/").startswith(place) and len(place) >= len(best):
            best, kind = place, mounted
    return kind if kind.startswith(_NETWORK) else ""


def is_read_only(path: str) -> bool:
    """Tell whether nobody can write where a file lies, of which SQLite says nothing."""
    try:
        return bool(system.statvfs(system.path.dirname(path)).f_flag & system.ST_RDONLY)
    except OSError:
        return False
