"""What can be wrong with Claude Code: its settings, its switches, its trust in a folder."""

from __future__ import annotations

import os

from notyet.config.files import real_folder, root_of
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.install.entry import EVENTS
from notyet.install.place import Place
from notyet.install.registered import registrations
from notyet.report.faults.claude_doctor import SINCE, examined
from notyet.report.faults.claude_folder import folder_faults
from notyet.report.faults.claude_shapes import shapes, why_refused
from notyet.report.faults.contents import read_places
from notyet.report.faults.entries import entry_faults, install_again, missing_stops
from notyet.report.faults.fault import is_bad
from notyet.report.faults.fault import place as at
from notyet.report.faults.look import merged
from notyet.report.faults.versions import find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.install.registered import Registration
    from notyet.report.faults.claude_doctor import Diagnosis
    from notyet.report.faults.contents import Content
    from notyet.report.faults.fault import Fault
    from notyet.report.faults.look import Look

OLDEST = (2, 0, 42)  # SubagentStop names its agent
ADVISED = (2, 1, 163)  # a stop may answer with context, so that no final answer is lost
_AT_HOME_ONLY = (2, 1, 197)  # the newest that reads local settings only where it is started
_LONGEST = 2_147_483  # seconds; older ones, told of more, do not wait at all
_SIMPLE = "CLAUDE_CODE_SIMPLE"
_ON = ("1", "true", "yes", "on")
_PROTECTED = "managed"


def judged(look: Look) -> tuple[Look, list[Fault]]:
    """Judge everything but the program itself; return what Claude Code takes, and what is wrong."""
    asked = examined(look)
    broken = {c.place.path: found for c in look.contents for found in _file(look, c, asked)}
    usable = look.without({*broken, *_not_read(look)})
    refused = _refused(usable, asked)
    working = usable.only(r for r in usable.registrations if r.where not in refused)
    is_needed = bool(missing_stops(working))
    # Without need, what counts stands elsewhere.
    found = [one if is_needed or _is_fatal(look, one) else _mild(one) for one in broken.values()]
    found += _unread_files(look, is_needed=is_needed)
    elsewhere = _elsewhere(look, working)
    if not (is_needed and is_bad((*found, *elsewhere))):  # else they explain what is missing
        found += entry_faults(usable, working)
    found += merged(_told(usable, working, refused))
    found += elsewhere
    if not is_bad(found):
        found += _unasked(look, asked)
    found += [*_disabled(usable), *_managed_only(usable)]
    return working, [*found, *folder_faults(look)]


def variables(contents: Sequence[Content]) -> dict[str, tuple[str, str]]:
    """Return the variables that the settings add for hooks: the value of each, and its place."""
    added: dict[str, tuple[str, str]] = {}
    for content in contents:
        said = content.get("env")
        for name, value in said.items() if isinstance(said, dict) else ():
            if isinstance(value, str | int | float):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                added[name] = (text, content.where("env", name))
    return added


def _mild(one: Fault) -> Fault:
    return replace(one, level="warning")


def _is_fatal(look: Look, one: Fault) -> bool:
    """Tell whether Claude Code does not even start: with managed settings that are no JSON."""
    is_managed = any(
        content.place.scope == _PROTECTED and one.where.startswith(at(content.place.path))
        for content in look.contents
    )
    return is_managed and one.code == "file-invalid" and look.version.parts >= SINCE


def _file(look: Look, content: Content, asked: Diagnosis) -> Iterator[Fault]:
    """Say why Claude Code takes nothing from a file: what it says itself, or what we see."""
    effect = "Claude Code takes nothing from it"
    if content.mistake is not None:
        yield look.invalid(content.mistake)
        return
    wrong: list[tuple[tuple[str | int, ...], str]] = [
        (one.key, f"of {'.'.join(one.key)}: {one.why}")
        for one in asked.complaints
        if one.is_whole and one.path == content.place.path
    ]
    if asked.problem:
        wrong += [
            (path, f"{'.'.join(map(str, path))} is not {kind}") for path, kind in shapes(content)
        ]
    for path, why in wrong[:1]:
        what = f"{effect}, because {why}."
        yield look.fault("file-dropped", what, where=content.where(*path), fix="correct it")


def _unread_files(look: Look, *, is_needed: bool) -> Iterator[Fault]:
    """Say which files we cannot read as Claude Code does; they may hold what is needed."""
    for content in look.contents:
        if content.doubt is not None:
            doubt = content.doubt
            found = look.fault(
                "file-unread",
                f"notyet cannot read it as Claude Code may: {doubt.message}.",
                where=at(doubt.file, doubt.line, doubt.column),
                fix=doubt.hint or "write it in a simpler way",
            )
            yield replace(found, level="fault") if is_needed else found


def _unasked(look: Look, asked: Diagnosis) -> Iterator[Fault]:
    """Say that Claude Code was not asked; of one that is missing or very old, more is told."""
    if asked.problem and look.registrations and look.version.parts >= ADVISED:
        newer = f"upgrade to {'.'.join(map(str, SINCE))}, or " * (look.version.parts < SINCE)
        yield look.fault(
            "settings-not-asked",
            f"{asked.problem}, so that it was not found out whether it drops a settings file for "
            "a value of the wrong kind.",
            where=look.program,
            fix=f"{newer}look into /doctor of claude",
        )


