"""Codex's trust in hooks: a hash of each entry, kept under its file and position.

    [hooks.state."/home/u/.codex/hooks.json:stop:0:0"]
    trusted_hash = "sha256:..."

Codex runs a hook only if the hash there is that of the entry as it is now, and says nothing when
it does not. The hash covers the command's text, not the program that it names.
"""

from __future__ import annotations

import json
from hashlib import sha256

from notyet.install.edit import Step
from notyet.install.hooks_file import changed, check_tables, document_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.place import Place

    Move = tuple[str, str, str]  # an entry's old name, its new one, and its hash

_SECONDS = (600, None)  # that Codex waits where nothing is said, and at most
_SECONDS_AT_END = (1, 3)  # of a session
_MOST = 2**63 - 1
_UNMATCHED = ("Stop", "UserPromptSubmit")  # events whose matcher does not count
_SPEAKING = ("SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")


def key(path: str, event: str, group: int, index: int) -> str:
    """Return the name under which Codex keeps its trust in an entry."""
    return f"{path}:{_snake(event)}:{group}:{index}"


def hash_of(event: str, handler: Mapping[str, Any], matcher: object = None) -> str:
    """Return Codex's hash of an entry that is a command; empty for one that it cannot read."""
    usual, most = _SECONDS_AT_END if event == "SessionEnd" else _SECONDS
    said = handler.get("timeout")
    if not _is_readable(handler, matcher):
        return ""
    timeout = max(1, usual if said is None else said)
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
        and all(type(said) is int and 0 <= said <= _MOST for said in numbers if said is not None)
        and all(isinstance(said, str) for said in texts if said is not None)
    )


def trusted(text: str, place: Place, hashes: Mapping[str, str]) -> str:
    """Return the text of a `config.toml` that trusts these entries. Raises CannotInstall."""
    document = document_of(text, place)
    state = _state(document.value)
    steps: list[Step] = []
    for name, value in hashes.items():
        path: Path = ("hooks", "state", name)
        check_tables(document, place, path)
        own = state.get(name)
        if not isinstance(own, dict):
            steps.append(Step(do="put", path=path, value={"trusted_hash": value}))
        elif own.get("trusted_hash") != value:
            steps.append(Step(do="put", path=(*path, "trusted_hash"), value=value))
    return changed(text, place, document, steps)


def forgotten(text: str, place: Place, hashes: Mapping[str, str], moved: Collection[Move]) -> str:
    """Return the text without trust in these entries, as they are. Raises CannotInstall.

    What is said of others goes with them to their new names, as `moved` has it. Some may be there
    already, from a notyet that was killed before it wrote the hooks: they are known by the hash.
    """
    document = document_of(text, place)
    state = _state(document.value)
    after = {
        name: said
        for name, said in state.items()
        if not (name in hashes and _hash_in(said) == hashes[name])
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
    steps = [
        Step(do="put", path=("hooks", "state", name), value=said)
        for name, said in after.items()
        if state.get(name) != said
    ]
    gone = [name for name in state if name not in after]
    steps += [Step(do="drop", path=("hooks", "state", name)) for name in gone]
    return changed(text, place, document, steps)


def _hash_in(said: object) -> object:
    return said.get("trusted_hash") if isinstance(said, dict) else None


def _state(value: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = value.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).removeprefix("_")
