"""What has to change in a settings file, as steps that are the same for every syntax.

The steps are made from the file's value. They are carried out twice: on the value, and on the
text by a splicer that knows its syntax. The two must agree, or nothing is written.
"""

from __future__ import annotations

from copy import deepcopy

from notyet.core.record import Record
from notyet.hosts.own_line import is_own_hook, own_line
from notyet.install.entry import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from typing import Any, Literal

    from notyet.config.document import Path
    from notyet.install.entry import Entry
    from notyet.install.registered import Registration

_EVERYTHING = (None, "", "*")
# What would keep our own entry from being run, or from being waited for.
_HARMFUL = ("args", "if", "async", "asyncRewake", "once", "shell", "commandWindows")


class Step(Record, kw_only=True):
    """One change: put a value at a path, append one to the list there, or drop what is there."""

    do: Literal["put", "append", "drop"]
    path: Path
    value: Any = None


def steps_to_add(
    value: dict[str, Any], ours: Sequence[Registration], entries: Sequence[Entry]
) -> list[Step]:
    """Return what makes exactly these entries ours.

    The first entry of an event is mended where it stands, so that its position stays; further
    ones, those for some agents only, and those under other events go.
    """
    wanted = {entry.event: entry for entry in entries}
    kept, others = kept_and_others(ours, wanted)
    steps = [
        Step(do="put", path=path_of(one), value=_mended(one.handler, wanted[event]))
        for event, one in kept.items()
        if one.handler != _mended(one.handler, wanted[event])
    ]
    new = {entry.event: _group(entry) for entry in entries if entry.event not in kept}
    if new and "hooks" not in value:
        return [Step(do="put", path=("hooks",), value={e: [g] for e, g in new.items()})]
    for event, group in new.items():
        path = ("hooks", event)
        if event in value["hooks"]:
            steps.append(Step(do="append", path=path, value=group))
        else:
            steps.append(Step(do="put", path=path, value=[group]))
    # They go last, so that nothing is empty in between: the file would forget how it is written.
    return [*steps, *steps_to_drop(carried_out(value, steps), others)]


def kept_and_others(
    ours: Iterable[Registration], events: Container[str] = EVENTS
) -> tuple[dict[str, Registration], list[Registration]]:
    """Return the entries that `install` keeps, by their events, and those of ours that go."""
    kept: dict[str, Registration] = {}
    others = []
    for one in (one for one in ours if is_hook(one)):
        if one.event in events and one.event not in kept and not is_restricted(one):
            kept[one.event] = one
        else:
            others.append(one)
    return kept, others


def steps_to_remove(value: dict[str, Any], ours: Sequence[Registration]) -> list[Step]:
    """Return what takes our entries out, with what is empty because of it."""
    return steps_to_drop(value, [one for one in ours if is_hook(one)])


def steps_to_drop(value: dict[str, Any], entries: Iterable[Registration]) -> list[Step]:
    """Return the steps for entries to go; the last come first, so that paths stay right."""
    gone: dict[str, dict[int, set[int]]] = {}
    for one in entries:
        gone.setdefault(one.event, {}).setdefault(one.group, set()).add(one.index)
    if not gone:
        return []
    hooks = value["hooks"]
    steps: list[Step] = []
    empty_events = 0
    for event, groups in gone.items():
        found: list[Step] = []
        empty_groups = 0
        for at, indices in sorted(groups.items(), reverse=True):
            path = ("hooks", event, at)
            if len(indices) == len(hooks[event][at]["hooks"]):
                empty_groups += 1
                found.append(Step(do="drop", path=path))
            else:
                ordered = sorted(indices, reverse=True)
                found += [Step(do="drop", path=(*path, "hooks", index)) for index in ordered]
        if empty_groups == len(hooks[event]):
            empty_events += 1
            found = [Step(do="drop", path=("hooks", event))]
        steps += found
    return [Step(do="drop", path=("hooks",))] if empty_events == len(hooks) else steps


def carried_out(value: dict[str, Any], steps: Iterable[Step]) -> dict[str, Any]:
    """Return the value after these steps."""
    value = deepcopy(value)
    for step in steps:
        inside: Any = value
        for key in step.path[:-1]:
            is_missing = isinstance(inside, dict) and key not in inside
            inside = inside.setdefault(key, {}) if is_missing else inside[key]
        if step.do == "drop":
            del inside[step.path[-1]]
        elif step.do == "put":
            inside[step.path[-1]] = step.value
        else:
            inside[step.path[-1]].append(step.value)
    return value


def path_of(one: Registration) -> Path:
    """Return where an entry stands in its file's value."""
    return ("hooks", one.event, one.group, "hooks", one.index)


def is_hook(one: Registration) -> bool:
    """Tell whether an entry is what `install` writes, so that it may be replaced and removed."""
    return is_own_hook(one.command)


def is_mixed(one: Registration) -> bool:
    """Tell whether an entry runs our hook and other commands too, and so is a person's own."""
    said = own_line(one.command)
    return said is not None and said.verb == "hook" and not is_hook(one)


def is_restricted(one: Registration) -> bool:
    """Tell whether an entry is for some agents, or some starts, only."""
    return one.event != "Stop" and one.matcher not in _EVERYTHING


def is_dropped(one: Registration) -> bool:
    """Tell whether `install` replaces an entry by one for everybody, in the same file."""
    return one.event in EVENTS and is_hook(one) and is_restricted(one)


def _mended(handler: dict[str, Any], entry: Entry) -> dict[str, Any]:
    kept = {key: value for key, value in handler.items() if key not in _HARMFUL}
    return kept | entry.handler


def _group(entry: Entry) -> dict[str, Any]:
    assert entry.event in EVENTS
    return {"hooks": [entry.handler]}
