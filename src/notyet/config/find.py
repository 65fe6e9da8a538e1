"""Find the files that configure a place: their names, their owners, and which of them count (J).

Most stops need no more than the first function, which finds that there are none.
"""

from __future__ import annotations

from notyet import light
from notyet.config.records import has_record, in_work_tree_of, placed
from notyet.hosts import HOSTS, host_named
from notyet.light import config_home, is_remote, state_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    class FileSource(Protocol):
        """Files by name: of this machine, or of a workspace on another one (M5).

        A file in a workspace has an address, `ssh://dev@box/srv/app/notyet.toml`, wherever a file
        here has a path: in messages, in records of trust, and as the source of gates.
        """

        @property
        def problem(self) -> str:
            """Why the files could not be read; empty when they were."""

        def exists(self, name: str) -> bool:
            """Return True if there is a file of this name, even a dangling link."""

        def text_of(self, name: str) -> str:
            """Return a file's text, whatever bytes it holds. Raises OSError."""

        def is_executable(self, name: str) -> bool:
            """Return True if a file may be run."""

        def folder_id(self, name: str) -> str:
            """Return an id of a file's folder that another folder of that name does not have."""


FILE_NAME = "notyet.toml"
PYPROJECT = "pyproject.toml"
KIND_NOTYET = "notyet"
LEVELS = 12  # as far up as files "above" a project count (J5)
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
    if only or workspace or not cwd or (host in HOSTS and host_named(host).notyet_runs_hooks):
        return None
    state = state_folder(environ)
    if may_be_off(environ) or user_file(environ):
        return None

    def is_recorded(path: str) -> bool:
        return has_record(state, path)

    folders = dict.fromkeys(starts(cwd, project))
    found = [tomls_above(folder, is_recorded, LOCAL_SOURCE) for folder in folders]
    return list(dict.fromkeys(path for files in found for path, _, _ in files))


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's own `notyet.toml`; empty if there is none."""
    folder = user_folder(environ)
    path = light.join(folder, FILE_NAME)
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


def starts(cwd: str, project: str) -> tuple[str, str, str]:
    """Return the folders to search from: where the agent works, by two names, and its project."""
    place = real_folder(cwd)
    # A folder may have been replaced by a link to another one since it was trusted.
    given = light.abspath(cwd) if place else ""
    return place, given, in_work_tree_of(place, real_folder(project))


def tomls_above(
    cwd: str, is_recorded: Callable[[str], bool], source: FileSource, users: str = ""
) -> list[tuple[str, str, bool]]:
    """Return the project files that may count in a folder, nearest first (J6).

    With each come its place, under which it may have a record, and whether it exists.

    An agent could remove its gates by removing a file, by adding another one nearer to where it
    works, or by beginning a repository there. So a trusted file counts wherever it is above, even
    if it was removed, and an untrusted one hides nothing. Untrusted files are reported up to the
    top of the repository; further up only the nearest one, unless a trusted file is nearer.
    """
    found: list[tuple[str, str, bool]] = []
    trusted: set[str] = set()
    top = 0  # how many of them are in the repository
    for folder, place in placed(above(cwd)) if cwd else ():
        base = folder.rstrip("/")
        for path, at, is_there, is_known in tomls_in(base, place, is_recorded, source):
            if (is_known or is_there) and not (users and _is_same(path, users)):
                found.append((path, at, is_there))
                trusted.update((path,) if is_known else ())
        if found and not top and source.exists(f"{base}/.git"):
            top = len(found)
    return [one for number, one in enumerate(found) if one[0] in trusted or number < max(top, 1)]


def tomls_in(
    folder: str, place: str, is_recorded: Callable[[str], bool], source: FileSource
) -> list[tuple[str, str, bool, bool]]:
    """Return the files that a folder can have: path, place, if it exists and if it has a record."""
    at = place.rstrip("/")

    def is_known_at(name: str) -> bool:
        # A folder that was trusted by its path may have become a work tree since.
        is_own = at != folder and is_recorded(f"{folder}/{name}")
        return is_own or is_recorded(f"{at}/{name}")

    path, its_place = f"{folder}/{FILE_NAME}", f"{at}/{FILE_NAME}"
    toml = (path, its_place, source.exists(path), is_known_at(FILE_NAME))
    path, its_place = f"{folder}/{PYPROJECT}", f"{at}/{PYPROJECT}"
    is_there, is_known = source.exists(path), is_known_at(PYPROJECT)
    if is_there:  # it does not count beside a notyet.toml
        is_there = (is_known or not toml[2]) and has_table(path, source)
    return [toml, (path, its_place, is_there, is_known)]


def trusted_part(path: str, text: str) -> str:
    """Return what of a file's text is trusted: of a `pyproject.toml`, only our table."""
    if not path.endswith(f"/{PYPROJECT}"):
        return text
    if "[tool.notyet" not in text:
        return ""
    from notyet.config.pyproject import table_of

    return table_of(text)


def has_table(path: str, source: FileSource) -> bool:
    """Return True if a `pyproject.toml` has a table for notyet."""
    try:
        return bool(trusted_part(path, source.text_of(path)))
    except OSError:
        return False


def _is_same(one: str, other: str) -> bool:
    """Return True if two names are the same file: a project can be around the user's own."""
    return one == other or known_as(one) == known_as(other)


def known_as(path: str) -> str:
    """Return the one path that a file is trusted under, whatever links lead to it."""
    folder, name = light.split(light.abspath(path))
    return light.join(light.realpath(folder), name)


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


class LocalSource:
    """The files of this machine, as in `FileSource`."""

    problem = ""
    exists = staticmethod(exists)
    text_of = staticmethod(text_of)

    def is_executable(self, name: str) -> bool:
        """Return True if a file may be run."""
        return light.access(name, light.X_OK)

    def folder_id(self, name: str) -> str:
        """Return the inode of a file's folder; empty when the folder is gone."""
        try:
            return str(light.stat(about_folder(name)).st_ino)  # a remount changes the device
        except OSError:
            return ""


LOCAL_SOURCE = LocalSource()


def about_folder(path: str) -> str:
    """Return the folder whose identity counts for a file: `.mux` comes and goes with branches."""
    folder = light.dirname(path)
    return light.dirname(folder) if light.basename(folder).startswith(".") else folder


def root_of(cwd: str, source: FileSource = LOCAL_SOURCE) -> str:
    """Return the project that a folder belongs to: the nearest repository around it, or itself."""
    for folder in above(cwd):
        if source.exists(light.join(folder, ".git")):
            return folder
    return cwd


# Files of hosts.
