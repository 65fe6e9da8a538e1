"""What can be wrong with Claude Code: its settings, its switches, its trust in a folder."""

from __future__ import annotations

import json
import os
import re

from notyet.config.files import real_folder, root_of
from notyet.core.record import Record, replace
from notyet.core.text import clean, visible
from notyet.install.entry import EVENTS
from notyet.install.place import Place
from notyet.install.registered import registrations
from notyet.run.spawn import Job
from notyet.run.stage import run_together
from notyet.status.faults.claude_folder import folder_faults
from notyet.status.faults.entries import entry_faults, install_again, missing_stops
from notyet.status.faults.fault import is_bad
from notyet.status.faults.fault import place as at
from notyet.status.faults.look import merged, read_places
from notyet.status.faults.programs import find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from notyet.install.registered import Registration
    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Content, Look

    Shape = tuple[tuple[str | int, ...], str]  # what is wrong, and what it should be

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


# Asks the installed Claude Code which settings it leaves out: `claude doctor`, read as text.
#
# It knows far more keys than we do, and one wrong value can cost a whole file. It needs no login,
# and leaves no settings changed; but like every start of Claude Code it may write its own
# `~/.claude.json`. Whatever it does ends in an answer or in a reason why there is none.


SINCE = (2, 1, 325)  # older ones draw on a terminal, and wait for a key that nobody presses
PATIENCE = 10.0  # seconds; it takes half of one
_QUIETLY = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
_HEADING = "Claude Code doctor"
_TITLE = "Invalid settings"
_SIGN = " \u203a "  # between a file and a key
_PART = re.compile(
    r"\b(?:entry|matcher) ignored\b|(?<!\bfile )\b(?:is|was) (?:ignored|skipped|removed)\b"
)


class Complaint(Record, kw_only=True):
    """Something that Claude Code leaves out: a whole file, or a part of it."""

    path: str
    key: tuple[str, ...]
    why: str
    is_whole: bool


class Diagnosis(Record, kw_only=True):
    """What the doctor said, or in `problem` why it said nothing."""

    complaints: tuple[Complaint, ...] = ()
    problem: str = ""


def examined(look: Look) -> Diagnosis:
    """Ask what is left out of the settings that are there."""
    if not any(content.is_there for content in look.contents):
        return Diagnosis()
    if not look.program:
        return Diagnosis(problem="its program is not on the PATH")
    if look.version.parts < SINCE:
        return Diagnosis(problem=f"{look.title} {look.version.text} cannot be asked")
    job = Job(
        argv=(look.program, "doctor"),
        dir=look.cwd,
        environ={**look.environ, **_QUIETLY},
        timeout=PATIENCE,
    )
    (done,) = run_together([job])
    if done.problem:
        return Diagnosis(problem=f"`claude doctor` could not be started: {done.problem}")
    if done.timed_out:
        return Diagnosis(problem=f"`claude doctor` did not answer within {PATIENCE:g} s")
    said = clean(done.stdout.decode("utf-8", "replace"))
    if done.code != 0 or not said.startswith(_HEADING):
        return Diagnosis(problem="`claude doctor` answered in words that this notyet does not know")
    return Diagnosis(complaints=tuple(complaints(said, (c.place.path for c in look.contents))))


def complaints(text: str, paths: Iterable[str]) -> Iterator[Complaint]:
    """Yield what the doctor says about these files, which it may call by another name."""
    names = {name: path for path in paths for name in (os.path.realpath(path), path)}
    _, _, section = text.partition(f"\n{_TITLE}\n")
    for line in section.split("\n\n")[0].splitlines():
        for name, path in names.items():
            start = f"- {name}{_SIGN}"
            if line.startswith(start):
                key, _, why = line.removeprefix(start).partition(": ")
                yield Complaint(
                    path=path,
                    key=tuple(key.split(".")),
                    why=why.strip().rstrip("."),
                    is_whole=not _PART.search(why),
                )


# Which settings Claude Code leaves out, as far as we know it ourselves.
#
# A newer one is asked (`claude_doctor`); this is for older ones, and for those that do not answer.


_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
_KINDS: Mapping[str, type] = {
    "hooks": dict,
    "env": dict,
    "permissions": dict,
    "statusLine": dict,
    "model": str,
    "disableAllHooks": bool,
}
_RULES = ("allow", "deny", "ask")
_EVENTS = frozenset(
    [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Notification",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "PermissionRequest",
        "Setup",
        "TeammateIdle",
        "TaskCompleted",
        "ConfigChange",
        "WorktreeCreate",
        "WorktreeRemove",
    ]
)
_TYPES = ("command", "prompt", "agent", "http", "mcp_tool")
_SHELLS = ("bash", "powershell")


def shapes(content: Content) -> Iterator[Shape]:
    """Yield what has a shape for which a whole file is dropped."""
    for key, kind in _KINDS.items():
        if key in content.value and not isinstance(content.value[key], kind):
            yield (key,), _NAMES[kind]
    if "cleanupPeriodDays" in content.value and not _is_number(content.get("cleanupPeriodDays")):
        yield ("cleanupPeriodDays",), "a number"
    for key in _RULES:
        rules = content.get("permissions", key)
        if rules is not None and not isinstance(rules, list):
            yield ("permissions", key), "a list"
    hooks = content.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        if event in _EVENTS:  # others are left out, whatever they hold
            yield from _groups(event, groups)


def _groups(event: str, groups: object) -> Iterator[Shape]:
    if not isinstance(groups, list):
        yield ("hooks", event), "a list"
        return
    for i, group in enumerate(groups):
        handlers = group.get("hooks") if isinstance(group, dict) else None
        if not isinstance(group, dict):
            yield ("hooks", event, i), "an object"
        elif not isinstance(handlers, list):
            yield ("hooks", event, i, "hooks"), "a list"
        for j, handler in enumerate(handlers if isinstance(handlers, list) else ()):
            if not isinstance(handler, dict) or handler.get("type") not in _TYPES:
                yield ("hooks", event, i, "hooks", j), "a hook of a known type"


def why_refused(handler: Mapping[str, Any], matcher: object) -> str:
    """Say why an entry of ours is left out; empty when nothing is known against it."""
    timeout = handler.get("timeout", 1)
    wrong = {
        "type": handler.get("type") == "command",
        "shell": handler.get("shell", "bash") in _SHELLS,
        "timeout": _is_number(timeout) and timeout > 0,
        "matcher": isinstance(matcher, str | None),
    }
    wrong |= {name: isinstance(handler.get(name, ""), str) for name in ("if", "statusMessage")}
    flags = ("async", "asyncRewake", "once")
    wrong |= {name: isinstance(handler.get(name, False), bool) for name in flags}
    for name, is_right in wrong.items():
        if not is_right:
            value = matcher if name == "matcher" else handler.get(name)
            missing = name == "type" and name not in handler
            return f"it has no {name}" if missing else f"its {name} may not be {json.dumps(value)}"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
