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
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.document import Path
    from notyet.install.place import Place

_SECONDS = (600, None)  # that Codex waits where nothing is said, and at most
_SECONDS_AT_END = (1, 3)  # of a session
_UNMATCHED = ("Stop", "UserPromptSubmit")  # events whose matcher does not count
_SPEAKING = ("SessionStart", "SubagentStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")


def key(path: str, event: str, group: int, index: int) -> str:
    """Return the name under which Codex keeps its trust in an entry."""
    return f"{path}:{_snake(event)}:{group}:{index}"


def hash_of(event: str, handler: Mapping[str, Any], matcher: object = None) -> str:
    """Return Codex's hash of an entry that is a command."""
    usual, most = _SECONDS_AT_END if event == "SessionEnd" else _SECONDS
    timeout = max(1, handler.get("timeout", usual))
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


def forgotten(text: str, place: Place, hashes: Mapping[str, str]) -> str:
    """Return the text without trust in these entries, as they are. Raises CannotInstall."""
    document = document_of(text, place)
    state = _state(document.value)
    own = [
        name
        for name, value in hashes.items()
        if isinstance(state.get(name), dict) and state[name].get("trusted_hash") == value
    ]
    steps = [Step(do="drop", path=("hooks", "state", name)) for name in own]
    return changed(text, place, document, steps)


def _state(value: Mapping[str, Any]) -> Mapping[str, Any]:
    hooks = value.get("hooks")
    state = hooks.get("state") if isinstance(hooks, dict) else None
    return state if isinstance(state, dict) else {}


def _snake(event: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).removeprefix("_")
