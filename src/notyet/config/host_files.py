"""Find the files of hosts that hold gates for a project, here or in a workspace (J1 to J5)."""

from __future__ import annotations

import os

from notyet.config.files import LOCAL_TREE, NAME, ConfigFile, above, is_own, root_of
from notyet.core.record import Record, replace
from notyet.hosts import host_named
from notyet.light import home_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from notyet.config.files import Tree
    from notyet.hosts.host import File, Host

_LEVELS = 12  # as far up as files "above" a project count (J5)


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
        if any(is_trusted(os.path.join(folder, name)) for name in names)
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
    """Do the same for a project that may be remote; the user's own files are always here."""
    data = host_named(host)
    found: list[ConfigFile] = []
    for group in data.hook_files.groups:
        candidates = [
            file for entry in group for file in _candidates(data, entry, project, environ)
        ]
        if group[0][0] == "above":  # both names in the nearest folder first
            candidates.sort(key=lambda file: -len(os.path.dirname(file.path)))
        found += _first(candidates, is_trusted)
    return found


def _candidates(
    host: Host, entry: File, project: Project, environ: Mapping[str, str]
) -> list[ConfigFile]:
    """Return where a file of a host can be."""
    scope, path, kind = entry
    if scope == "above":
        folders = above(project.folder)[: _LEVELS + 1]
        return [replace(project, folder=folder).file(path, kind) for folder in folders]
    folder, name = os.path.split(path)
    home = home_folder(environ)
    users = environ.get(host.home_variable) or (os.path.join(home, folder) if home else "")
    if scope == "user":
        return [project.users(users, name, kind)] if users else []
    if users == os.path.join(project.folder, folder):  # the user works in the home folder
        return [project.users(users, name, kind)] if scope == "local" else []
    return [project.file(path, kind)] if project.folder else []


def _first(files: list[ConfigFile], is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return the first file that counts, and untrusted ones before it.

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
