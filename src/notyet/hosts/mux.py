"""Mux: hook commands written for its Stop and SubagentStop, and Mux itself when it calls us."""

from __future__ import annotations

from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt
from notyet.hosts import Reply, answers, claude
from notyet.hosts.answers import Reading
from notyet.hosts.payload import presentable, prompt_for
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Exit, Gate

_MOST_REASON = 30_000


def read_event(
    payload: Mapping[str, Any], environ: Mapping[str, str]
) -> StopEvent | StartEvent | None:
    """Read a payload of Mux: Claude's format, cut down to six fields (W3)."""
    return claude.read_event(payload, environ, host="mux")


def write_reply(
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,  # noqa: ARG001  # of the protocol
    settings: Mapping[str, str],  # noqa: ARG001  # as above
) -> Reply:
    """Answer Mux (G3); it has no place for notes but its log."""
    if isinstance(verdict, Block):
        said: dict[str, Any] = {
            "decision": "block",
            "reason": prompt_for(verdict.prompt, _MOST_REASON),
        }
    elif isinstance(verdict, Halt):
        reason = bounded(presentable(verdict.reason), _MOST_REASON)
        said = {"continue": False, "stopReason": reason}
    else:
        return Reply(stderr=presentable(note))
    return Reply(stdout=dumps(said), stderr=presentable(note))


def write_context(told: str, event: StartEvent) -> Reply:  # noqa: ARG001  # of the protocol
    """Say nothing: Mux has no start hooks."""
    return Reply()


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:  # noqa: ARG001  # of the protocol
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
        "hook_event_name": claude.event_name(event),
        "stop_hook_active": event.stop_hook_active is True,
    }
    environ = {"CLAUDE_PROJECT_DIR": event.cwd}
    for prefix in ("MUX", "XUM"):  # Mux was renamed; hooks of both ages are about
        environ[f"{prefix}_PROJECT_DIR"] = event.cwd
        environ[f"{prefix}_STOP_HOOK_ACTIVE"] = active
        environ[f"{prefix}_TRANSCRIPT_PATH"] = transcript or ""
    return payload, environ


def read_reply(gate: Gate, exit: Exit) -> Reading:  # noqa: A002  # its name in our words
    """Read what a hook written for Mux answered (F, column mux)."""
    by_exit = answers.by_exit(gate, exit)
    if by_exit is not None:
        return Reading(answer=by_exit)
    said = answers.json_object(exit.stdout)
    if said is None:  # plain text is kept as output, and means nothing
        return Reading(answer=Allow(note=bounded(answers.words(exit.stdout), _MOST_REASON)))
    return Reading(answer=answers.decided(said), **(answers.extras(said) | {"context": ""}))
