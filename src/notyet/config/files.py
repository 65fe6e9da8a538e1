"""Which files configure a place: ours, and those of other hosts where they are wanted (J)."""

from __future__ import annotations

import os

from notyet.config.tree import LOCAL_TREE
from notyet.core.record import Record, replace
from notyet.core.remote import is_remote, remote_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from notyet.config.tree import Tree

NATIVE = "notyet"
NAME = "notyet.toml"
READABLE = ("claude", "codex", "mux", "conclaude")  # hosts whose files can hold gates for us
_USERS = (".config", ".claude", ".codex", ".mux", ".xum")  # where hosts and we keep a user's files
_FOLDERS = (".claude", ".codex", ".mux", ".xum")  # where hosts keep a project's files
_MUX = (".xum", ".mux")
_LEVELS = 12  # as far up as conclaude looks (J5)
_SHARED, _LOCAL = "settings.json", "settings.local.json"
_CONCLAUDE = (".conclaude.yaml", ".conclaude.yml")
_EXECUTABLES = ("stop", "subagent_stop")


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
        host = self.kind.split("-")[0]
        where = f" {quoted(self.project)}" if is_remote(self.path) else ""
        return f"notyet trust{where}" if host == NATIVE else f"notyet trust{where} --read {host}"

    @property
    def project(self) -> str:
        """The folder that it is about, which may be around the folder that it lies in."""
        folder = parent(self.path)
        return parent(folder) if os.path.basename(folder) in _FOLDERS else folder


def user_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's own configuration; empty where there is no home."""
    config = environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(config):
        return os.path.join(config, "notyet")
    home = _home(environ)
    return os.path.join(home, ".config", "notyet") if home else ""


def _home(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    return home if os.path.isabs(home) else ""


def real_folder(cwd: str) -> str:
    """Return where a folder really lies; empty for a name that the system cannot take."""
    try:
        return os.path.realpath(cwd) if cwd else ""
    except (OSError, ValueError):  # a NUL, or half a character
        return ""


def parent(name: str) -> str:
    """Return the folder that a file or a folder lies in, here or in a workspace."""
    if not is_remote(name):
        return os.path.dirname(name)
    place = remote_from(name)
    return place.at(os.path.dirname(place.path)).url


def is_config_name(path: str) -> bool:
    """Tell whether a path can only be meant as a file of configuration, not as a folder."""
    folder, name = os.path.split(path)
    return name in (NAME, *_CONCLAUDE) or os.path.basename(folder) in _FOLDERS


def quoted(word: str) -> str:
    """Return a word as it can be pasted into a shell."""
    if all(sign.isalnum() or sign in "-_./:@[]" for sign in word) and word.isascii():
        return word if "[" not in word else f"'{word}'"
    return "'" + word.replace("'", "'\\''") + "'"


def known_as(path: str) -> str:
    """Return the one name that a file is trusted under, however it was reached."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def above(folder: str) -> list[str]:
    """Return a folder and all that it lies in, nearest first."""
    folders = [folder]
    while folder != parent(folder):
        folder = parent(folder)
        folders.append(folder)
    return folders


def root_of(cwd: str, tree: Tree = LOCAL_TREE) -> str:
    """Return the project that a folder belongs to: the nearest repository around it, or itself."""
    for folder in above(cwd):
        if tree.exists(os.path.join(folder, ".git")):
            return folder
    return cwd


def _is_own(path: str, cwd: str) -> bool:
    """Tell whether a file is the user's: a project cannot pass off one of its own as theirs.

    A variable such as HOME may point into the project; the system's list of users does not.
    """
    root = root_of(cwd) if cwd else ""
    inside = root.rstrip("/") + "/"
    if not root or not (path.startswith(inside) or os.path.realpath(path).startswith(inside)):
        return True
    home = real_home()
    return bool(home) and path.startswith(tuple(f"{home}/{name}/" for name in _USERS))


def real_home() -> str:
    """Return the user's home as the system knows it; empty for nobody's."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    except (KeyError, OSError):
        return ""


def looked_for(hosts: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the names to look for in every folder, and those to look for in projects."""
    every, projects = [NAME, ".git"], []
    for host in sorted(hosts):
        if host == "conclaude":
            every += _CONCLAUDE
        elif host == "mux":
            names = (_SHARED, _LOCAL, *_EXECUTABLES)
            projects += [f"{folder}/{name}" for folder in _MUX for name in names]
        elif host == "codex":
            projects += [".codex/hooks.json", ".codex/config.toml"]
        else:
            projects += [f".claude/{name}" for name in (_SHARED, _LOCAL)]
    return every, projects


def native_files(
    cwd: str, environ: Mapping[str, str], is_trusted: Callable[[str], bool]
) -> list[ConfigFile]:
    """Return the user's `notyet.toml` and the nearest one of the project, if they exist (J6)."""
    own = own_native(cwd, environ)
    return own + project_native(cwd, is_trusted, LOCAL_TREE, own[0].path if own else "")


def own_native(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the user's `notyet.toml`, if there is one."""
    user = user_folder(environ)
    path = os.path.join(user, NAME)
    if not user or not LOCAL_TREE.exists(path):
        return []
    return [ConfigFile(path=path, kind=NATIVE, own=_is_own(path, cwd))]


def project_native(
    cwd: str, is_trusted: Callable[[str], bool], tree: Tree, users: str = ""
) -> list[ConfigFile]:
    """Return the nearest `notyet.toml` of a project, which is not the user's (J6).

    An agent could get rid of its gates by removing the file, or by putting another one nearer to
    where it works. So one that was trusted and then removed counts as there, and one that nobody
    trusted does not hide a trusted one further up.
    """
    found = []
    is_hidden = False
    for folder in above(cwd) if cwd else ():
        path = os.path.join(folder, NAME)
        is_there = tree.exists(path)
        if is_trusted(path) and not (users and _is_same(path, users)):
            is_gone = not is_there and not tree.unseen
            found.append(ConfigFile(path=path, kind=NATIVE, is_gone=is_gone, tree=tree))
            break
        if is_there and not is_hidden and not (users and _is_same(path, users)):
            found.append(ConfigFile(path=path, kind=NATIVE, tree=tree))
            is_hidden = True  # by the nearest one that nobody trusted; one is enough to tell of
    return found


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
        return ConfigFile(path=path, kind=kind, own=_is_own(path, self.here or self.folder))


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
    home = _home(environ)
    if host == "mux":
        return _mux(project, home, is_trusted)
    if host == "conclaude":
        folders = above(project.folder)[: _LEVELS + 1]
        files = [
            replace(project, folder=folder).file(name, "conclaude")
            for folder in folders
            for name in _CONCLAUDE
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


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names are the user's own file, which a project can be around."""
    return one == other or known_as(one) == known_as(other)
