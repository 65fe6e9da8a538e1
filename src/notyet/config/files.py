"""Files that configure a place: what they are called, whose they are, and which ours is (J6)."""

from __future__ import annotations

from notyet import light
from notyet.config.find import (
    NAME,
    above,
    exists,
    known_as,
    natives,
    parent,
    user_file,
    user_folder,
)
from notyet.config.tree import LOCAL_TREE
from notyet.core.address import is_remote
from notyet.core.record import Record
from notyet.light import real_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.config.tree import Tree

__all__ = (
    "CONCLAUDE",
    "FOLDERS",
    "NAME",
    "NATIVE",
    "READABLE",
    "ConfigFile",
    "above",
    "exists",
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
READABLE = ("claude", "codex", "mux", "conclaude")  # hosts whose files can hold gates for us
FOLDERS = (".claude", ".codex", ".mux", ".xum")  # where hosts keep a project's files
CONCLAUDE = (".conclaude.yaml", ".conclaude.yml")


class ConfigFile(Record, kw_only=True):
    """A file that may hold gates."""

    path: str  # of one in a workspace, its address: ssh://host/path
    kind: str  # "notyet", "claude", "codex", "codex-toml", "mux", "mux-stop", "conclaude", ...
    own: bool = False  # the user's, outside every project: obeyed without being trusted first
    is_gone: bool = False  # a person trusted it, and it is not there any more
    tree: Tree = LOCAL_TREE  # what it is read from

    @property
    def command(self) -> str:
        """What a person runs to look at this file, and to trust it."""
        from notyet.config.document import quoted

        host = self.kind.split("-")[0]
        where = f" {quoted(self.project)}" if is_remote(self.path) else ""
        return f"notyet trust{where}" if host == NATIVE else f"notyet trust{where} --read {host}"

    @property
    def project(self) -> str:
        """The folder that it is about, which may be around the folder that it lies in."""
        folder = parent(self.path)
        is_around = self.kind != NATIVE and light.basename(folder) in FOLDERS
        return parent(folder) if is_around else folder


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
    if not path:
        return []
    from notyet.config.trust import is_own

    return [ConfigFile(path=path, kind=NATIVE, own=is_own(path, cwd))]


def project_native(
    cwd: str, is_trusted: Callable[[str], bool], tree: Tree, users: str = ""
) -> list[ConfigFile]:
    """Return the nearest `notyet.toml` of a project, after one that nobody trusted (J6)."""
    return [
        ConfigFile(path=path, kind=NATIVE, is_gone=not found and not tree.unseen, tree=tree)
        for path, found in natives(cwd, is_trusted, tree.exists, users)
    ]
