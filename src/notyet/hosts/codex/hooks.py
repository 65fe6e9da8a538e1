"""Hook commands that people wrote for Codex: their input and their answers."""

from __future__ import annotations

from notyet.core.event import parents_key
from notyet.core.matcher import CODEX_DEFAULT
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Problem
from notyet.hosts import hook_answers
from notyet.hosts.codex import HOST
from notyet.hosts.hook_answers import HookAnswer
from notyet.light import loads_strictly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.gate import Exit, Gate

# Keys of an answer and their types; Codex refuses everything else.
_KINDS: dict[str, tuple[type, ...]] = {
    "continue": (bool,),
    "stopReason": (str, type(None)),
    "suppressOutput": (bool,),
    "systemMessage": (str, type(None)),
    "decision": (str, type(None)),
    "reason": (str, type(None)),
}
_STOP_KEYS = ("decision", "reason")  # the others are valid for every event
_START_KINDS = {name: kind for name, kind in _KINDS.items() if name not in _STOP_KEYS} | {
    "hookSpecificOutput": (dict, type(None))
}
_OUTPUT_KINDS: dict[str, tuple[type, ...]] = {
    "hookEventName": (str,),
    "additionalContext": (str, type(None)),
}


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin of a hook written for Codex: exactly its keys, all of them (W2, H4)."""
    del folder
    payload: dict[str, Any] = {
        "session_id": parents_key(event),
        "turn_id": event.turn_id or "",
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "hook_event_name": HOST.event_name(event.scope),
        "model": event.model or "",
        "permission_mode": event.permission_mode or "default",
        "stop_hook_active": event.stop_hook_active is True,
        "last_assistant_message": event.last_message,
    }
    if event.scope == "subagent":
        payload |= {
            "agent_id": event.agent_id or "",
            "agent_type": event.agent_type or CODEX_DEFAULT,
            "agent_transcript_path": event.agent_transcript_path,
        }
    return payload, {}


def write_start(event: StartEvent, folder: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin of a start hook written for Codex: exactly its keys (W2, F13)."""
    del folder
    payload: dict[str, Any] = {
        "session_id": parents_key(event),
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "hook_event_name": HOST.start_name(event.scope),
        "model": event.model or "",
        "permission_mode": event.permission_mode or "default",
    }
    if event.scope == "agent":
        return payload | {"source": event.source or "startup"}, {}
    child = {"agent_id": event.agent_id or "", "agent_type": event.agent_type or CODEX_DEFAULT}
    return payload | {"turn_id": event.turn_id or ""} | child, {}


def read_context(ended: Exit, scope: Scope = "agent") -> HookAnswer:
    """Read what a start hook gives the agent: a JSON answer, or just what it printed (F13)."""
    problem = hook_answers.start_problem(ended)
    if problem is not None:
        return HookAnswer(answer=problem)
    printed = hook_answers.words(ended.stdout)
    if not printed.startswith(("{", "[")):
        return HookAnswer(answer=Allow(), context=printed)
    reply, wrong = _strictly(ended.stdout, _START_KINDS)
    output = reply.get("hookSpecificOutput") or {}
    wrong = wrong or _wrong(output, _OUTPUT_KINDS)
    if not wrong and output and output.get("hookEventName") != HOST.start_name(scope):
        strange = bounded(repr(output.get("hookEventName")), 80)
        wrong = f"it answered for the event {strange}, not for {HOST.start_name(scope)}"
    if wrong:
        return HookAnswer(answer=Problem("bad_answer", wrong))
    told = hook_answers.extras(reply)["tell_user"]
    return HookAnswer(answer=Allow(), context=hook_answers.context(reply), tell_user=told)


def read_reply(gate: Gate, ended: Exit) -> HookAnswer:
    """Read what a hook written for Codex answered (F, column codex)."""
    by_exit = hook_answers.by_exit(gate, ended)
    if by_exit is not None:
        return HookAnswer(answer=by_exit)
    if not ended.stdout.strip():
        return HookAnswer(answer=Allow())
    reply, wrong = _strictly(ended.stdout, _KINDS)
    if wrong:
        return HookAnswer(answer=Problem("bad_answer", wrong))
    # suppressOutput is ignored (F12).
    return HookAnswer(
        answer=hook_answers.decided(reply), tell_user=hook_answers.extras(reply)["tell_user"]
    )


def _strictly(stdout: bytes, kinds: Mapping[str, tuple[type, ...]]) -> tuple[dict[str, Any], str]:
    """Return an answer that Codex would accept, or why Codex would refuse it."""
    try:
        reply = loads_strictly(stdout.decode("utf-8", "replace"))
    except ValueError as error:
        return {}, f"it did not print one JSON object: {error}"
    if not isinstance(reply, dict):
        return {}, f"it did not print a JSON object, but a {type(reply).__name__}"
    wrong = _wrong(reply, kinds)
    if wrong:
        return {}, wrong
    if reply.get("decision") not in {None, "block"}:
        strange = bounded(repr(reply["decision"]), 80)
        return {}, f"it printed the decision {strange}; Codex knows only 'block'"
    return reply, ""


def _wrong(reply: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> str:
    for key, value in reply.items():
        if key not in kinds:
            return f"it printed the key {bounded(repr(key), 80)}, which Codex refuses"
        if isinstance(value, str):
            try:
                value.encode()
            except UnicodeEncodeError:
                return f"it printed half a character in {key}, which Codex refuses"
    return hook_answers.wrong_type(reply, kinds)
