"""The user's folders by the XDG rules, from variables alone; a relative one there is ignored."""

from __future__ import annotations

from notyet import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the home that variables name; empty where there is none."""
    home = environ.get("HOME", "")
    return home if system.path.isabs(home) else ""


def config_home(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's configuration; empty where there is no home."""
    folder = environ.get("XDG_CONFIG_HOME", "")
    if system.path.isabs(folder):
        return folder
    home = home_folder(environ)
    return system.path.join(home, ".config") if home else ""


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder of what programs remember; empty where there is no home."""
    folder = environ.get("XDG_STATE_HOME", "")
    if system.path.isabs(folder):
        return folder
    home = environ["HOME"] if "HOME" in environ else system.path.expanduser("~")
    return system.path.join(home, ".local", "state") if system.path.isabs(home) else ""