def _not_read(look: Look) -> Iterator[str]:
    """Yield the files that this version reads only if it is started elsewhere."""
    if not look.version.parts or look.version.parts > _AT_HOME_ONLY:
        return
    for content in look.contents:
        if content.place.scope == "local" and not _is_here(look, content.place):
            yield content.place.path


def _is_here(look: Look, place: Place) -> bool:
    folder = os.path.dirname(os.path.dirname(place.path))
    return os.path.realpath(folder) == os.path.realpath(look.cwd)


def _refused(look: Look, asked: Diagnosis) -> dict[str, str]:
    """Return why Claude Code leaves out entries of ours, by their places."""
    found = {}
    for entry in look.registrations:
        why = why_refused(entry.handler, entry.matcher)
        timeout = entry.timeout or 0
        if not why and timeout > _LONGEST and look.version.parts < SINCE:
            why = f"its timeout is above {_LONGEST} s"
        shell = entry.handler.get("shell")
        if not why and shell == "powershell" and not find_program("pwsh", look.environ_of_hooks):
            why = "its shell is powershell, and there is no pwsh on the PATH"
        for one in asked.complaints:
            if not why and one.path == entry.place.path and _is_about(one.key, entry):
                why = one.why
        if why and entry.event in EVENTS:
            found[entry.where] = why
    return found


def _is_about(key: tuple[str, ...], entry: Registration) -> bool:
    """Tell whether a key is an entry's, or of something around or in it."""
    path = ("hooks", entry.event, str(entry.group), "hooks", str(entry.index))
    return all(one == other for one, other in zip(key, path, strict=False))


def _told(look: Look, working: Look, refused: Mapping[str, str]) -> Iterator[Fault]:
    for entry in look.registrations:
        why = refused.get(entry.where)
        if why:
            found = look.fault(
                "entry-refused",
                f"Claude Code leaves notyet's entry out: {why}.",
                where=entry.where,
                fix=install_again(look, entry),
            )
            is_covered = any(other.event == entry.event for other in working.registrations)
            yield _mild(found) if is_covered else found


def _disabled(look: Look) -> Iterator[Fault]:
    """Find the switch that counts: the managed one, or else that of the nearest file."""
    switches = [c for c in look.contents if isinstance(c.get("disableAllHooks"), bool)]
    switches.sort(key=lambda content: content.place.scope == _PROTECTED)
    managed = look.only(r for r in look.registrations if r.place.scope == _PROTECTED)
    is_on = bool(switches) and switches[-1].get("disableAllHooks") is True
    # What a user switches off is not what their organisation has registered.
    if is_on and (switches[-1].place.scope == _PROTECTED or missing_stops(managed)):
        yield look.fault(
            "hooks-disabled",
            "disableAllHooks is true, so Claude Code runs no hook at all.",
            where=switches[-1].where("disableAllHooks"),
            fix="remove it",
        )
    if look.environ_of_hooks.get(_SIMPLE, "").strip().lower() in _ON:
        _, where = variables(look.contents).get(_SIMPLE, ("", ""))
        yield look.fault(
            "hooks-disabled",
            f"{_SIMPLE} is set, so Claude Code runs no hook at all.",
            where=where,
            fix="remove it" if where else f"run: unset {_SIMPLE}",
        )


def _managed_only(look: Look) -> Iterator[Fault]:
    if any(entry.place.scope == _PROTECTED for entry in look.registrations):
        return
    for content in look.contents:
        strict = content.get("strictPluginOnlyCustomization")
        is_strict = strict is True or (isinstance(strict, list) and "hooks" in strict)
        for key, is_set in (
            ("allowManagedHooksOnly", content.get("allowManagedHooksOnly") is True),
            ("strictPluginOnlyCustomization", is_strict),
        ):
            if content.place.scope == _PROTECTED and is_set:
                yield look.fault(
                    "managed-hooks-only",
                    f"{key} is set, so Claude Code runs no hooks but those of your organisation.",
                    where=content.where(key),
                    fix="ask whoever manages this machine to register notyet there",
                )


def _elsewhere(look: Look, working: Look) -> list[Fault]:
    """Say which settings of the repository count only where Claude Code is started in its root."""
    unread = set(_not_read(look))
    # Local ones are read below the root too, if not by older versions.
    local = [r for r in look.registrations if r.place.scope == "local"]
    found = []
    for entry in (*_above(look), *local):
        if _is_here(look, entry.place):
            continue
        is_unsure = entry.place.scope == "local" and entry.place.path not in unread
        reader = "Claude Code 2.1.197 and older ones read" if is_unsure else "Claude Code reads"
        folder = os.path.dirname(os.path.dirname(entry.place.path))
        what = f"{reader} this file only if started in {visible(folder)}."
        fix = "start it there, or run: notyet install claude"
        one = look.fault("other-folder", what, where=at(entry.place.path), fix=fix)
        found.append(_mild(one) if is_unsure or not missing_stops(working) else one)
    return merged(found)


def _above(look: Look) -> list[Registration]:
    """Return our entries in the repository's own settings, where they are not read."""
    root = root_of(real_folder(look.cwd))
    place = Place(scope="project", path=os.path.join(root, ".claude", "settings.json"))
    if place.path in {content.place.path for content in look.contents}:
        return []
    (content,) = read_places([place])
    return registrations(look.host, place, content.document) if content.document else []
