"""What can be wrong with Codex: files it drops, features, trust in projects and in hooks.

Codex itself is asked where it is installed (`codex_server`); where it is not, or does not
answer, the files decide as far as they tell.
"""

from __future__ import annotations

import os
import re

from notyet.config.files import above, real_folder, root_of
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.install import codex_trust
from notyet.install.entry import EVENTS
from notyet.install.worktree import in_main
from notyet.status.faults.codex_server import Listing, list_hooks
from notyet.status.faults.entries import entry_faults, is_mixed, missing_stops
from notyet.status.faults.fault import place as at
from notyet.status.faults.look import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.install.registered import Registration
    from notyet.status.faults.codex_server import ListedHook
    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Content, Look

OLDEST = (0, 124, 0)  # hooks are on without being asked for
ADVISED = (0, 140, 0)  # `codex exec` runs them as the terminal does
_TYPES = ("command", "mcp_tool", "prompt", "agent")
_KEYS = ("description", "hooks")
_BYTE_ORDER_MARK = "\ufeff"
_BEFORE = re.compile(r"(?P<line>\d+):(?P<column>\d+):(?P<why>.*)")  # 3:7: invalid type
_BEHIND = re.compile(r"(?P<why>.*) at line (?P<line>\d+) column (?P<column>\d+)\.?$")


def judged(look: Look) -> tuple[Look, list[Fault]]:
    """Judge everything but the program itself; return what Codex takes, and what is wrong."""
    listing = Listing(problem="codex is not on the PATH")
    if look.program and look.registrations:
        listing = list_hooks(look.program, look.cwd, look.environ)
    is_trusted = _is_trusted_project(look, listing)
    read = [c for c in look.contents if c.place.scope != "project" or is_trusted]
    broken = {c.place.path: one for c in read for one in _file(look, c, listing)}
    unread = [c.place.path for c in look.contents if c not in read]
    usable = look.without(broken)
    is_needed = bool(missing_stops(usable))
    found = list(broken.values())
    if any(path.endswith(".toml") for path in broken):  # then Codex does not even start
        return _unrun(usable), found
    if not is_needed:  # what counts stands elsewhere
        found = [replace(one, level="warning") for one in found]
    if not (is_needed and found):  # else the broken file explains what is missing
        found += entry_faults(usable)
    off = [*_disabled(usable.without(unread)), *_managed_only(usable)]
    if off:  # then Codex lists no hooks, whatever their trust
        return _unrun(usable), found + off
    if not is_trusted:
        found += _untrusted_project(usable)
        usable = usable.without(unread)
    codes = {entry.where: why_not_run(usable, entry, listing) for entry in usable.registrations}
    trusting = replace(usable, skipped=frozenset(where for where in codes if codes[where]))
    return trusting, found + not_run(usable, listing, codes)


def _unrun(look: Look) -> Look:
    """Return the same where Codex runs no hook at all."""
    return replace(look, skipped=frozenset(entry.where for entry in look.registrations))


def variables(contents: Sequence[Content]) -> dict[str, tuple[str, str]]:  # noqa: ARG001  # of the protocol
    """Return nothing: hooks run with Codex's own environment."""
    return {}


def _file(look: Look, content: Content, listing: Listing) -> Iterator[Fault]:
    """Say why Codex takes nothing from a file."""
    effect = "Codex takes nothing from it"
    mistake = content.mistake or content.doubt
    if mistake is not None:
        yield look.invalid(mistake)
        return
    if content.place.form == "json" and content.document is not None and content.text.strip():
        wrong = next(_refused(content), None)
        if wrong is not None:
            what, where, fix = wrong
            yield look.fault("file-dropped", f"{effect}, because {what}.", where=where, fix=fix)
            return
    path = content.place.path
    for said in listing.warnings:
        is_whole = said.startswith(("failed to parse", path))  # and not one entry of it
        if content.document is not None and is_whole and f"{path}:" in said:
            line, column, why = _placed(said.partition(f"{path}:")[2].strip())
            where = at(path, line, column)
            yield look.fault("file-dropped", f"{effect}: {why}.", where=where, fix="correct it")
            return


def _placed(said: str) -> tuple[int, int, str]:
    """Part a complaint into line, column and reason; Codex has two ways of naming a place."""
    found = _BEFORE.match(said) or _BEHIND.match(said)
    if found is None:
        return 0, 0, said
    return int(found["line"]), int(found["column"]), found["why"].strip()


