"""Cursor, by the source of @cursor/sdk 1.0.18, never run here (docs/how-to/cursor.md).

A block is a follow-up: a new message of the user, with a new generation id. So neither that id nor
`loop_count`, which counts the follow-ups of a conversation, tells a turn.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Cursor(ClaudeLike, kw_only=True):
    """Cursor, whose stops also come after an error and after its user's interrupt."""

    def event_in(self, payload: Mapping[str, Any]) -> str:
        """Return the event, or how the agent ended where that was not by itself."""
        name, status = super().event_in(payload), payload.get("status")
        name = name[:1].lower() + name[1:]  # as Claude Code writes it, in hooks of its files
        return str(status) if name in self.stops and status in ("error", "aborted") else name


HOST = Cursor(
    name="cursor",
    title="Cursor",
    program="cursor-agent",
    proof="source",
    tested="1.0.18",
    derived_from="the hook runner in @cursor/sdk 1.0.18",
    signs=("cursor_version", "conversation_id generation_id"),
    stops={"stop": "agent", "subagentStop": "subagent"},
    starts={},
    failures=("error",),
    ignored=("aborted",),
    fields={
        **ClaudeLike.fields,
        "session_id": ("parent_conversation_id", "conversation_id", "session_id"),
        "turn_id": (),
        "agent_id": ("subagent_id",),
        "agent_type": ("subagent_type",),
        "agent_name": (),
        "last_message": ("summary",),
        "error": ("error_message",),
        "background_tasks": (),
    },
    flag_is_reliable=False,
    project_variable="CURSOR_PROJECT_DIR",
    cap=6,  # where it does not honour our `loop_limit`: null
    block={"followup_message": "{text}"},
    halt={},
    context={},
    note="",
    settings={"user": ".cursor/hooks.json", "project": ".cursor/hooks.json"},
    layout="flat",
    handler={"command": "{command}", "timeout": "{timeout}", "loop_limit": None},
    beside={"version": 1},
    takes_one_command=True,  # a here-document with the payload follows the line
    timeout=60.0,
    runs_files_of=("claude",),
    inside=("CURSOR_AGENT",),
    command_line=CommandLine(  # by cursor.com/docs/cli
        start="{args} -p --output-format stream-json -- {prompt}",
        resume="{args} -p --output-format stream-json --resume {id} -- {prompt}",
        output="cursor-stream",
        install="curl https://cursor.com/install -fsS | bash",
    ),
)
