"""A host that no sign tells: it gets the one answer that most hosts take (docs/reference/hosts.md).

Exit code 2 with the reason on stderr, and the same as JSON on stdout: measured on six hosts that
take one or the other. Vibe, Copilot and Cursor would not take it; their payloads have signs.
"""

from __future__ import annotations

from notyet.core.record import replace
from notyet.hosts.host import ClaudeLike, Reply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.event import Scope, StopEvent
    from notyet.core.verdict import Allow, Block, Halt

NEWS = "notyet: this host is unknown, so it is answered in a way that most take: see notyet hosts"


class Unknown(ClaudeLike, kw_only=True):
    """An unknown host."""

    def write_reply(
        self,
        verdict: Allow | Block | Halt,
        note: str,
        event: StopEvent,
        settings: Mapping[str, str],
    ) -> Reply:
        """Block twice over, and tell the user about it; everything else is as usual."""
        from notyet.core.verdict import Block

        if not isinstance(verdict, Block):
            return super().write_reply(verdict, note, event, settings)
        note = " | ".join(part for part in (note, NEWS) if part)
        reply = super().write_reply(verdict, note, event, settings)
        said = self.block_reply(verdict.prompt, event, settings)
        return replace(reply, stderr=f"{said['reason']}\n", code=2)


_STOPS: dict[str, Scope] = {
    **dict.fromkeys(("Stop", "stop", "agentStop", "agent_stop", "AgentStop"), "agent"),
    **dict.fromkeys(("SubagentStop", "subagentStop", "subagent_stop"), "subagent"),
}
HOST = Unknown(
    name="unknown",
    title="an unknown host",
    stops=_STOPS,
    fields={
        **ClaudeLike.fields,
        "event": ("hook_event_name", "hookEventName", "event", "event_type"),
        "session_id": ("session_id", "sessionId", "conversation_id", "conversationId"),
        "agent_id": ("agent_id", "agentId", "subagent_id"),
        "agent_type": ("agent_type", "agentType", "subagent_type"),
        "agent_name": ("agent_name", "agentName"),
        "cwd": ("cwd", "working_dir", "working_directory", "workingDirectory"),
        "last_message": ("last_assistant_message", "assistant_message"),
        "transcript_path": ("transcript_path", "transcriptPath"),
    },
    flag_is_reliable=False,
    project_variable="",
    block={"decision": "block", "action": "continue", "message": "{text}", "reason": "{text}"},
    halt={},  # some hosts go on when they are told not to
    context={},
    timeout=30.0,
)
