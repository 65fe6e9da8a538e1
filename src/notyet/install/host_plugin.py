"""Where a host keeps notyet's plugin, if its user installed it and did not switch it off.

`Host.plugin` says where the host puts plugins and what it writes down about them. The hooks of the
plugin are then read like a settings file, of the scope "plugin".
"""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any

from notyet.config.document import BadSyntax
from notyet.config.readers import read_file, read_json, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from notyet.hosts.host import Host

NAME = "notyet"
_HOOKS = os.path.join("hooks", "hooks.json")


def hooks_file(host: Host, settings: Sequence[str], cwd: str, environ: Mapping[str, str]) -> str:
    """Return the file with the hooks of the plugin; empty if it is not installed, or off.

    `settings` are the settings files that the host reads, of which a later one counts more.
    """
    plugin = host.plugin
    home = _home(host, environ) if plugin is not None and plugin.folder else ""
    if plugin is None or not home:
        return ""
    own = [os.path.join(home, plugin.switches)] if plugin.switches else []
    values = [_value(path) for path in own or settings]
    is_on = _switch(values, plugin.key, os.path.realpath(cwd))
    marketplaces = _marketplaces(values)
    if is_on is None and plugin.is_on_by_itself:
        is_on = True
    folders = glob.glob(os.path.join(glob.escape(home), plugin.folder))
    folders += [os.path.join(source, "plugins", NAME) for source in marketplaces]
    found = [os.path.join(folder, _HOOKS) for folder in folders]
    there = [path for path in found if os.path.isfile(path)]
    return max(there, key=os.path.getmtime) if is_on and there else ""


def _home(host: Host, environ: Mapping[str, str]) -> str:
    """Return the folder of the user below which a host keeps all that it has."""
    named = environ.get(host.home_variable, "") if host.home_variable else ""
    folders = host.settings["user"].split("/")[: host.home_depth]
    home = named or os.path.join(environ.get("HOME", ""), *folders)
    return home if os.path.isabs(home) else ""


def _switch(values: Iterable[Mapping[str, Any]], key: str, cwd: str) -> bool | None:
    """Return whether the plugin is on; None if no file says it."""
    is_on = None
    for value in values:
        known = value.get(key) if key else value
        for name, said in known.items() if isinstance(known, dict) else ():
            if name.partition("@")[0] != NAME:
                continue
            if isinstance(said, bool):
                is_on = said
            elif isinstance(said, dict) and isinstance(said.get("enabled"), bool):
                is_on = said["enabled"]
            elif isinstance(said, dict) and isinstance(said.get("overrides"), list):
                is_on = _by_folder(said["overrides"], cwd)
    return is_on


def _by_folder(rules: Iterable[object], cwd: str) -> bool:
    """Return what the last rule says that is for a folder, as `!/home/ada/*`."""
    is_on = True
    for rule in rules:
        if isinstance(rule, str):
            folder = rule.removeprefix("!").rstrip("*").rstrip("/")
            if f"{cwd}/".startswith(f"{folder}/"):
                is_on = not rule.startswith("!")
    return is_on


def _marketplaces(values: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the folders of this machine that are our marketplace: its plugins are used there."""
    for value in values:
        found: Any = value
        for key in ("extraKnownMarketplaces", NAME, "source", "path"):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, str):
            yield found


def _value(path: str) -> dict[str, Any]:
    """Return what a file says; nothing for one that cannot be read, of which others complain."""
    if not os.path.isfile(path):
        return {}
    text, _ = read_file(path)
    try:
        value = (
            read_toml(text or "").value if path.endswith(".toml") else read_json(text or "{}").value
        )
    except BadSyntax:
        return {}
    return value if isinstance(value, dict) else {}
