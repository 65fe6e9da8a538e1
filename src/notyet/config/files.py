"""The files that may hold gates: a project's and the user's own, and those of hosts (J).

`find` tells whether there are any; what is here is needed only where there are.
"""

from __future__ import annotations

from notyet import light
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    LEVELS,
    LOCAL_SOURCE,
    PYPROJECT,
    above,
    parent,
    root_of,
    tomls_above,
    user_file,
)
from notyet.config.records import place_of, placed
from notyet.core.record import Record, replace
from notyet.hosts import host_named
from notyet.light import home_folder, is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from notyet.config.find import FileSource


class ConfigFile(Record, kw_only=True):
    """A file that may hold gates."""

    path: str  # of one in a workspace, its address: ssh://host/path
    kind: str  # KIND_NOTYET, or one of a host's kinds of files
    place: str = ""  # in its repository, as in `records`; empty: not looked up yet
    root: str = ""  # the project that a host's file is in; empty for the user's own ones
    is_users: bool = False  # the user's, outside every project: in force without trust
    is_gone: bool = False  # it was trusted, and removed since
    is_member: bool = False  # a project above names its folder as a member
    is_replaced: bool = False  # another folder has the name of the one in which it was trusted
    no_work_tree: str = ""  # why its folder does not count as a work tree, and has no trust
    source: FileSource = LOCAL_SOURCE

    @property
    def command(self) -> str:
        """The command that shows this file and trusts it."""
        from shlex import quote

        host = self.kind.split("-")[0]
        where = f" {quote(self.project)}" if is_remote(self.path) or self.is_member else ""
        return (
            f"notyet trust{where}" if host == KIND_NOTYET else f"notyet trust{where} --read {host}"
        )

    @property
    def distrust(self) -> str:
        """What to tell the user, if nothing of the file applies."""
        from notyet.core.text import visible

        said, command = " is not trusted", self.command
        if self.is_gone:
            from shlex import quote

            command = f"notyet trust --revoke {quote(self.path)}"
        if self.is_replaced:
            did = "replaced" if self.source.exists(self.project) else "removed or moved"
            said = f": the folder was {did} since you trusted it"
        elif self.no_work_tree:
            said += f", because {self.no_work_tree}"
            command = f"git worktree repair, or {command}"
        return f"{visible(self.path)}{visible(said)}; run: {visible(command)}"

    @property
    def project(self) -> str:
        """The folder that the file is about: around `.claude` and the like."""
        folder = parent(self.path)
        if self.kind == KIND_NOTYET:
            return folder
        from notyet.hosts.files import FOLDERS

        return parent(folder) if light.basename(folder) in FOLDERS else folder


def is_config_name(path: str) -> bool:
    """Return True if a path can only name a configuration file, not a folder."""
    from notyet.hosts.files import ABOVE, FOLDERS

    folder, name = light.split(path)
    return name in (FILE_NAME, PYPROJECT, *ABOVE) or light.basename(folder) in FOLDERS


def toml_files(
    cwd: str, environ: Mapping[str, str], is_recorded: Callable[[str], bool]
) -> list[ConfigFile]:
    """Return the user's `notyet.toml`, and those of the project, nearest first (J6)."""
    own = users_toml(cwd, environ)
    return own + project_tomls(cwd, is_recorded, LOCAL_SOURCE, own[0].path if own else "")


