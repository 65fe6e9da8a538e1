"""What can be wrong with Claude Code: its settings, its switches, its trust in a folder."""

from __future__ import annotations

import os

from notyet.config.files import above, real_folder, root_of
from notyet.config.read_file import read_file
from notyet.core.json_text import loads
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.install.claude_doctor import dropped
from notyet.install.contents import read_places
from notyet.install.entry_faults import entry_faults, missing_stops
from notyet.install.fault import is_bad
from notyet.install.fault import place as at
from notyet.install.look import merged
from notyet.install.place import Place
from notyet.install.registered import registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.install.claude_doctor import Complaint
    from notyet.install.contents import Content
    from notyet.install.fault import Fault
    from notyet.install.look import Look
    from notyet.install.registered import Registration

OLDEST = (2, 0, 42)  # SubagentStop names its agent
ADVISED = (2, 1, 163)  # a stop may answer with context, so that no final answer is lost
_OBJECTS = ("hooks", "env", "permissions")  # keys whose value must be an object
_PROTECTED = "managed"


def faults(look: Look) -> list[Fault]:
    """Judge everything but the program itself."""
    said = dropped(look.program, look.version, look.cwd, look.environ) if look.program else []
    broken = {c.place.path: found for c in look.contents for found in _file(look, c, said)}
    usable = look.without(broken)
    is_needed = bool(missing_stops(usable))
    found = list(broken.values())
    if not is_needed:  # what counts stands elsewhere
        found = [replace(one, level="warning") for one in found]
    elsewhere = _elsewhere(usable)
    if not (is_needed and (found or is_bad(elsewhere))):  # else they explain what is missing
        found += entry_faults(usable)
    found += [*_refused(usable), *_disabled(look), *_managed_only(usable)]
    return [*found, *elsewhere, *_folder(look)]


def variables(contents: Sequence[Content]) -> dict[str, tuple[str, str]]:
    """Return the variables that the settings add for hooks: the value of each, and its place."""
    added: dict[str, tuple[str, str]] = {}
    for content in contents:
        said = content.get("env")
        for name, value in said.items() if isinstance(said, dict) else ():
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                added[name] = (str(value), content.where("env", name))
    return added


def _file(look: Look, content: Content, said: Sequence[Complaint]) -> Iterator[Fault]:
    """Say why Claude Code takes nothing from a file: what we see, and what it says itself."""
    effect = "Claude Code takes nothing from it"
    if content.mistake is not None:
        mistake = content.mistake
        yield look.fault(
            "file-invalid",
            f"{effect}: {mistake.message}.",
            where=at(mistake.file, mistake.line, mistake.column),
            fix=mistake.hint or "correct it",
        )
        return
    for path, kind in _shapes(content):
        yield look.fault(
            "file-dropped",
            f"{effect}, because {'.'.join(path)} is not {kind}.",
            where=content.where(*path),
            fix="correct it",
        )
        return
    for one in said:
        if one.path == content.place.path and content.document is not None:
            yield look.fault(
                "file-dropped",
                f"{effect}, because of {'.'.join(one.key)}: {one.why}.",
                where=content.where(*one.key),
                fix="correct it",
            )
            return