def _refused(content: Content) -> Iterator[tuple[str, str, str]]:
    """Yield what makes Codex drop a whole `hooks.json`: the reason, its place, the fix."""
    if content.text.startswith(_BYTE_ORDER_MARK):
        yield "it begins with a byte order mark", content.where(), "save it as UTF-8 without one"
    for key in content.value:
        if key not in _KEYS:
            what = f"it does not know the key {key!r} there"
            yield what, content.where(key), "move it elsewhere, or remove it"
    hooks = content.value.get("hooks", {})
    if not isinstance(hooks, dict):
        yield "hooks is not an object", content.where("hooks"), "correct it"
        return
    for event in EVENTS:
        groups = hooks.get(event, [])
        if not isinstance(groups, list):
            yield f"hooks.{event} is not a list", content.where("hooks", event), "correct it"
            continue
        for i, group in enumerate(groups):
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for j, handler in enumerate(handlers if isinstance(handlers, list) else ()):
                what = _wrong(handler)
                if what:
                    yield what, content.where("hooks", event, i, "hooks", j), "correct it"


def _wrong(handler: object) -> str:
    if not isinstance(handler, dict):
        return "a hook is not an object"
    if handler.get("type") not in _TYPES:
        return f"it knows no hook of the type {handler.get('type')!r}"
    timeout = handler.get("timeout")
    is_whole = isinstance(timeout, int) and not isinstance(timeout, bool) and timeout >= 0
    if timeout is not None and not is_whole:
        return f"a timeout is {timeout!r}, and not a whole number of seconds"
    return ""


def _disabled(look: Look) -> Iterator[Fault]:
    """Find the switch that counts: the one of the nearest file."""
    switch: tuple[object, str] = (True, "")
    for content in look.contents:
        for name in ("codex_hooks", "hooks"):
            value = content.get("features", name)
            if isinstance(value, bool):
                switch = (value, content.where("features", name))
    if switch[0] is False:
        yield look.fault(
            "hooks-disabled",
            "The feature `hooks` is false, so Codex runs no hook at all.",
            where=switch[1],
            fix="remove it",
        )


def _managed_only(look: Look) -> Iterator[Fault]:
    if any(entry.place.scope == "managed" for entry in look.registrations):
        return
    for content in look.contents:
        name = os.path.basename(content.place.path)
        if name == "requirements.toml" and content.get("allow_managed_hooks_only") is True:
            yield look.fault(
                "managed-hooks-only",
                "allow_managed_hooks_only is true, so Codex runs no hooks but those of your "
                "organisation.",
                where=content.where("allow_managed_hooks_only"),
                fix="ask whoever manages this machine to register notyet there",
            )


def _untrusted_project(look: Look) -> Iterator[Fault]:
    entries = [entry for entry in look.registrations if entry.place.scope == "project"]
    if not entries:
        return
    found = look.fault(
        "project-untrusted",
        "Codex has not been told that you trust this project, so it reads nothing from it.",
        where=at(entries[0].place.path),
        fix="start codex here once and accept the project, or run: notyet install codex",
    )
    is_needed = missing_stops(look.only(r for r in look.registrations if r not in entries))
    yield found if is_needed else replace(found, level="warning")


def _is_trusted_project(look: Look, listing: Listing) -> bool:
    """Tell whether Codex reads the project: it lists hooks of it, or its settings say so."""
    entries = [entry for entry in look.registrations if entry.place.scope == "project"]
    if any(is_at(hook, entry) for hook in listing.hooks for entry in entries):
        return True
    here = real_folder(look.cwd)
    folders = [*_within(here), *_within(in_main(here)), os.path.abspath(look.cwd)]
    for content in look.contents:
        if content.place.scope != "project":
            for folder in dict.fromkeys(folders):
                if content.get("projects", folder, "trust_level") == "trusted":
                    return True
    return False


def _within(here: str) -> list[str]:
    """Return a folder and those around it, up to the root of its project."""
    root = root_of(here)
    return [folder for folder in above(here) if len(folder) >= len(root)]


