"""Files in which people keep hooks for hosts, from the hosts' own data (J1 to J5)."""

from __future__ import annotations

from notyet.hosts import HOSTS, all_hosts, host_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.hosts.host import Host

EXECUTABLE = "executable"  # the format of a program that is itself the hook
_FILES = [file for host in all_hosts() for group in host.hook_files.groups for file in group]
READABLE = tuple(host.name for host in all_hosts() if host.hook_files.groups)
# The folders in which hosts keep a project's files.
FOLDERS = tuple(dict.fromkeys(path.partition("/")[0] for _, path, _ in _FILES if "/" in path))
# Files that also count from folders above a project: name and kind.
ABOVE = {path: kind for scope, path, kind in _FILES if scope == "above"}


def host_of(kind: str) -> Host:
    """Return the host that a kind of file belongs to. Raises KeyError for other files."""
    return host_named(kind.split("-", maxsplit=1)[0])


def format_of(kind: str) -> str:
    """Return the format of a kind of file: hooks, hooks-toml, executable or the host's own."""
    name = kind.split("-", maxsplit=1)[0]
    return host_named(name).hook_files.formats.get(kind, "") if name in HOSTS else ""
