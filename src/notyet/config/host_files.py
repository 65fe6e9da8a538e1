"""Which files of other hosts hold gates for a project, here or in a workspace (J1 to J5)."""

from __future__ import annotations

import os

from notyet.config.files import CONCLAUDE, LOCAL_TREE, NAME, ConfigFile, above, is_own, root_of
from notyet.core.record import Record, replace
from notyet.light import home_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from notyet.config.files import Tree

_MUX = (".xum", ".mux")
_LEVELS = 12  # as far up as conclaude looks (J5)
_SHARED, _LOCAL = "settings.json", "settings.local.json"
_EXECUTABLES = ("stop", "subagent_stop")


def looked_for(hosts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names to look for in every folder, and those to look for in projects."""
    every, projects = [NAME, ".git"], []
    for host in sorted(hosts):
        if host == "conclaude":
            every += CONCLAUDE
        elif host == "mux":
            names = (_SHARED, _LOCAL, *_EXECUTABLES)
            projects += [f"{folder}/{name}" for folder in _MUX for name in names]
        elif host == "codex":
            projects += [".codex/hooks.json", ".codex/config.toml"]
        else:
            projects += [f".claude/{name}" for name in (_SHARED, _LOCAL)]
    return every, projects


def trusted_folders(cwd: str, hosts: Iterable[str], is_trusted: Callable[[str], bool]) -> list[str]:
    """Return the folders at and above a place in which a file of these hosts was trusted."""
    _, names = looked_for(hosts)
    return [
        folder
        for folder in above(cwd)
        if any(is_trusted(os.path.join(folder, name)) for name in names)
    ]


def folders_of(
    cwd: str, host: str, is_trusted: Callable[[str], bool], tree: Tree = LOCAL_TREE
) -> list[str]:
    """Return where a host's files count for somebody in a folder, the nearest folder last.

    That is the project. But an agent could get rid of hooks by beginning a repository of its own
    where it works, so whatever was trusted around that counts too.
    """
    found = {root_of(cwd, tree), *trusted_folders(cwd, (host,), is_trusted)}
    return [folder for folder in above(cwd)[::-1] if folder in found]


class Project(Record, kw_only=True):
    """Where a project's files are, and the user's."""

    folder: str  # a path here, or an address
    tree: Tree = LOCAL_TREE
    here: str = ""  # the folder on this machine that counts as the project's; empty: `folder`

    def file(self, name: str, kind: str) -> ConfigFile:
        """Return a file of the project."""
        return ConfigFile(path=os.path.join(self.folder, name), kind=kind, tree=self.tree)

    def users(self, folder: str, name: str, kind: str) -> ConfigFile:
        """Return a file in a folder of the user's, which may be none."""
        path = os.path.join(folder, name) if os.path.isabs(folder) else ""
        return ConfigFile(path=path, kind=kind, own=is_own(path, self.here or self.folder))


def host_files(
    host: str,
    cwd: str,
    environ: Mapping[str, str],
    is_trusted: Callable[[str], bool] = lambda _path: False,
) -> list[ConfigFile]:
    """Return the files of another host, in the order in which it reads them.

    One of a project that was trusted and then removed counts as there, as above.
    """
    return project_files(host, Project(folder=cwd), environ, is_trusted)


def project_files(
    host: str, project: Project, environ: Mapping[str, str], is_trusted: Callable[[str], bool]
) -> list[ConfigFile]:
    """Do the same for a project that may be elsewhere; the user's own files are always here."""
    home = home_folder(environ)
    if host == "mux":
        return _mux(project, home, is_trusted)
    if host == "conclaude":
        folders = above(project.folder)[: _LEVELS + 1]
        files = [
            replace(project, folder=folder).file(name, "conclaude")
            for folder in folders
            for name in CONCLAUDE
        ]
        return _first(files, is_trusted)
    if host == "codex":
        user = environ.get("CODEX_HOME") or (os.path.join(home, ".codex") if home else "")
        kinds = (("hooks.json", "codex"), ("config.toml", "codex-toml"))
        candidates = [project.users(user, name, kind) for name, kind in kinds]
        candidates += [project.file(f".codex/{name}", kind) for name, kind in kinds]
    else:
        user = environ.get("CLAUDE_CONFIG_DIR") or (os.path.join(home, ".claude") if home else "")
        candidates = [project.users(user, _SHARED, "claude")]
        if user == os.path.join(project.folder, ".claude"):  # they work in their home
            candidates.append(project.users(user, _LOCAL, "claude"))
        else:
            candidates += [project.file(f".claude/{name}", "claude") for name in (_SHARED, _LOCAL)]
    return _there(candidates, is_trusted)


def _mux(project: Project, home: str, is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return Mux's settings and executables; Mux was renamed, so `.xum` comes first (J2, J3)."""

    def theirs(name: str, kind: str) -> list[ConfigFile]:
        return [project.file(f"{base}/{name}", kind) for base in _MUX if project.folder]

    def users(name: str, kind: str) -> list[ConfigFile]:
        folders = [os.path.join(home, base) for base in _MUX if home]
        return [project.users(folder, name, kind) for folder in folders]

    found = _first(users(_SHARED, "mux"), is_trusted)
    for name in (_SHARED, _LOCAL):
        found += _first(theirs(name, "mux"), is_trusted)
    for name, kind in (("stop", "mux-stop"), ("subagent_stop", "mux-subagent-stop")):
        is_home = project.folder == home  # where all is the user's
        executables = [] if is_home else theirs(name, kind)
        found += _first([*executables, *users(name, kind)], is_trusted)
    return found


def _first(files: list[ConfigFile], is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return the first file that counts, after those before it that nobody trusted.

    Those are told of, and hide nothing: else an agent could put one before a trusted one.
    """
    found = []
    for file in _there(files, is_trusted):
        found.append(file)
        if file.own or is_trusted(file.path):
            break
    return found


def _there(files: list[ConfigFile], is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return the files that exist, and those that were trusted and removed."""
    found = []
    for file in files:
        if not file.path:
            continue
        if file.tree.exists(file.path):
            found.append(file)
        elif not file.own and is_trusted(file.path):
            is_gone = not file.tree.unseen
            found.append(
                ConfigFile(path=file.path, kind=file.kind, is_gone=is_gone, tree=file.tree)
            )
    return found
