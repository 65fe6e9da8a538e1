"""The part of `notyet hook` for an agent that is let go without asking its gates, and why."""

from __future__ import annotations

import sys

from notyet.cli.hook_time import OutOfTime, be_brief, be_undisturbed
from notyet.dialects import Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.cli.hook_line import Hook

# Causes that no user can mend, so that they are not told of them.
_NO_NEWS = frozenset({"inside", "supervised", "unreadable"})


def let_go(hook: Hook, cause: str, words: Sequence[str]) -> Reply:
    """Allow, say why on stderr and to the user, and write it down (G5)."""
    hook.said += words
    mended: Sequence[str] = ()
    try:
        if not hook.is_probe():
            mended = hook.write_down(cause, words)
    except Exception as error:  # noqa: BLE001  # without a record, but with an answer
        hook.said.append(f"that was not recorded: {error}")
    hook.said += mended
    news = mended if cause in _NO_NEWS else (*words, *mended)
    return hook.nothing(" | ".join(f"notyet: {line}" for line in news))


def let_pass(hook: Hook, payload: Mapping[str, Any]) -> Reply:
    """Let an event go that is not about starting or stopping."""
    name = payload.get("hook_event_name")
    if not isinstance(name, str) or not name.strip():
        return hook.let_go("unreadable", "the event on stdin has no hook_event_name")
    hook.said.append(f"{name[:80]} is not about a stop; use notyet for Stop and SubagentStop")
    return hook.nothing()


def give_up(hook: Hook) -> Reply:
    """Let the agent go because the host waits no longer."""
    said = f"no answer within the {hook.patience():g} s that the host waits; let go unchecked"
    try:
        # A stop that was begun in the ledger is written down there as cancelled.
        ledger = getattr(sys.modules.get("notyet.cli.hook_check"), "_ledger", None)
        if ledger is None or not ledger.newest:
            be_brief()
            return hook.let_go("deadline", said)
    except OutOfTime:  # not even written down in time
        be_undisturbed()
    hook.said.append(said)
    return hook.nothing(f"notyet: {said}")


def recover(hook: Hook, error: Exception) -> Reply:
    """Let the agent go after a fault of ours, even if that fault is in our way again."""
    said = f"internal error: {type(error).__name__}: {error}"
    try:
        return hook.let_go("internal", said)
    except Exception:  # noqa: BLE001  # nothing at all is an answer that every host takes
        hook.said.append(said)
        return Reply()
