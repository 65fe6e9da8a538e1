"""Read the payload of a host and write its reply, by the data of its `Host`.

Anything may be missing from a payload or have a wrong type; a field of the wrong type counts as
missing.
"""

from __future__ import annotations

from notyet.core.event import BackgroundTask, StartEvent, StopEvent
from notyet.core.text import bounded, clean
from notyet.core.verdict import Block, Halt
from notyet.hosts.host import Reply
from notyet.light import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope
    from notyet.core.verdict import Allow
    from notyet.hosts.host import Host

_MOST_TASKS = 1000
_LONGEST_CONTEXT = 9_000
_BLOCKING = 2  # the exit code that blocks
_OF_STARTS = ("source",)
_READ_APART = ("event", "error", "background_tasks", "stop_hook_active", *_OF_STARTS)
_PATHS = ("cwd", "transcript_path", "agent_transcript_path")


def read_event(
    host: Host, payload: Mapping[str, Any], environ: Mapping[str, str], **more: Any
) -> StopEvent | StartEvent | None:
    """Read a payload; None for an event that is not about starting or stopping.

    `more` are fields of a stop that the host's own module found out.
    """
    name = host.event_in(payload)
    if name in host.starts:
        return _start(host, payload, environ, host.starts[name])
    failed = name in host.failures
    if not failed and name not in host.stops:
        return None
    found = _fields(host, payload, environ)
    scope: Scope = host.stops.get(name, "agent")
    # `agent_type` alone does not make a subagent: main agents have one too.
    if failed and found["agent_id"] is not None:
        scope = "subagent"
    if host.version_variable:
        more["host_version"] = text(environ, host.version_variable)
    return StopEvent(
        scope=scope,
        ending="error" if failed else "done",
        error=_first(payload, host.fields["error"]) if failed else None,
        stop_hook_active=flag(payload, "stop_hook_active") if host.flag_is_reliable else None,
        background_tasks=background_tasks(payload) if host.fields["background_tasks"] else (),
        forgets_answers=host.forgets_answers,
        host_cap=_cap(host, environ, scope) if host.cap else 0,
        raw=payload,
        **found,
        **more,
    )


