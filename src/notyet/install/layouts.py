"""Where the entries of a settings file stand. A host's `layout` says which of these it has:

groups  {"hooks": {"Stop": [{"hooks": [ENTRY]}]}}
flat    {"hooks": {"Stop": [ENTRY]}}
bare    {"Stop": [{"hooks": [ENTRY]}]}
list    {"hooks": [ENTRY]}, in which an entry names its event
file    a plugin that is ours as a whole (`install/plugin_file.py`); read as if it were flat
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import tomlkit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, MutableMapping
    from typing import Any

    from notyet.config.document import Path
    from notyet.hosts.host import Host


@dataclass(frozen=True, kw_only=True)
class Place:
    """One entry of a file: its event, its path, the group around it, and itself."""

    event: str
    path: Path
    group: Mapping[str, Any]
    handler: dict[str, Any]


class Layout:
    """The layout of one host's settings."""

    def __init__(self, host: Host) -> None:
        self.has_groups = host.layout == "groups"
        self.is_list = host.layout == "list"
        self.matchers = host.matchers
        keys = {value: key for key, value in host.handler.items() if isinstance(value, str)}
        self.command_key, self.timeout_key, self.event_key = (
            keys.get(f"{{{name}}}", "") for name in ("command", "timeout", "event")
        )

    def places(self, value: Any) -> Iterator[Place]:
        """Yield every entry of a file, in its order."""
        for event, path, items in self._lists(value):
            for at, item in enumerate(items):
                if not isinstance(item, dict):
                    continue
                if not self.has_groups:
                    name = item.get(self.event_key) if self.is_list else event
                    yield Place(event=str(name), path=(*path, at), group={}, handler=item)
                    continue
                inner = item.get("hooks")
                for index, handler in enumerate(inner if isinstance(inner, list) else ()):
                    if isinstance(handler, dict):
                        where = (*path, at, "hooks", index)
                        yield Place(event=event, path=where, group=item, handler=handler)

    def _lists(self, value: Any) -> Iterator[tuple[str, Path, list[Any]]]:
        """Yield the lists of entries, each with its event and its path."""
        hooks = value.get("hooks") if isinstance(value, dict) else None
        if self.is_list:
            yield "", ("hooks",), hooks if isinstance(hooks, list) else []
            return
        for event, items in hooks.items() if isinstance(hooks, dict) else ():
            if isinstance(items, list):
                yield event, ("hooks", event), items

    def obstacle(self, value: Mapping[str, Any], events: Iterable[str]) -> tuple[Path, str] | None:
        """Return what keeps entries from being added: its path, and what ought to stand there."""
        hooks = value.get("hooks", [] if self.is_list else {})
        if self.is_list:
            return None if isinstance(hooks, list) else (("hooks",), "a list")
        if not isinstance(hooks, dict):
            return ("hooks",), "a table"
        wrong = (event for event in events if not isinstance(hooks.get(event, []), list))
        return next(((("hooks", event), "a list") for event in wrong), None)

    def add(self, settings: MutableMapping[str, Any], event: str, handler: dict[str, Any]) -> None:
        """Add an entry at the end."""
        if self.is_list:
            if "hooks" not in settings:
                is_toml = isinstance(settings, tomlkit.TOMLDocument)
                settings["hooks"] = tomlkit.aot() if is_toml else []
            settings["hooks"].append(handler)
            return
        if "hooks" not in settings:
            settings["hooks"] = {}
        hooks = settings["hooks"]
        item: dict[str, Any] = handler
        if self.has_groups:
            matcher = {"matcher": self.matchers[event]} if event in self.matchers else {}
            item = {**matcher, "hooks": [handler]}
        if event in hooks:
            hooks[event].append(item)
        else:
            hooks[event] = [item]


def value_at(settings: Any, path: Path) -> Any:
    """Return what stands at a path."""
    for key in path:
        settings = settings[key]
    return settings


def drop(settings: MutableMapping[str, Any], paths: Iterable[Path]) -> None:
    """Remove entries, and the groups, events and block that are empty because of it."""
    for entry in sorted(paths, key=positions, reverse=True):
        path = entry
        del value_at(settings, path[:-1])[path[-1]]
        while path[1:] and not value_at(settings, path[:-1]):
            # With its last entry a group goes, whatever matcher it has.
            is_in_group = path[-2] == "hooks" and path[2:]
            path = path[:-2] if is_in_group else path[:-1]
            del value_at(settings, path[:-1])[path[-1]]


def positions(path: Path) -> tuple[int, ...]:
    """Return the positions in a path: in the list of an event, and in a group if there is one."""
    return tuple(key for key in path if isinstance(key, int))
