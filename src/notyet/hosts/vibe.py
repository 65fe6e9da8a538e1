"""Mistral Vibe, measured on 3.0.2: `vibe -p` with a scripted model (docs/how-to/vibe.md).

Its one stop event comes for subagents too. `decision: block` and exit code 2 do not hold it. It
takes a blocked answer out of the conversation. Its payload has no message and no turn; both are in
the session's folder, which `transcript_path` names:

    journal/N.jsonl   what happened since snapshot N - 1, the hook's own call in the last lines
    chunks/*.json     what its user was shown before that
"""

from __future__ import annotations

from notyet import light
from notyet.core.record import variant
from notyet.hosts.host import ClaudeLike, CommandLine, FolderTrust

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.core.event import StartEvent, StopEvent

_MOST_FILES = 100


class Vibe(ClaudeLike, kw_only=True):
    """Mistral Vibe, whose session folder says what its payload does not."""

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload, and what the session's folder says about this stop."""
        from notyet.hosts import wire

        event = wire.read_event(self, payload, environ)
        if event is None:
            return None
        found: dict[str, Any] = _found_in(event.transcript_path or "")
        if parent := wire.text(payload, "parent_session_id"):
            found |= {"scope": "subagent", "session_id": parent, "agent_id": event.session_id}
            found["agent_transcript_path"] = event.transcript_path
        return variant(event, found)


HOST = Vibe(
    name="vibe",
    title="Mistral Vibe",
    program="vibe",
    proof="proven",
    tested="3.0.2",
    tested_on="2026-11-16",
    signs=("hook_event_name=post_agent",),
    stops={"post_agent": "agent"},
    starts={},  # it has no such event
    failures=(),  # a failed model call ends the turn without an event
    fields={
        "event": ("hook_event_name",),
        "session_id": ("session_id",),
        "cwd": ("cwd",),
        "transcript_path": ("transcript_path",),
        "background_tasks": (),
    },
    flag_is_reliable=False,  # there is none
    project_variable="",
    cap=4,  # per hook and turn; tools do not reset it
    forgets_answers=True,
    block={"decision": "deny", "reason": "{text}"},
    halt={},
    context={},
    note="system_message",
    settings={"user": ".vibe/hooks.toml", "project": ".vibe/hooks.toml"},
    layout="list",
    handler={
        "name": "notyet",
        "type": "{event}",
        "command": "{command}",
        "timeout": "{timeout}",
    },
    project_wins=True,  # of two entries with one name
    home_variable="VIBE_HOME",
    folder_trust=FolderTrust(
        file=".vibe/trusted_folders.toml",
        keys=("trusted",),
        refused_keys=("untrusted",),
        how="start `vibe` in this folder once and trust it, or start it with --trust",
    ),
    timeout=60.0,
    command_line=CommandLine(
        start="{args} --output streaming -p",
        resume="{args} --output streaming --resume {id} -p",
        output="vibe-stream",
        install="pip install mistral-vibe",
        unknown=("Session not found",),
    ),
)


def _found_in(folder: str) -> dict[str, Any]:
    """Return the turn, the answer and the task of the stop that a session is at."""
    from notyet.hosts import wire
    from notyet.hosts.transcript import joined, table_in

    for call in _values(folder, "journal", b'"hook":"post_agent_turn"'):
        request = table_in(table_in(table_in(call).get("payload")).get("request"))
        candidate = table_in(table_in(request.get("input")).get("candidate"))
        turn = wire.text(request, "turn_id")
        if turn:
            answer = joined(table_in(candidate.get("message")).get("content"))
            return {"turn_id": turn, "last_message": answer, "task": _task(folder, turn)}
    return {}


def _task(folder: str, turn: str) -> str | None:
    """Return what the user, or the parent of a subagent, asked for in a turn."""
    from notyet.hosts.transcript import joined, table_in

    hint = f'"source":"turn_start","turnId":"{turn}"'.encode()
    for kind in ("journal", "chunks"):
        for value in _values(folder, kind, hint):
            changes = table_in(table_in(value).get("payload")).get("delta")
            entries = [table_in(change).get("entry") for change in _list(changes)]
            for entry in map(table_in, entries or _list(value)):
                if entry.get("role") == "user" and entry.get("turnId") == turn:
                    return joined(entry.get("content"))
    return None


def _values(folder: str, kind: str, hint: bytes) -> Iterator[Any]:
    """Yield the lines with a hint in a session's files of a kind, the newest first."""
    from notyet.hosts.transcript import values_in

    try:
        names = sorted(light.listdir(light.join(folder, kind)), reverse=True)
    except (OSError, ValueError):
        return
    for name in names[:_MOST_FILES]:
        yield from values_in(light.join(folder, kind, name), hint)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
