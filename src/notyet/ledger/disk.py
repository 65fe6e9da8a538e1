"""What kind of disk a ledger lies on: one of this machine, of another, or one to read only."""

from __future__ import annotations

from notyet import system

_NETWORK = ("nfs", "cifs", "smb", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs", "lustre")
_MOUNTS = "/proc/self/mounts"


def on_a_network(path: str) -> tuple[str, ...]:
    """Return what its user should know of where a ledger lies."""
    network = network_file_system(path)
    if not network:
        return ()
    where = f"ledger {path} is on a network file system ({network}), where locks can fail"
    return (f"{where}; set NOTYET_LEDGER to a file on a local disk",)


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