def _fields(host: Host, payload: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that stops and starts have in common."""
    found: dict[str, Any] = {
        ours: _first(payload, theirs, path if ours in _PATHS else text)
        for ours, theirs in host.fields.items()
        if ours not in _READ_APART
    }
    found["host"] = host.name
    found["session_id"] = found["session_id"] or ""
    found["cwd"] = found["cwd"] or path(environ, host.project_variable) or ""
    return found


def _first(payload: Mapping[str, Any], names: tuple[str, ...], read: Any = None) -> str | None:
    for name in names:
        value: str | None = (read or text)(payload, name)
        if value is not None:
            return value
    return None


def _start(
    host: Host, payload: Mapping[str, Any], environ: Mapping[str, str], scope: Scope
) -> StartEvent:
    found = _fields(host, payload, environ)
    found = {name: value for name, value in found.items() if name in StartEvent._fields}
    return StartEvent(scope=scope, source=_first(payload, host.fields["source"]), **found)


def _cap(host: Host, environ: Mapping[str, str], scope: Scope) -> int:
    """Return the number of the block that the host overrides; limits stay below it (B8)."""
    if scope == "subagent" and not host.caps_subagents:
        return 0
    try:
        return max(0, int(environ[host.cap_variable]) + host.cap_more)
    except (KeyError, ValueError):
        return host.cap


def write_event(host: Host, event: StopEvent) -> dict[str, Any]:
    """Return the payload that a host would send for a stop."""
    payload = {
        theirs[0]: event.__dict__.get(ours)
        for ours, theirs in host.fields.items()
        if theirs and ours not in _READ_APART
    }
    payload[host.fields["event"][0]] = host.event_name(event.scope)
    if host.fields.get("stop_hook_active"):
        payload["stop_hook_active"] = event.stop_hook_active is True
    return known(payload)


def write_reply(
    host: Host,
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,
    settings: Mapping[str, str],
) -> Reply:
    """Answer a stop: with exit code 0 and at most one JSON object, or only by the exit code."""
    if not host.block:
        return _by_exit_code(host, verdict, note)
    reply: dict[str, Any] = {}
    if isinstance(verdict, Block):
        reply = host.block_reply(verdict.prompt, event, settings)
    elif isinstance(verdict, Halt):
        # Alone: together with a block, hosts lose the agent's final answer.
        reason = bounded(presentable(verdict.reason), host.longest_reason)
        reply = filled(host.halt, reason)
        if not reply:
            note = " | ".join(part for part in (reason, note) if part)
    if note and host.note:
        reply[host.note] = presentable(note)
        note = ""
    return Reply(stdout=dumps(reply) if reply else host.silence, stderr=presentable(note))


def _by_exit_code(host: Host, verdict: Allow | Block | Halt, note: str) -> Reply:
    """Block with exit code 2 and the prompt on stderr."""
    if isinstance(verdict, Block):
        # The agent reads all of stderr, so a note to the user has no place there.
        words = clean(verdict.prompt).strip() or "Not yet."
        return Reply(stderr=f"{bounded(words, host.longest_reason)}\n", code=_BLOCKING)
    texts = [note, verdict.reason if isinstance(verdict, Halt) else ""]
    words = "\n".join(part for part in map(clean, texts) if part.strip())
    return Reply(stderr=f"{bounded(words, host.longest_reason)}\n" if words else "")


def write_context(host: Host, text: str, event: StartEvent, note: str = "") -> Reply:
    """Put a text before a starting agent's first request, where a host can, and a note to users."""
    reply: dict[str, Any] = {}
    if text and host.context:
        reply = added_context(host, text, host.start_name(event.scope))
    if note and host.note:
        reply[host.note] = presentable(note)
        note = ""
    return Reply(stdout=dumps(reply) if reply else host.silence, stderr=presentable(note))


def added_context(host: Host, text: str, event_name: str) -> dict[str, Any]:
    """Return the JSON that adds a text to what an agent reads."""
    context = prompt_for(text, _LONGEST_CONTEXT, host.measured_in)
    return filled(host.context, context, event_name)


def filled(template: Mapping[str, Any], text: str, event_name: str = "") -> dict[str, Any]:
    """Return a template of JSON with its texts filled in; "{text?}" is left out if it is blank."""
    values = {"{text}": text, "{text?}": text if text.strip() else None, "{event}": event_name}
    fields = {
        key: filled(value, text, event_name)
        if isinstance(value, dict)
        else values.get(value, value)
        for key, value in template.items()
    }
    return known(fields)


def text(payload: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a text and not blank."""
    value = payload.get(name)
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def path(payload: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a path without NUL and lone surrogates."""
    value = payload.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        return None
    try:
        value.encode("utf-8", "surrogateescape")  # names that are not UTF-8
    except UnicodeEncodeError:
        return None
    return value


def flag(payload: Mapping[str, Any], name: str) -> bool | None:
    """Return a field that is true or false; None if it is neither."""
    value = payload.get(name)
    return value if isinstance(value, bool) else None


def background_tasks(payload: Mapping[str, Any]) -> tuple[BackgroundTask, ...]:
    """Return the background tasks that still run."""
    tasks = payload.get("background_tasks")
    if not isinstance(tasks, list) or not tasks:
        return ()

    return tuple(
        BackgroundTask(
            id=text(task, "id") or "",
            # Qwen Code lists subagents only, and says of which type they are.
            type=text(task, "type") or ("subagent" if "agent_type" in task else ""),
            status=text(task, "status") or "running",
        )
        for task in tasks[:_MOST_TASKS]
        if isinstance(task, dict)
    )


def known(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def presentable(text: str) -> str:
    """Return clean text: some hosts refuse a reply with a lone surrogate."""
    return text if text.replace("\n", "").isprintable() else clean(text)


def prompt_for(text: str, most: int, unit: str = "characters") -> str:
    """Return the prompt that sends an agent back: never blank, at most what its host shows."""
    text = presentable(text)
    limit = most
    while _size(bounded(text, limit), unit) > most:
        limit -= limit // 4
    return bounded(text, limit) if text.strip() else "Not yet."


def _size(text: str, unit: str) -> int:
    """Measure a text as its host does; JavaScript counts some characters twice."""
    if unit == "utf-8":
        return len(text.encode())
    return len(text.encode("utf-16-le")) // 2 if unit == "utf-16" else len(text)
