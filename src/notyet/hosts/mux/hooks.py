"""Hook commands that people wrote for Mux: their input and their answers."""

from __future__ import annotations

from notyet.core.text import bounded
from notyet.core.verdict import Allow
from notyet.hosts import hook_answers
from notyet.hosts.hook_answers import HookAnswer
from notyet.hosts.mux import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Exit, Gate

_LONGEST_OUTPUT = 30_000


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a hook written for Mux (W3, H2)."""
    is_subagent = event.scope == "subagent"
    transcript = (event.agent_transcript_path if is_subagent else None) or event.transcript_path
    session = event.session_id
    if is_subagent:
        session = event.task_id or event.agent_id or session
    active = "true" if event.stop_hook_active else "false"
    payload = {
        "session_id": session,
        "transcript_path": transcript or "",
        "cwd": event.cwd,
        "permission_mode": event.permission_mode or "default",
        "hook_event_name": HOST.event_name(event.scope),
        "stop_hook_active": event.stop_hook_active is True,
    }
    project = folder or event.cwd
    environ = {"CLAUDE_PROJECT_DIR": project}
    for prefix in ("MUX", "XUM"):
        environ[f"{prefix}_PROJECT_DIR"] = project
        environ[f"{prefix}_STOP_HOOK_ACTIVE"] = active
        environ[f"{prefix}_TRANSCRIPT_PATH"] = transcript or ""
    return payload, environ


def read_reply(gate: Gate, ended: Exit) -> HookAnswer:
    """Read what a hook written for Mux answered (F, column mux)."""
    by_exit = hook_answers.by_exit(gate, ended)
    if by_exit is not None:
        return HookAnswer(answer=by_exit)
    reply = hook_answers.json_object(ended.stdout)
    if reply is None:  # plain text is kept as a note
        return HookAnswer(
            answer=Allow(note=bounded(hook_answers.words(ended.stdout), _LONGEST_OUTPUT))
        )
    return HookAnswer(
        answer=hook_answers.decided(reply), **(hook_answers.extras(reply) | {"context": ""})
    )
