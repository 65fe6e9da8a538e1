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
    return _folder(environ, "XDG_CONFIG_HOME", ".config")


def data_home(environ: Mapping[str, str]) -> str:
    """Return the folder of what programs keep for the user; empty where there is no home."""
    return _folder(environ, "XDG_DATA_HOME", ".local/share")


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder of what programs remember; empty where there is no home."""
    if "HOME" not in environ:
        environ = {**environ, "HOME": system.path.expanduser("~")}
    return _folder(environ, "XDG_STATE_HOME", ".local/state")


def _folder(environ: Mapping[str, str], name: str, usual: str) -> str:
    """Return the folder that a variable names, else the usual one below the home."""
    folder = environ.get(name, "")
    if system.path.isabs(folder):
        return folder
    home = home_folder(environ)
    return system.path.join(home, usual) if home else ""