_SURE = ("trusted", "managed")
_APPROVE_THERE = "start codex here, type /hooks and approve it"
_APPROVE = f"{_APPROVE_THERE}; or run: notyet install codex --trust"
_FIXES = {
    "hook-untrusted": _APPROVE,
    "hook-modified": _APPROVE,
    "hook-disabled": "start codex here, type /hooks and switch it on",
    "hook-not-loaded": "start codex here and look into /hooks; or run: notyet install codex",
}
_UNTRUSTED = {
    "hook-untrusted": "Nobody approved notyet's hook, so Codex skips it without a word.",
    "hook-modified": "notyet's hook changed since it was approved, so Codex skips it.",
    "hook-disabled": "notyet's hook is switched off in Codex's /hooks.",
    "hook-not-loaded": "Codex does not know notyet's hook, although it stands in this file.",
}


def why_not_run(look: Look, entry: Registration, listing: Listing) -> str:
    """Return why Codex would not run an entry; empty if it would."""
    return _judged(look, entry) if listing.problem else _listed(entry, listing)


def not_run(look: Look, listing: Listing, codes: Mapping[str, str]) -> list[Fault]:
    """Say which of our entries Codex would not run."""
    found = []
    sure = {r.event for r in look.registrations if not codes[r.where] and not r.matcher}
    for entry in look.registrations:
        code = codes[entry.where]
        # What is `async`, or has a broken matcher, has been told of already.
        is_told = entry.handler.get("async") is True or (
            code == "hook-not-loaded" and isinstance(entry.matcher, str) and entry.matcher
        )
        if code and entry.event in EVENTS and not is_told:
            one = _skipped(look, entry, code)
            is_mild = is_mixed(entry) and entry.event in sure
            found.append(replace(one, level="warning") if is_mild else one)
    if listing.problem and look.registrations and look.program:
        found.append(
            look.fault(
                "trust-not-asked",
                f"{listing.problem}; whether notyet is approved was read from its files instead.",
                fix="look into /hooks of codex",
            )
        )
    return merged(found)


def _skipped(look: Look, entry: Registration, code: str) -> Fault:
    what, fix = _UNTRUSTED[code], _FIXES[code]
    taken = _in_main(entry)
    if code == "hook-not-loaded" and taken != os.path.realpath(entry.place.path):
        what = f"Codex takes the hooks of the main work tree, {visible(taken)}."
        fix = "write the same there, or run: notyet install codex"
    elif is_mixed(entry) and fix == _APPROVE:  # we approve only what is nothing but ours
        fix = _APPROVE_THERE
    return look.fault(code, what, where=entry.where, fix=fix)


def _listed(entry: Registration, listing: Listing) -> str:
    hook = next((hook for hook in listing.hooks if _is_same(hook, entry)), None)
    if hook is None:
        return "hook-not-loaded"
    if not hook.is_enabled:
        return "hook-disabled"
    if hook.status in _SURE:
        return ""
    return "hook-modified" if hook.status == "modified" else "hook-untrusted"


def _is_same(hook: ListedHook, entry: Registration) -> bool:
    """Tell whether Codex lists this entry, or the very same in the main work tree."""
    if not is_at(hook, entry):
        return False
    if os.path.realpath(hook.path) == os.path.realpath(entry.place.path):
        return True
    return hook.hash == codex_trust.hash_of(entry.event, entry.handler, entry.matcher)


def _in_main(entry: Registration) -> str:
    """Return the file that Codex takes instead of an entry's: of a work tree, the main one's."""
    folder, name = os.path.split(os.path.realpath(entry.place.path))
    return os.path.join(in_main(folder) if entry.place.scope == "project" else folder, name)


def is_at(hook: ListedHook, entry: Registration) -> bool:
    """Tell whether Codex lists something in an entry's place, here or in the main work tree."""
    where = codex_trust.key("", entry.event, entry.group, entry.index)
    if where != f":{hook.event}:{hook.group}:{hook.index}":
        return False
    return os.path.realpath(hook.path) in {os.path.realpath(entry.place.path), _in_main(entry)}


def _judged(look: Look, entry: Registration) -> str:
    """Compare the hash that was approved with our own reckoning."""
    if entry.place.scope == "managed":
        return ""
    key = codex_trust.key(entry.place.path, entry.event, entry.group, entry.index)
    approved = None
    for content in look.contents:
        if content.place.scope == "user" and content.place.form == "toml":
            state = content.get("hooks", "state", key)
            if isinstance(state, dict):
                if state.get("enabled") is False:
                    return "hook-disabled"
                approved = state.get("trusted_hash")
    if approved is None:
        return "hook-untrusted"
    expected = codex_trust.hash_of(entry.event, entry.handler, entry.matcher)
    return "" if approved == expected else "hook-modified"
