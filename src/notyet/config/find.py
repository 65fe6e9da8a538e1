"""Where configuration can be, and whether there is any: most stops need no more than this."""

from __future__ import annotations

from notyet import light
from notyet.hosts import HOSTS, host_named
from notyet.light import config_home, is_remote, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

NAME = "notyet.toml"
OFF_VARIABLE = "NOTYET_DISABLE"
_OFF = frozenset({"1", "true", "yes", "on"})
MOST_BYTES = 4 * 1024 * 1024  # of a configuration file
_BLOCK = 1 << 16  # read at least this much at once: st_size can be 0 for a file with content
_KIND, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG, without importing `stat`
_EINVAL, _EFBIG = 22, 27  # the same everywhere, without importing `errno`
real_folder = light.real_folder  # for modules that may not import `light`
exists = light.lexists  # even a dangling link


def projects_files(
    cwd: str,
    host: str,
    environ: Mapping[str, str],
    *,
    only: str = "",
    project: str = "",
    workspace: str = "",
) -> list[str] | None:
    """Return every `notyet.toml` of a project that may count, if no other file can; else None.

    The arguments are those of `load`. Return None also if notyet may be switched off.
    """
    if only or workspace or not cwd or (host in HOSTS and host_named(host).reads_files):
        return None
    state = state_folder(environ)
    if may_be_off(environ) or user_file(environ):
        return None

    def is_trusted(path: str) -> bool:
        return has_record(state, path)

    found = [natives(start, is_trusted, exists) for start in starts(cwd, project)]
    return list(dict.fromkeys(path for files in found for path, _ in files))


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's own `notyet.toml`; empty if there is none."""
    folder = user_folder(environ)
    path = light.join(folder, NAME)
    return path if folder and exists(path) else ""


def user_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's own configuration; empty without a home."""
    home = config_home(environ)
    return light.join(home, "notyet") if home else ""


def state_folder(environ: Mapping[str, str]) -> str:
    """Return our folder below the XDG state folder; empty without a home."""
    home = state_home(environ)
    return light.join(home, "notyet") if home else ""


def may_be_off(environ: Mapping[str, str]) -> bool:
    """Return True if notyet may be switched off here; `config.off` knows for certain."""
    return is_off_everywhere(environ) or bool(switches_folder(state_folder(environ)))


def is_off_everywhere(environ: Mapping[str, str]) -> bool:
    """Return True if the variable that switches notyet off is set."""
    return environ.get(OFF_VARIABLE, "").lower() in _OFF


def switches_folder(state: str) -> str:
    """Return the folder in which `notyet off` keeps its switches; empty if it was never used."""
    folder = light.join(state, "off") if state else ""
    return folder if folder and light.isdir(folder) else ""


def starts(cwd: str, project: str) -> dict[str, None]:
    """Return the folders to search from: where the agent works, and its host's project."""
    place = real_folder(cwd)
    # A folder may have been replaced by a link to another one since it was trusted.
    given = light.abspath(cwd) if place else ""
    return dict.fromkeys((place, given, real_folder(project)))


def natives(
    cwd: str, is_trusted: Callable[[str], bool], is_there: Callable[[str], bool], users: str = ""
) -> Iterator[tuple[str, bool]]:
    """Yield the nearest `notyet.toml` of a project that is not the user's, and if it exists (J6).

    An agent could remove its gates by removing the file, or by adding another one nearer to where
    it works. So a trusted file that was removed still counts, and an untrusted file does not hide
    a trusted one further up.
    """
    is_hidden = False
    for folder in above(cwd) if cwd else ():
        path = f"{folder.rstrip('/')}/{NAME}"
        found = is_there(path)
        if is_trusted(path) and not (users and _is_same(path, users)):
            yield path, found
            return
        if found and not is_hidden and not (users and _is_same(path, users)):
            yield path, found
            is_hidden = True  # only the nearest untrusted file is reported


def _is_same(one: str, other: str) -> bool:
    """Return True if two names are the same file: a project can be around the user's own."""
    return one == other or known_as(one) == known_as(other)


def known_as(path: str) -> str:
    """Return the one path that a file is trusted under, whatever links lead to it."""
    folder, name = light.split(light.abspath(path))
    return light.join(light.realpath(folder), name)


def has_record(state: str, path: str) -> bool:
    """Return True if there is a record about a file, which itself may be gone.

    Without a home there is none: a record in the current folder could be anybody's.
    """
    return bool(state) and light.exists(record_path(state, path))


def record_path(state: str, path: str) -> str:
    """Return the path of the record about a file; files of other machines have their own folder."""
    if is_remote(path):
        from notyet.core.remote import remote_from

        place = remote_from(path)
        machine = place.machine.replace("//", "")  # ssh:dev@box, so that no host is named ".."
        return light.join(state, "trust-there", machine, place.path.lstrip("/")) + ".json"
    return f"{state}/trust/{path.lstrip('/')}.json"


def parent(name: str) -> str:
    """Return the folder of a file or folder, here or in a workspace."""
    if not is_remote(name):
        return light.dirname(name)
    from notyet.core.remote import remote_from

    place = remote_from(name)
    return place.at(light.dirname(place.path)).url


def above(folder: str) -> list[str]:
    """Return a folder and all folders around it, nearest first."""
    up = parent if is_remote(folder) else _parent_here
    folders = [folder]
    while (around := up(folder)) != folder:
        folders.append(around)
        folder = around
    return folders


def _parent_here(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def text_of(path: str, most: int = MOST_BYTES) -> str:
    """Return a file's text, whatever bytes it holds. Raises OSError."""
    # Not blocking, because opening a pipe without a writer would wait for ever.
    descriptor = light.open(path, light.O_RDONLY | light.O_NONBLOCK | light.O_CLOEXEC)
    try:
        about = light.fstat(descriptor)
        if about.st_mode & _KIND != _REGULAR:
            raise OSError(_EINVAL, "it is not a regular file", path)
        content = b""
        while len(content) <= most:
            part = light.read(descriptor, min(max(about.st_size, _BLOCK), most) + 1)
            if not part:
                return content.decode("utf-8", "surrogateescape")
            content += part
    finally:
        light.close(descriptor)
    raise OSError(_EFBIG, f"it is larger than {most // 1024 // 1024} MB", path)
