"""Files that configure a place: their names, their owners, and which `notyet.toml` counts (J6)."""

from __future__ import annotations

from notyet import light
from notyet.config.find import (
    NAME,
    above,
    exists,
    known_as,
    natives,
    parent,
    text_of,
    user_file,
    user_folder,
)
from notyet.core.record import Record
from notyet.light import is_remote, real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    class Tree(Protocol):
        """Files by name: of this machine, or of a workspace on another one (M5).

        A file in a workspace has an address, `ssh://dev@box/srv/app/notyet.toml`, wherever a file
        here has a path: in messages, in records of trust, and as the source of gates.
        """

        @property
        def unseen(self) -> str:
            """Why the files could not be read; empty when they were."""

        def exists(self, name: str) -> bool:
            """Return True if there is a file of this name, even a dangling link."""

        def text_of(self, name: str) -> str:
            """Return a file's text, whatever bytes it holds. Raises OSError."""

        def is_executable(self, name: str) -> bool:
            """Return True if a file may be run."""

        def folder_id(self, name: str) -> str:
            """Return an id of a file's folder that another folder of that name does not have."""


__all__ = (
    "LOCAL_TREE",
    "NAME",
    "NATIVE",
    "ConfigFile",
    "LocalTree",
    "about_folder",
    "above",
    "exists",
    "is_config_name",
    "is_own",
    "known_as",
    "native_files",
    "own_native",
    "parent",
    "project_native",
    "real_folder",
    "root_of",
    "user_folder",
)

NATIVE = "notyet"


class LocalTree:
    """The files of this machine."""

    unseen = ""

    def exists(self, name: str) -> bool:
        """Return True if there is a file of this name, even a dangling link."""
        return exists(name)

    def text_of(self, name: str) -> str:
        """Return a file's text. Raises OSError."""
        return text_of(name)

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
        ConfigFile(path=path, kind=NATIVE, is_gone=not found and not tree.unseen, tree=tree)
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
