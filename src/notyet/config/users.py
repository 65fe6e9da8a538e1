"""Which files are the user's own, so that they count without being trusted first."""

from __future__ import annotations

from notyet import system
from notyet.config.files import root_of

_FOLDERS = (".config", ".claude", ".codex", ".mux", ".xum")  # of a user, by hosts and by us


def is_own(path: str, cwd: str) -> bool:
    """Tell whether a file is the user's: a project cannot pass off one of its own as theirs.

    A variable such as HOME may point into the project; the system's list of users does not.
    """
    root = root_of(cwd) if cwd else ""
    inside = root.rstrip("/") + "/"
    if not root or not (path.startswith(inside) or system.path.realpath(path).startswith(inside)):
        return True
    home = real_home()
    return bool(home) and path.startswith(tuple(f"{home}/{name}/" for name in _FOLDERS))


def real_home() -> str:
    """Return the user's home as the system knows it; empty for nobody's."""
    import pwd

    try:
        return system.path.realpath(pwd.getpwuid(system.getuid()).pw_dir)
    except (KeyError, OSError):
        return ""
