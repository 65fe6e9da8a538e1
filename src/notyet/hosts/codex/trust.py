"""Codex's trust in hooks: a hash of each entry, under its file and position.

    [hooks.state."/home/u/.codex/hooks.json:stop:0:0"]
    trusted_hash = "sha256:..."

Codex runs a hook only if the hash is that of the entry as it is now, and skips others silently.
The hash covers the command's text, not the program that it names.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from notyet.install.settings import check_tables, edited_settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, MutableMapping
    from typing import Any

    from notyet.install.settings import SettingsFile

    Move = tuple[str, str, str]  # an entry's old key, its new one, and its hash

_SECONDS = (600, None)  # the default timeout, and the longest
_SECONDS_AT_END = (1, 3)  # of a session
_MOST = 2**63 - 1
_UNMATCHED = ("Stop", "UserPromptSubmit")  # events whose matcher does not count
_SPEAKING = ("SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")


def key(path: str, event: str, group: int, index: int) -> str:
    """Return the key under which Codex keeps its trust in an entry."""
    return f"{path}:{_snake(event)}:{group}:{index}"


def hash_of(event: str, handler: Mapping[str, Any], matcher: object = None) -> str:
    """Return Codex's hash of an entry that is a command; empty for one that it cannot read."""
    usual, most = _SECONDS_AT_END if event == "SessionEnd" else _SECONDS
    given = handler.get("timeout")
    if not _is_readable(handler, matcher):
        return ""
    timeout = max(1, usual if given is None else given)
    entry: dict[str, Any] = {
        "type": "command",
        "command": handler["command"],
        "timeout": min(timeout, most or timeout),
        "async": handler.get("async", False),
    }
    if handler.get("statusMessage") is not None:
        entry["statusMessage"] = handler["statusMessage"]
    if handler.get("additionalContextLimit") is not None and event in _SPEAKING:
        entry["additionalContextLimit"] = handler["additionalContextLimit"]
    whole: dict[str, Any] = {"event_name": _snake(event), "hooks": [entry]}
    if matcher is not None and event not in _UNMATCHED:
        whole["matcher"] = matcher
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + sha256(text.encode()).hexdigest()


def _is_readable(handler: Mapping[str, Any], matcher: object) -> bool:
    numbers = (handler.get("timeout"), handler.get("additionalContextLimit"))
    texts = (handler.get("statusMessage"), matcher)
    return (
        isinstance(handler["command"], str)
        and isinstance(handler.get("async", False), bool)
        and all(type(one) is int and 0 <= one <= _MOST for one in numbers if one is not None)
        and all(isinstance(one, str) for one in texts if one is not None)
    )


def trusted(text: str, file: SettingsFile, hashes: Mapping[str, str]) -> str:
    """Return the text of a `config.toml` that trusts these entries. Raises CannotInstall."""
    document = read_settings(text, file)
    for name in hashes:
        check_tables(document, file, ("hooks", "state", name))

    def edit(settings: MutableMapping[str, Any]) -> None:
        state = _table(_table(settings, "hooks"), "state")
        for name, value in hashes.items():
            if name in state:
                state[name]["trusted_hash"] = value
            else:
                state[name] = {"trusted_hash": value}

    return edited_settings(text, file, edit) if hashes else text


def forgotten(
    text: str, file: SettingsFile, hashes: Mapping[str, str], moved: Collection[Move]
) -> str:
    """Return the text without trust in these entries, as they are. Raises CannotInstall.

    Trust in other entries moves with them to their new keys. Some may be there already, from a
    notyet that was killed before it wrote the hooks: their hash shows that.
    """
    state = _state(read_settings(text, file).value)
    after = _state_after(state, hashes, moved)

    def edit(settings: MutableMapping[str, Any]) -> None:
        known = settings["hooks"]["state"]
        for name, entry in after.items():
            if state.get(name) != entry:
                known[name] = entry
        for name in state:
            if name not in after:
                del known[name]
        if not known:
            del settings["hooks"]["state"]
        if not settings["hooks"]:
            del settings["hooks"]

    return edited_settings(text, file, edit) if after != state else text


def _state_after(
    state: Mapping[str, Any], hashes: Mapping[str, str], moved: Collection[Move]
) -> dict[str, Any]:
    """Return the state without these hashes, and with the moved ones under their new keys."""
    after = {
        name: entry
        for name, entry in state.items()
        if not (name in hashes and _hash_in(entry) == hashes[name])
    }
    for old, new, _ in moved:
        after.pop(old, None)
        after.pop(new, None)  # it was about an entry that is gone
    there = {new: value for _, new, value in moved if value}
    for old, new, value in moved:
        is_new = bool(value) and _hash_in(state.get(new)) == value != _hash_in(state.get(old))
        is_of_next = old in there and _hash_in(state.get(old)) == there[old] != value
        if is_new:
            after[new] = state[new]
        elif old in state and not is_of_next:
            after[new] = state[old]
    return after


def _table(settings: MutableMapping[str, Any], key: str) -> MutableMapping[str, Any]:
    if key not in settings:
        settings[key] = {}
    table: MutableMapping[str, Any] = settings[key]
    return table


def _hash_in(entry: object) -> object:
    return entry.get("trusted_hash") if isinstance(entry, dict) else None


def _state(value: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = value.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).removeprefix("_")
