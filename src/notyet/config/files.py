"""Files that configure a place: their names, their owners, and which of them count (J1 to J6)."""

from __future__ import annotations

from notyet import light
from notyet.config.find import NAME, above, exists, natives, parent, text_of, user_file
from notyet.core.record import Record
from notyet.hosts import host_named
from notyet.light import home_folder, is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Protocol

    class Tree(Protocol):
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


NATIVE = "notyet"
_LEVELS = 12  # as far up as files "above" a project count (J5)


class LocalTree:
    """The files of this machine, as in `Tree`."""

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


LOCAL_TREE = LocalTree()


class ConfigFile(Record, kw_only=True):
    """A file that may hold gates."""

    path: str  # of one in a workspace, its address: ssh://host/path
    kind: str  # NATIVE, or one of a host's kinds of files
    own: bool = False  # the user's, outside every project: in force without trust
    is_gone: bool = False  # it was trusted, and removed since
    tree: Tree = LOCAL_TREE

    @property
    def command(self) -> str:
        """The command that shows this file and trusts it."""
        from shlex import quote

        host = self.kind.split("-")[0]
        where = f" {quote(self.project)}" if is_remote(self.path) else ""
        return f"notyet trust{where}" if host == NATIVE else f"notyet trust{where} --read {host}"

    @property
    def project(self) -> str:
        """The folder that the file is about: around `.claude` and the like."""
        folder = parent(self.path)
        if self.kind == NATIVE:
            return folder
        from notyet.hosts.files import FOLDERS

        return parent(folder) if light.basename(folder) in FOLDERS else folder


def is_config_name(path: str) -> bool:
    """Return True if a path can only name a configuration file, not a folder."""
    from notyet.hosts.files import ABOVE, FOLDERS

    folder, name = light.split(path)
    return name in (NAME, *ABOVE) or light.basename(folder) in FOLDERS


def about_folder(path: str) -> str:
    """Return the folder whose identity counts for a file: `.mux` comes and goes with branches."""
    folder = light.dirname(path)
    return light.dirname(folder) if light.basename(folder).startswith(".") else folder


def root_of(cwd: str, tree: Tree = LOCAL_TREE) -> str:
    """Return the project that a folder belongs to: the nearest repository around it, or itself."""
    for folder in above(cwd):
        if tree.exists(light.join(folder, ".git")):
            return folder
    return cwd


def native_files(
    cwd: str, environ: Mapping[str, str], is_trusted: Callable[[str], bool]
) -> list[ConfigFile]:
    """Return the user's `notyet.toml` and the nearest one of the project, if they exist (J6)."""
    own = own_native(cwd, environ)
    return own + project_native(cwd, is_trusted, LOCAL_TREE, own[0].path if own else "")


