"""Factory Droid, measured on 0.225.2: `droid exec` with a scripted model (docs/how-to/droid.md).

It has no cap and names no turn. Two facts stand only in the transcript: a subagent is a session of
its own, whose first line names the session that called it; and a turn that a failed model call
ended stops like any other, but its last entry is the error, in the user's role.
"""

from __future__ import annotations

from notyet.hosts.host import ClaudeLike, CommandLine, Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent


# How its notice begins that the model said nothing: the turn ended all the same.
_NO_OUTPUT = "The model produced several consecutive responses"


class Droid(ClaudeLike, kw_only=True):
    """Droid, whose subagents start and stop by the events of main agents."""

    def event_name(self, scope: Scope) -> str:
        """Return the name of every stop."""
        del scope
        return "Stop"

    def start_name(self, scope: Scope) -> str:
        """Return the name of every start."""
        del scope
        return "SessionStart"

    def write_event(
        self, event: StopEvent, folder: str = ""
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the payload and the variables of a stop; a subagent's names its caller."""
        payload, variables = super().write_event(event, folder)
        if event.scope == "subagent":
            payload |= {"session_id": event.agent_id, "calling_session_id": event.session_id}
        return payload, variables

    def read_event(
        self, payload: Mapping[str, Any], environ: Mapping[str, str]
    ) -> StopEvent | StartEvent | None:
        """Read a payload and both ends of its transcript."""
        event = super().read_event(payload, environ)
        if event is None:
            return None
        from notyet.core.event import StopEvent
        from notyet.core.record import replace
        from notyet.hosts.transcript import ends_of, entry_in
        from notyet.hosts.wire import text

        head, tail = ends_of(event.transcript_path)
        if isinstance(event, StopEvent):
            error = _error_in(tail, text(payload, "message_id"))
            event = replace(event, ending="error", error=error) if error else event
        first = entry_in(head.partition(b"\n")[0])
        parent = text(first, "callingSessionId") or text(payload, "calling_session_id")
        return _of_subagent(event, parent, text(first, "callingToolUseId")) if parent else event


def _error_in(tail: bytes, message: str | None) -> str:
    """Return the error that a turn ended with: its last message is then not the model's."""
    for entry in _entries_with(tail, message):
        said = entry.get("message")
        if entry.get("id") != message or not isinstance(said, dict):
            continue
        if said.get("role") == "user" and said.get("visibility") == "user_only":
            from notyet.hosts.transcript import joined

            words = joined(said.get("content")).partition("\n")[0]
            return "" if words.startswith(_NO_OUTPUT) else words or "unknown"
    return ""


def _of_subagent(
    event: StopEvent | StartEvent, parent: str, call: str | None
) -> StopEvent | StartEvent:
    """Return an event as that of a subagent, which this call of its parent's started."""
    from notyet.core.event import StopEvent
    from notyet.core.record import replace

    own = event.transcript_path
    parents = f"{own.rpartition('/')[0]}/{parent.rpartition('/')[2]}.jsonl" if own else None
    of_stops = {"agent_transcript_path": own} if isinstance(event, StopEvent) else {}
    return replace(
        event,
        scope="subagent",
        session_id=parent,
        agent_id=event.session_id,
        agent_type=_type_in(parents, call),
        transcript_path=parents,
        **of_stops,
    )


def _type_in(parents: str | None, call: str | None) -> str | None:
    """Return the type of subagent that a call asked for, from its caller's transcript."""
    from notyet.hosts.transcript import ends_of
    from notyet.hosts.wire import text

    for entry in _entries_with(ends_of(parents)[1], call):
        said = entry.get("message")
        for block in (isinstance(said, dict) and said.get("content")) or ():
            if isinstance(block, dict) and block.get("id") == call:
                asked = block.get("input")
                return text(asked, "subagent_type") if isinstance(asked, dict) else None
    return None


def _entries_with(lines: bytes, name: str | None) -> Iterator[dict[str, Any]]:
    """Yield the entries that mention an id, the last one first."""
    from notyet.hosts.transcript import entry_in

    for line in reversed(lines.split(b"\n")) if name else ():
        if name and name.encode() in line:
            yield entry_in(line)


HOST = Droid(
    name="droid",
    title="Factory Droid",
    program="droid",
    proof="proven",
    tested="0.225.2",
    tested_on="2026-11-16",
    signs=("transcript_path~/.factory/sessions/", "tool_execution_count", "task_name"),
    stops={"Stop": "agent"},
    starts={"SessionStart": "agent"},
    failures=(),
    ignored=("SubagentStop", "SessionEnd"),  # the former comes too late to hold a subagent
    fields={
        **ClaudeLike.fields,
        "turn_id": (),
        "agent_id": (),
        "agent_type": (),
        "agent_name": (),
        "agent_transcript_path": (),
        "background_tasks": (),
    },
    project_variable="FACTORY_PROJECT_DIR",
    settings={"user": ".factory/settings.json", "project": ".factory/settings.json"},
    plugin=Plugin(
        folder=".factory/plugins/cache/*/notyet-*/*",
        remove="run: droid plugin uninstall notyet@notyet",
    ),
    home_variable="FACTORY_HOME_OVERRIDE",
    home_depth=0,
    looks_above=True,
    timeout=60.0,
    command_line=CommandLine(
        start="exec {args} -o stream-json",
        # `--session-id` would ask Factory's server; a fork is made from the file on this machine.
        resume="exec {args} -o stream-json --fork {id}",
        output="droid-stream",
        install="npm install -g @factory/cli",
        renames=True,
    ),
)
