"""Several files of projects in force at once: they add up, and none weakens an outer one (J6).

A hook loads this module only where there is more than one such file.
"""

from __future__ import annotations

from notyet.config.find import parent, root_of
from notyet.config.load import is_projects
from notyet.core.limits import Limits
from notyet.core.record import replace
from notyet.light import basename, is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from notyet.config.compiled import FileSettings
    from notyet.config.files import ConfigFile
    from notyet.config.load import Layer


def arranged(layers: Sequence[Layer], members: Collection[str]) -> list[Layer]:
    """Return layers with the files of projects from the outermost to the innermost folder.

    No project file replaces a gate or observer of an outer one: where names are the same, the inner
    gate is called `folder:name`. So is every gate of a member (`members` are their files), since
    other members may count at the next stop. And no inner file loosens limits: else an agent could
    do so by going into a folder.
    """
    ours = iter(sorted((layer for layer in layers if is_projects(layer[0])), key=_depth))
    taken: set[str] = set()
    limits: dict[str, Any] = {}
    outermost = ""
    found = []
    for layer in layers:
        if not is_projects(layer[0]):
            limits |= layer[1].limits
            found.append(layer)
            continue
        file, settings = next(ours)
        if outermost:
            settings = _without_loose_limits(settings, limits)
        limits |= settings.limits
        outermost = outermost or parent(file.path)
        names = {*settings.left_out, *(gate.name for gate in settings.gates)}
        names.update(observer.name for observer in settings.observers)
        same = names if file.path in members else names & taken
        if same:
            settings = _renamed(settings, same, _label(file, outermost))
        taken |= names - same
        found.append((file, settings))
    return found


def _depth(layer: Layer) -> tuple[bool, int]:
    path = layer[0].path
    return is_remote(path), path.count("/")


def _renamed(settings: FileSettings, names: set[str], label: str) -> FileSettings:
    """Return settings whose gates and observers of these names have a label before their name."""

    def named(name: str) -> str:
        return f"{label}:{name}" if name in names else name

    return replace(
        settings,
        gates=tuple([replace(gate, name=named(gate.name)) for gate in settings.gates]),
        left_out=tuple(map(named, settings.left_out)),
        observers=tuple([replace(one, name=named(one.name)) for one in settings.observers]),
    )


def _label(file: ConfigFile, outermost: str) -> str:
    """Return the folder of a file in its repository, or else below the outermost project file."""
    folder = parent(file.path)
    for top in (root_of(folder, file.source), outermost):
        if folder.startswith(f"{top.rstrip('/')}/"):
            return folder[len(top) :].strip("/")
    return basename(file.path if folder == outermost else folder)


def _without_loose_limits(settings: FileSettings, outer: dict[str, Any]) -> FileSettings:
    """Return settings with only those limits that are stricter than the outer ones."""
    known = Limits(**outer)
    kept = {
        name: limit
        for name, limit in settings.limits.items()
        if _is_stricter(name, limit, getattr(known, name))
    }
    return settings if kept == settings.limits else replace(settings, limits=kept)


def _is_stricter(name: str, limit: int, outer: int) -> bool:
    """Return True if a limit sends an agent back more often than the outer one."""
    if name == "jobs":  # not about sending back; the outermost file says it
        return False
    if name == "wait_for_background":
        return bool(outer) and not limit
    if name == "max_blocks":
        return limit > outer
    return outer != 0 and (limit == 0 or limit > outer)  # 0: no limit