def own_native(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the user's `notyet.toml`, if there is one."""
    path = user_file(environ)
    return [ConfigFile(path=path, kind=NATIVE, own=is_own(path, cwd))] if path else []


def project_native(
    cwd: str, is_trusted: Callable[[str], bool], tree: Tree, users: str = ""
) -> list[ConfigFile]:
    """Return the nearest `notyet.toml` of a project, after an untrusted one before it (J6)."""
    return [
        ConfigFile(path=path, kind=NATIVE, is_gone=not found and not tree.problem, tree=tree)
        for path, found in natives(cwd, is_trusted, tree.exists, users)
    ]


def is_own(path: str, cwd: str) -> bool:
    """Return True if a file is the user's, not one that a project passes off as the user's.

    A variable such as HOME may point into the project; the system's list of users does not.
    """
    root = root_of(cwd) if cwd else ""
    inside = root.rstrip("/") + "/"
    if not root or not (path.startswith(inside) or light.realpath(path).startswith(inside)):
        return True
    from notyet.hosts.files import FOLDERS

    home = real_home()
    own = tuple(f"{home}/{name}/" for name in (".config", *FOLDERS))
    return bool(home) and path.startswith(own)


def real_home() -> str:
    """Return the user's home as the system knows it; empty if it knows none."""
    import pwd

    try:
        return light.realpath(pwd.getpwuid(light.getuid()).pw_dir)
    except (KeyError, OSError):
        return ""


# Files of hosts.


def looked_for(hosts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names to look for in every folder, and those to look for in projects."""
    every, projects = [NAME, ".git"], []
    for host in sorted(hosts):
        groups = host_named(host).hook_files.groups
        for scope, path, _ in (file for group in groups for file in group):
            if scope == "above":
                every.append(path)
            elif scope != "user":
                projects.append(path)
    return every, projects


def trusted_folders(cwd: str, hosts: Iterable[str], is_trusted: Callable[[str], bool]) -> list[str]:
    """Return the folders at and above a place in which a file of these hosts was trusted."""
    _, names = looked_for(hosts)
    return [
        folder
        for folder in above(cwd)
        if any(is_trusted(light.join(folder, name)) for name in names)
    ]


def folders_of(
    cwd: str, host: str, is_trusted: Callable[[str], bool], tree: Tree = LOCAL_TREE
) -> list[str]:
    """Return the folders whose files of a host count in a folder, the nearest last.

    That is the project. But an agent could get rid of hooks by beginning a repository of its own
    where it works, so whatever was trusted around that counts too.
    """
    found = {root_of(cwd, tree), *trusted_folders(cwd, (host,), is_trusted)}
    return [folder for folder in above(cwd)[::-1] if folder in found]


def host_files(
    host: str,
    folder: str,
    environ: Mapping[str, str],
    is_trusted: Callable[[str], bool] = lambda _path: False,
    *,
    tree: Tree = LOCAL_TREE,
    here: str = "",
) -> list[ConfigFile]:
    """Return the files of a host in a project, in the order in which the host reads them.

    One that was trusted and then removed counts as there. The project may be in a workspace with a
    `tree` of its own; `here` is then the folder on this machine that counts as the project's. The
    user's own files are always here.
    """
    data = host_named(host)
    home = home_folder(environ)
    found: list[ConfigFile] = []
    for group in data.hook_files.groups:
        candidates: list[ConfigFile] = []
        for scope, path, kind in group:
            if scope == "above":
                places = above(folder)[: _LEVELS + 1]
                paths = [light.join(place, path) for place in places]
                candidates += [ConfigFile(path=path, kind=kind, tree=tree) for path in paths]
                continue
            inner, name = light.split(path)
            users = environ.get(data.home_variable) or (light.join(home, inner) if home else "")
            # A user may work in the home folder: then a project's file is the user's own.
            is_home = users == light.join(folder, inner)
            if scope == "user" or (is_home and scope == "local"):
                own = light.join(users, name) if light.isabs(users) else ""
                if own:
                    candidates.append(
                        ConfigFile(path=own, kind=kind, own=is_own(own, here or folder))
                    )
            elif folder and not is_home:
                project = light.join(folder, path)
                candidates.append(ConfigFile(path=project, kind=kind, tree=tree))
        if group[0][0] == "above":  # both names in the nearest folder first
            candidates.sort(key=lambda file: -len(light.dirname(file.path)))
        found += _first(candidates, is_trusted)
    return found


def _first(files: list[ConfigFile], is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return the first file that counts, and untrusted ones before it.

    Those are reported, and hide nothing: else an agent could put one before a trusted one.
    """
    found = []
    for file in files:
        is_in_force = file.own or is_trusted(file.path)
        if file.tree.exists(file.path):
            found.append(file)
        elif is_in_force and not file.own:  # removed since it was trusted
            is_gone = not file.tree.problem
            found.append(
                ConfigFile(path=file.path, kind=file.kind, is_gone=is_gone, tree=file.tree)
            )
        else:
            continue
        if is_in_force:
            break
    return found
