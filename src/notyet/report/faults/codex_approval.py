"""Whether Codex would run our entries: it skips what nobody approved without a word."""

from __future__ import annotations

import os

from notyet.core.record import replace
from notyet.core.text import visible
from notyet.install import codex_trust
from notyet.install.entry import EVENTS
from notyet.install.worktree import in_main
from notyet.report.faults.entries import is_mixed
from notyet.report.faults.look import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.install.registered import Registration
    from notyet.report.faults.codex_server import ListedHook, Listing
    from notyet.report.faults.fault import Fault
    from notyet.report.faults.look import Look

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