def _shapes(content: Content) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield what has a shape that Claude Code does not take."""
    for key in _OBJECTS:
        if key in content.value and not isinstance(content.value[key], dict):
            yield (key,), "an object"
    if not isinstance(content.value.get("disableAllHooks", False), bool):
        yield ("disableAllHooks",), "true or false"
    hooks = content.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        if not isinstance(groups, list):
            yield ("hooks", event), "a list"


def _refused(look: Look) -> list[Fault]:
    """Say which entries of ours Claude Code leaves out."""
    found = []
    for entry in look.registrations:
        timeout = entry.handler.get("timeout")
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        wrong = ""
        if timeout is not None and not (is_number and timeout > 0):
            wrong = f"its timeout is {timeout!r}, not a number above 0"
        if not isinstance(entry.matcher, str | None):
            wrong = "its matcher is not a text"
        if wrong:
            what = f"Claude Code leaves notyet's entry out: {wrong}."
            fix = "run: notyet install claude"
            found.append(look.fault("entry-refused", what, where=entry.where, fix=fix))
    return merged(found)


def _disabled(look: Look) -> Iterator[Fault]:
    """Find the switch that counts: the managed one, or else that of the nearest file."""
    switches = [c for c in look.contents if isinstance(c.get("disableAllHooks"), bool)]
    switches.sort(key=lambda content: content.place.scope == _PROTECTED)
    if switches and switches[-1].get("disableAllHooks") is True:
        yield look.fault(
            "hooks-disabled",
            "disableAllHooks is true, so Claude Code runs no hook at all.",
            where=switches[-1].where("disableAllHooks"),
            fix="remove it",
        )


def _managed_only(look: Look) -> Iterator[Fault]:
    if any(entry.place.scope == _PROTECTED for entry in look.registrations):
        return
    for content in look.contents:
        is_managed = content.place.scope == _PROTECTED
        if is_managed and content.get("allowManagedHooksOnly") is True:
            yield look.fault(
                "managed-hooks-only",
                "allowManagedHooksOnly is true, so Claude Code runs no hooks but those of your "
                "organisation.",
                where=content.where("allowManagedHooksOnly"),
                fix="ask whoever manages this machine to register notyet there",
            )


def _elsewhere(look: Look) -> list[Fault]:
    """Say which settings of the repository count only where Claude Code is started in its root."""
    here = os.path.realpath(look.cwd)
    unread = _above(look)
    # Local ones are read below the root too, if not by older versions.
    local = [r for r in look.registrations if r.place.scope == "local"]
    found = []
    for entry in (*unread, *local):
        folder = os.path.dirname(os.path.dirname(entry.place.path))
        if os.path.realpath(folder) == here:
            continue
        reader = "Claude Code reads"
        if entry.place.scope == "local":
            reader = "Claude Code 2.1.197 and older ones read"
        what = f"{reader} this file only if started in {visible(folder)}."
        fix = "start it there, or run: notyet install claude"
        one = look.fault("other-folder", what, where=at(entry.place.path), fix=fix)
        is_fault = entry in unread and bool(missing_stops(look))
        found.append(one if is_fault else replace(one, level="warning"))
    return merged(found)


def _above(look: Look) -> list[Registration]:
    """Return our entries in the repository's own settings, where they are not read."""
    root = root_of(real_folder(look.cwd))
    place = Place(scope="project", path=os.path.join(root, ".claude", "settings.json"))
    if place.path in {content.place.path for content in look.contents}:
        return []
    (content,) = read_places([place])
    return registrations(look.host, place, content.document) if content.document else []


def _folder(look: Look) -> Iterator[Fault]:
    """Say that nobody has accepted this folder yet, where Claude Code keeps a list of them."""
    path = _memory(look.environ)
    text, _ = read_file(path) if path else (None, None)
    try:
        known = loads(text or "")
    except (ValueError, RecursionError):
        return  # nobody was asked yet, or it is not ours to judge
    projects = known.get("projects") if isinstance(known, dict) else None
    if not isinstance(projects, dict):  # it never ran in a terminal
        return
    for folder in dict.fromkeys((*above(look.cwd), *above(os.path.realpath(look.cwd)))):
        project = projects.get(folder)
        if isinstance(project, dict) and project.get("hasTrustDialogAccepted") is True:
            return
    yield look.fault(
        "folder-not-accepted",
        "Claude Code has not been told that you trust this folder; in a terminal it runs no hook "
        "before that (`claude -p` does).",
        where=at(path),
        fix="start claude here once, and accept the folder",
    )


def _memory(environ: Mapping[str, str]) -> str:
    folder = environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME", "")
    return os.path.join(folder, ".claude.json") if os.path.isabs(folder) else ""
