"""goose, measured on 1.52.0: `goose run` with a scripted model (docs/how-to/goose.md).

It has no event for subagents, no flag and no turn id, and shows no note of a hook. It reads hooks
from the plugin folders of the user and of the project.
"""

from __future__ import annotations

from notyet.core.record import replace
from notyet.hosts.host import ClaudeLike, CommandLine, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_FAILURE = "StopFailure"  # our name: goose calls it Stop
_HOOKS = ".agents/plugins/notyet/hooks/hooks.json"


class Goose(ClaudeLike):
    """What data cannot say of goose."""

    def event_in(self, payload: Mapping[str, Any]) -> str:
        """Return the event; a stop without a last message follows a failed model call."""
        name = super().event_in(payload)
        has_failed = name in self.stops and payload.get("last_assistant_message") is None
        return _FAILURE if has_failed else name

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read an event. Its session ids, a date and a number, repeat in every data folder."""
        event = super().read_event(payload, environ)
        folder = environ.get("GOOSE_PATH_ROOT") or environ.get("XDG_DATA_HOME")
        if event is None or not event.session_id or not folder:
            return event
        from zlib import crc32

        mark = crc32(folder.encode("utf-8", "surrogateescape"))
        return replace(event, session_id=f"{event.session_id}-{mark:08x}")

    def write_event(
        self, event: StopEvent, folder: str = ""
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return what goose would send: without a last message it would be a failure."""
        payload, environ = super().write_event(event, folder)
        return {"last_assistant_message": "", **payload}, environ


HOST = Goose(
    name="goose",
    title="goose",
    program="goose",
    proof="proven",
    tested="1.52.0",
    tested_on="2026-11-16",
    holds={"agent": "yes", "subagent": "no"},
    signs=("event !hook_event_name",),
    stops={"Stop": "agent"},
    starts={"SessionStart": "agent"},
    failures=(_FAILURE,),
    ignored=("SessionEnd", "UserPromptSubmit"),
    fields={
        **dict.fromkeys(ClaudeLike.fields, ()),
        "event": ("event",),
        "session_id": ("session_id",),
        "cwd": ("working_dir",),
        "last_message": ("last_assistant_message",),
    },
    flag_is_reliable=False,
    project_variable="PWD",  # a start names no folder; its shell sets this
    cap=9,  # consecutive blocks, also with tools in between
    cap_variable="GOOSE_STOP_HOOK_BLOCK_CAP",
    cap_more=1,  # the variable says how many it honours
    halt={},
    context={},
    note="",
    inside=("AGENT_SESSION_ID",),
    plugin=Plugin(remove="delete its folder, .agents/plugins/notyet"),
    settings={"user": _HOOKS, "project": _HOOKS},
    timeout=30.0,
    command_line=CommandLine(
        start="run {args} -q --output-format stream-json -n {id} -i -",
        resume="run {args} -q --output-format stream-json -r -n {id} -i -",
        output="goose-stream",
        install="brew install block-goose-cli",
        unknown=("No session found",),
        sums_up=True,
        renames=True,
    ),
)
