"""Which files configure a place: ours, and those of other hosts where they are wanted (J)."""

from __future__ import annotations

import os

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NATIVE = "notyet"
NAME = "notyet.toml"
READABLE = ("claude", "codex", "mux", "conclaude")  # hosts whose files can hold gates for us
_USERS = (".config", ".claude", ".codex", ".mux", ".xum")  # where hosts and we keep a user's files
_LEVELS = 12  # as far up as conclaude looks (J5)
_LOCAL = "settings.local.json"
_CONCLAUDE = (".conclaude.yaml", ".conclaude.yml")


class ConfigFile(Record, kw_only=True):
    """A file that may hold gates."""

    path: str
    kind: str  # "notyet", "claude", "codex", "codex-toml", "mux", "mux-stop", "conclaude", ...
    own: bool = False  # the user's, outside every project: obeyed without being trusted first
    is_gone: bool = False  # a person trusted it, and it is not there any more

    @property
    def command(self) -> str:
        """What a person runs to look at this file, and to trust it."""
        host = self.kind.split("-")[0]
        return "notyet trust" if host == NATIVE else f"notyet trust --read {host}"


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


def known_as(path: str) -> str:
    """Return the one name that a file is trusted under, however it was reached."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def above(folder: str) -> list[str]:
    """Return a folder and all that it lies in, nearest first."""
    folders = [folder]
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders


def root_of(cwd: str) -> str:
    """Return the project that a folder belongs to: the nearest repository around it, or itself."""
    for folder in above(cwd):
        if _exists(os.path.join(folder, ".git")):
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


def native_files(
    cwd: str, environ: Mapping[str, str], is_trusted: Callable[[str], bool]
) -> list[ConfigFile]:
    """Return the user's `notyet.toml` and the nearest one of the project, if they exist (J6).

    An agent could get rid of its gates by removing the file, or by putting another one nearer to
    where it works. So one that was trusted and then removed counts as there, and one that nobody
    trusted does not hide a trusted one further up.
    """
    found = []
    user = user_folder(environ)
    if user and _exists(os.path.join(user, NAME)):
        path = os.path.join(user, NAME)
        found.append(ConfigFile(path=path, kind=NATIVE, own=_is_own(path, cwd)))
    is_hidden = False
    for folder in above(cwd) if cwd else ():
        path = os.path.join(folder, NAME)
        is_there = _exists(path)
        if is_trusted(path) and not (found and _is_same(path, found[0].path)):
            found.append(ConfigFile(path=path, kind=NATIVE, is_gone=not is_there))
            break
        if is_there and not is_hidden and not (found and _is_same(path, found[0].path)):
            found.append(ConfigFile(path=path, kind=NATIVE))
            is_hidden = True  # by the nearest one that nobody trusted; one is enough to tell of
    return found


def host_files(
    host: str,
    cwd: str,
    environ: Mapping[str, str],
    is_trusted: Callable[[str], bool] = lambda _path: False,
) -> list[ConfigFile]:
    """Return the files of another host, in the order in which it reads them.

    One of a project that was trusted and then removed counts as there, as above.
    """
    home = _home(environ)
    if host == "mux":
        return _mux(cwd, home, is_trusted)
    candidates = []
    if host == "conclaude":
        for folder in above(cwd)[: _LEVELS + 1]:
            paths = [os.path.join(folder, name) for name in _CONCLAUDE]
            candidates += [ConfigFile(path=path, kind="conclaude") for path in paths]
        return _first(candidates, is_trusted)
    if host == "codex":
        user = environ.get("CODEX_HOME") or (os.path.join(home, ".codex") if home else "")
        user = user if os.path.isabs(user) else ""
        for folder, own in ((user, True), (os.path.join(cwd, ".codex"), False)):
            for name, kind in (("hooks.json", "codex"), ("config.toml", "codex-toml")):
                path = os.path.join(folder, name) if folder else ""
                candidates.append(ConfigFile(path=path, kind=kind, own=own and _is_own(path, cwd)))
    else:
        user = environ.get("CLAUDE_CONFIG_DIR") or (os.path.join(home, ".claude") if home else "")
        user = user if os.path.isabs(user) else ""
        theirs = os.path.join(cwd, ".claude")
        for folder, name in ((user, "settings.json"), (theirs, "settings.json"), (theirs, _LOCAL)):
            path = os.path.join(folder, name) if folder else ""
            own = folder == user and _is_own(path, cwd)
            candidates.append(ConfigFile(path=path, kind="claude", own=own))
    return _there(candidates, is_trusted)


def _mux(cwd: str, home: str, is_trusted: Callable[[str], bool]) -> list[ConfigFile]:
    """Return Mux's settings and executables; Mux was renamed, so `.xum` comes first (J2, J3)."""
    found = []
    for folder, names, own in (
        (home, ("settings.json",), True),
        (cwd, ("settings.json", _LOCAL), False),
    ):
        for name in names if folder else ():
            paths = [os.path.join(folder, base, name) for base in (".xum", ".mux")]
            files = [
                ConfigFile(path=path, kind="mux", own=own and _is_own(path, cwd)) for path in paths
            ]
            found += _first(files, is_trusted)
    for name, kind in (("stop", "mux-stop"), ("subagent_stop", "mux-subagent-stop")):
        places = [(folder, base) for folder in (cwd, home) if folder for base in (".xum", ".mux")]
        executables = []
        for folder, base in places:
            path = os.path.join(folder, base, name)
            own = folder == home and _is_own(path, cwd)
            executables.append(ConfigFile(path=path, kind=kind, own=own))
        found += _first(executables, is_trusted)
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
        if _exists(file.path):
            found.append(file)
        elif not file.own and is_trusted(file.path):
            found.append(ConfigFile(path=file.path, kind=file.kind, is_gone=True))
    return found


def _is_same(one: str, other: str) -> bool:
    """Tell whether two names are the user's own file, which a project can be around."""
    return one == other or known_as(one) == known_as(other)


def _exists(path: str) -> bool:
    try:
        os.lstat(path)
    except (OSError, ValueError):
        return False
    return True