def users_toml(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the user's `notyet.toml`, if there is one."""
    path = user_file(environ)
    if not path:
        return []
    return [ConfigFile(path=path, kind=KIND_NOTYET, place=path, is_users=is_users(path, cwd))]


def project_tomls(
    cwd: str, is_recorded: Callable[[str], bool], source: FileSource, users: str = ""
) -> list[ConfigFile]:
    """Return the files of projects that may count in a folder, nearest first (J6)."""
    return [
        ConfigFile(
            path=path,
            kind=KIND_NOTYET,
            place=place,
            is_gone=not found and not source.problem,
            source=source,
        )
        for path, place, found in tomls_above(cwd, is_recorded, source, users)
    ]


def is_users(path: str, cwd: str) -> bool:
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


def looked_for(hosts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names to look for in every folder, and those to look for in projects."""
    every, projects = [FILE_NAME, PYPROJECT, ".git"], []
    for host in sorted(hosts):
        groups = host_named(host).hook_files.groups
        for scope, path, _ in (file for group in groups for file in group):
            if scope == "above":
                every.append(path)
            elif scope != "user":
                projects.append(path)
    return every, projects


def trusted_folders(
    cwd: str, hosts: Iterable[str], is_recorded: Callable[[str], bool]
) -> list[str]:
    """Return the folders at and above a place in which a file of these hosts was trusted."""
    _, names = looked_for(hosts)
    return [
        folder
        for folder, place in placed(above(cwd))
        if any(is_recorded(light.join(place, name)) for name in names)
    ]


def folders_of(
    cwd: str, host: str, is_recorded: Callable[[str], bool], source: FileSource = LOCAL_SOURCE
) -> list[str]:
    """Return the folders whose files of a host count in a folder, the nearest last.

    That is the project. But an agent could get rid of hooks by beginning a repository of its own
    where it works, so whatever was trusted around that counts too.
    """
    found = {root_of(cwd, source), *trusted_folders(cwd, (host,), is_recorded)}
    return [folder for folder in above(cwd)[::-1] if folder in found]


def host_files(
    host: str,
    folder: str,
    environ: Mapping[str, str],
    is_recorded: Callable[[str], bool] = lambda _path: False,
    *,
    source: FileSource = LOCAL_SOURCE,
    here: str = "",
) -> list[ConfigFile]:
    """Return the files of a host in a project, in the order in which the host reads them.

    One that was trusted and then removed counts as there. The project may be in a workspace with a
    `source` of its own; `here` is then the folder on this machine that counts as the project's. The
    user's own files are always here.
    """
    data = host_named(host)
    home = home_folder(environ)
    found: list[ConfigFile] = []
    for group in data.hook_files.groups:
        candidates: list[ConfigFile] = []
        for scope, path, kind in group:
            if scope == "above":
                candidates += [
                    ConfigFile(
                        path=light.join(around, path),
                        kind=kind,
                        place=light.join(place, path),
                        source=source,
                    )
                    for around, place in placed(above(folder)[: LEVELS + 1])
                ]
                continue
            inner, name = light.split(path)
            users = environ.get(data.home_variable) or (light.join(home, inner) if home else "")
            # A user may work in the home folder: then a project's file is the user's own.
            is_home = users == light.join(folder, inner)
            if scope == "user" or (is_home and scope == "local"):
                own = light.join(users, name) if light.isabs(users) else ""
                if own:
                    candidates.append(
                        ConfigFile(
                            path=own, kind=kind, place=own, is_users=is_users(own, here or folder)
                        )
                    )
            elif folder and not is_home:
                project = light.join(folder, path)
                place = place_of(project)
                candidates.append(
                    ConfigFile(path=project, kind=kind, place=place, root=folder, source=source)
                )
        if group[0][0] == "above":  # both names in the nearest folder first
            candidates.sort(key=lambda file: -len(light.dirname(file.path)))
        found += _first(candidates, is_recorded)
    return found


def _first(files: list[ConfigFile], is_recorded: Callable[[str], bool]) -> list[ConfigFile]:
    """Return the first file that counts, and untrusted ones before it.

    Those are reported, and hide nothing: else an agent could put one before a trusted one.
    """
    found = []
    for file in files:
        is_in_force = file.is_users or is_recorded(file.place)
        if file.source.exists(file.path):
            found.append(file)
        elif is_in_force and not file.is_users:  # removed since it was trusted
            found.append(replace(file, is_gone=not file.source.problem))
        else:
            continue
        if is_in_force:
            break
    return found
