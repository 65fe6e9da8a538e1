"""Files that configure a place: what they are called, whose they are, and which ours is (J6)."""

from __future__ import annotations

from notyet import system
from notyet.config.tree import LOCAL_TREE
from notyet.core.record import Record
from notyet.core.remote import is_remote, remote_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.config.tree import Tree

NATIVE = "notyet"
NAME = "notyet.toml"
READABLE = ("claude", "codex", "mux", "conclaude")  # hosts whose files can hold gates for us
_USERS = (".config", ".claude", ".codex", ".mux", ".xum")  # where hosts and we keep a user's files
_FOLDERS = (".claude", ".codex", ".mux", ".xum")  # where hosts keep a project's files
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
        host = self.kind.split("-")[0]
        where = f" {quoted(self.project)}" if is_remote(self.path) else ""
        return f"notyet trust{where}" if host == NATIVE else f"notyet trust{where} --read {host}"

    @property
    def project(self) -> str:
        """The folder that it is about, which may be around the folder that it lies in."""
        folder = parent(self.path)
        is_around = self.kind != NATIVE and system.path.basename(folder) in _FOLDERS
        return parent(folder) if is_around else folder


def user_folder(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's own configuration; empty where there is no home."""
    config = environ.get("XDG_CONFIG_HOME", "")
    if system.path.isabs(config):
        return system.path.join(config, "notyet")
    home = home_folder(environ)
    return system.path.join(home, ".config", "notyet") if home else ""


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the home that variables name; empty where there is none."""
    home = environ.get("HOME", "")
    return home if system.path.isabs(home) else ""


def real_folder(cwd: str) -> str:
    """Return where a folder really lies; empty for a name that the system cannot take."""
    try:
        return system.path.realpath(cwd) if cwd else ""
    except (OSError, ValueError):  # a NUL, or half a character
        return ""


def parent(name: str) -> str:
    """Return the folder that a file or a folder lies in, here or in a workspace."""
    if not is_remote(name):
        return system.path.dirname(name)
    place = remote_from(name)
    return place.at(system.path.dirname(place.path)).url


def is_config_name(path: str) -> bool:
    """Tell whether a path can only be meant as a file of configuration, not as a folder."""
    folder, name = system.path.split(path)
    return name in (NAME, *CONCLAUDE) or system.path.basename(folder) in _FOLDERS


def quoted(word: str) -> str:
    """Return a word as it can be pasted into a shell."""
    if all(sign.isalnum() or sign in "-_./:@[]" for sign in word) and word.isascii():
        return word if "[" not in word else f"'{word}'"
    return "'" + word.replace("'", "'\\''") + "'"


def known_as(path: str) -> str:
    """Return the one name that a file is trusted under, however it was reached."""
    folder, name = system.path.split(system.path.abspath(path))
    return system.path.join(system.path.realpath(folder), name)


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
        if tree.exists(system.path.join(folder, ".git")):
            return folder
    return cwd


def is_own(path: str, cwd: str) -> bool:
    """Tell whether a file is the user's: a project cannot pass off one of its own as theirs.

    A variable such as HOME may point into the project; the system's list of users does not.
    """
    root = root_of(cwd) if cwd else ""
    inside = root.rstrip("/") + "/"
    if not root or not (path.startswith(inside) or system.path.realpath(path).startswith(inside)):
        return True
    home = real_home()
    return bool(home) and path.startswith(tuple(f"{home}/{name}/" for name in _USERS))


def real_home() -> str:
    """Return the user's home as the system knows it; empty for nobody's."""
    import pwd

    try:
        return system.path.realpath(pwd.getpwuid(system.getuid()).pw_dir)
    except (KeyError, OSError):
        return ""


def native_files(
    cwd: str, environ: Mapping[str, str], is_trusted: Callable[[str], bool]
) -> list[ConfigFile]:
    """Return the user's `notyet.toml` and the nearest one of the project, if they exist (J6)."""
    own = own_native(cwd, environ)
    return own + project_native(cwd, is_trusted, LOCAL_TREE, own[0].path if own else "")


def own_native(cwd: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the user's `notyet.toml`, if there is one."""
    user = user_folder(environ)
    path = system.path.join(user, NAME)
    if not user or not LOCAL_TREE.exists(path):
        return []
    return [ConfigFile(path=path, kind=NATIVE, own=is_own(path, cwd))]


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
        path = system.path.join(folder, NAME)
        is_there = tree.exists(path)
        if is_trusted(path) and not (users and _is_same(path, users)):
            is_gone = not is_there and not tree.unseen
            found.append(ConfigFile(path=path, kind=NATIVE, is_gone=is_gone, tree=tree))
            break
        if is_there and not is_hidden and not (users and _is_same(path, users)):
            found.append(ConfigFile(path=path, kind=NATIVE, tree=tree))
            is_hidden = True  # by the nearest one that nobody trusted; one is enough to tell of
    return found


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names are the user's own file, which a project can be around."""
    return one == other or known_as(one) == known_as(other)
