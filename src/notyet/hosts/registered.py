"""At which events a host's settings call our hook, as a hook can find out.

`install.settings` knows it exactly, and takes ten times as long to load.
"""

from __future__ import annotations

from notyet import light
from notyet.config.find import above, root_of, text_of
from notyet.light import home_folder, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.hosts.host import Host

_SEPARATORS = ".[]{}\"'=,:"  # of words in a settings file


def events_called_at(host: Host, folder: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the events at which settings call us, each with the first file that says so."""
    called: dict[str, str] = {}
    for path in settings_files(host, folder, environ):
        for event in events_in(path, host):
            called.setdefault(event, path)
    return called


def settings_files(host: Host, folder: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the files in which a host may have hooks, and some that it does not read."""
    places = []
    for scope, path in host.settings.items():
        inner, name = light.split(path)
        if scope == "user":
            folders = inner.split("/")
            depth = host.home_depth
            home = environ.get(host.home_variable)
            home = home or light.join(home_folder(environ), *folders[:depth])
            places.append((light.join(home, *folders[depth:]), name))
            continue
        here = light.real_folder(folder)
        root = root_of(here)
        around = [one for one in above(here) if len(one) >= len(root)]
        places += [(light.join(one, inner), name) for one in around]
    for managed in (host.managed, light.join(host.managed, "managed-settings.d")):
        if host.managed and light.isdir(managed):
            places += [(managed, name) for name in sorted(light.listdir(managed))]
    for place, name in dict.fromkeys(places):
        yield light.join(place, name)
        if name == "hooks.json":
            yield light.join(place, "config.toml")


def events_in(path: str, host: Host) -> list[str]:
    """Return the events at which a settings file calls our hook, as far as it can be read."""
    try:
        text = text_of(path)
        if "notyet" not in text:
            return []
        events = [*host.stops, *host.starts]
        if not path.endswith(".json"):
            for separator in _SEPARATORS:
                text = text.replace(separator, " ")
            words = set(text.split())
            return [event for event in events if event in words]
        hooks = loads(text)["hooks"]
        return [event for event in events if any(map(_is_ours, _handlers(hooks, event, host)))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _handlers(hooks: Mapping[str, list[Any]], event: str, host: Host) -> list[object]:
    items = hooks.get(event, [])
    if host.layout == "flat":
        return items
    return [handler for group in items for handler in group.get("hooks", ())]


def _is_ours(handler: object) -> bool:
    """Return True if an entry is our hook, not a plugin's, and the host waits for it."""
    if not isinstance(handler, dict) or handler.get("async") or handler.get("if"):
        return False
    words = [*handler.values(), *handler.get("args", ())]
    line = " ".join(word for word in words if isinstance(word, str))
    is_ours = "notyet" in line and " hook" in line and "--via plugin" not in line
    return handler.get("type", "command") == "command" and is_ours
