"""Hermes, measured on 0.19.0: `hermes chat -q` with a scripted model (docs/how-to/hermes.md).

Its one event that holds an agent comes only in turns in which files were edited. It runs commands
without a shell, and shows its user nothing of what a hook says. `notyet with` cannot run it:
it prints plain text only, the edits before the answer.
"""

from __future__ import annotations

from notyet.core.record import variant
from notyet.hosts.host import ClaudeLike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent


class Hermes(ClaudeLike, kw_only=True):
    """Hermes, whose payloads have most of it under `extra`."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload; `attempt` counts the blocks of this turn."""
        from notyet.hosts import wire

        event, extra = super().read_event(payload, environ), payload.get("extra")
        if event is None or not isinstance(extra, dict):
            return event
        found: dict[str, Any] = {
            "last_message": wire.text(extra, "final_response"),
            "model": wire.text(extra, "model"),
        }
        if type(extra.get("attempt")) is int:
            found["stop_hook_active"] = extra["attempt"] > 0
        return variant(event, found)


HOST = Hermes(
    name="hermes",
    title="Hermes",
    program="hermes",
    proof="proven",
    tested="0.19.0",
    tested_on="2026-11-16",
    holds={"agent": "after edits", "subagent": "no"},
    signs=("hook_event_name=pre_verify",),
    stops={"pre_verify": "agent"},
    starts={},
    failures=(),
    fields={
        "event": ("hook_event_name",),
        "session_id": ("session_id",),
        "cwd": ("cwd",),
        "background_tasks": (),
    },
    flag_is_reliable=False,  # there is none; `attempt` is as good
    project_variable="",
    cap=4,
    halt={},
    context={},
    note="",
    settings={"user": ".hermes/config.yaml"},
    layout="flat",
    handler={"command": "{command}", "timeout": "{timeout}"},
    takes_one_command=True,
    home_variable="HERMES_HOME",
    timeout=60.0,
    longest_timeout=300.0,
)
