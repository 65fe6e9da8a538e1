"""Hook commands that people wrote for Claude Code: their input and their answers."""

from __future__ import annotations

from notyet.core.event import parents_key
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.hosts import hook_answers
from notyet.hosts.claude import HOST
from notyet.hosts.hook_answers import HookAnswer
from notyet.hosts.wire import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.core.event import Scope, StartEvent, StopEvent
    from notyet.core.gate import Exit, Gate

_HALF_JSON = "it printed something like JSON that cannot be read"
# Keys of an answer and their types; Claude Code ignores unknown keys.
_KEYS: dict[str, tuple[type, ...]] = {
    "continue": (bool, type(None)),
    "suppressOutput": (bool, type(None)),
    "stopReason": (str, type(None)),
    "systemMessage": (str, type(None)),
    "decision": (str, type(None)),
    "reason": (str, type(None)),
    "hookSpecificOutput": (dict, type(None)),
}
_OUTPUT_KEYS: dict[str, tuple[type, ...]] = {
    "hookEventName": (str, type(None)),
    "additionalContext": (str, type(None)),
}


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a hook written for Claude Code (W1, H1)."""
    tasks = [task.__dict__.copy() for task in event.background_tasks]
    payload = {
        "session_id": parents_key(event),
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "prompt_id": event.turn_id,
        "permission_mode": event.permission_mode or "default",
        # A main agent may have a type, but only a subagent has an id.
        "agent_id": event.agent_id if event.scope == "subagent" else None,
        "agent_type": event.agent_type,
        "hook_event_name": HOST.event_name(event.scope),
        "stop_hook_active": event.stop_hook_active is True,
        "agent_transcript_path": event.agent_transcript_path,
        "last_assistant_message": event.last_message,
        "background_tasks": tasks,
        "session_crons": [],
    }
    return known(payload), {"CLAUDE_PROJECT_DIR": folder or event.cwd}


def write_start(event: StartEvent, folder: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a start hook written for Claude Code (F13)."""
    is_subagent = event.scope == "subagent"
    payload = {
        "session_id": parents_key(event),
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "prompt_id": event.turn_id,
        "agent_id": event.agent_id if is_subagent else None,
        "agent_type": event.agent_type,
        "hook_event_name": HOST.start_name(event.scope),
        "source": None if is_subagent else event.source or "startup",
    }
    return known(payload), {"CLAUDE_PROJECT_DIR": folder or event.cwd}


def read_context(ended: Exit, scope: Scope = "agent") -> HookAnswer:
    """Read what a start hook gives the agent; a SessionStart hook may just print it (F13)."""
    problem = hook_answers.start_problem(ended)
    if problem is not None:
        return HookAnswer(answer=problem)
    reply = hook_answers.json_object(ended.stdout)
    if reply is None:
        printed = hook_answers.words(ended.stdout)
        if printed.startswith("{"):
            return HookAnswer(answer=Problem("bad_answer", _HALF_JSON))
        return HookAnswer(answer=Allow(), context=printed if scope == "agent" else "")
    wrong = _refused(reply, (HOST.start_name(scope),))
    if wrong:
        return HookAnswer(answer=Problem("bad_answer", wrong))
    return HookAnswer(answer=Allow(), **hook_answers.extras(reply))


def read_reply(gate: Gate, ended: Exit) -> HookAnswer:
    """Read what a hook written for Claude Code answered (F, column claude)."""
    problem = hook_answers.problem_of(gate, ended)
    if problem is not None:
        return HookAnswer(answer=problem)
    reply = hook_answers.json_object(ended.stdout)
    if reply is None:
        begun = ended.stdout.lstrip().startswith(b"{")
        warning = f"{_HALF_JSON}; ignored" if begun else ""
        return HookAnswer(answer=_by_code(ended), warning=warning)
    wrong = _refused(reply, tuple(HOST.event_name(scope) for scope in gate.match.events))
    if wrong and ended.code == 0:
        return HookAnswer(answer=Problem("bad_answer", wrong))
    if wrong:
        return HookAnswer(answer=_by_code(ended), warning=wrong)
    return HookAnswer(answer=_by_json(reply, ended), **hook_answers.extras(reply))


def _refused(reply: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return why Claude Code would refuse an answer; empty if it would not."""
    output: Any = reply.get("hookSpecificOutput") or {}
    wrong = hook_answers.wrong_type(reply, _KEYS) or hook_answers.wrong_type(output, _OUTPUT_KEYS)
    if wrong:
        return wrong
    decision = reply.get("decision")
    if decision not in {None, "approve", "block"}:
        return f"it printed the decision {bounded(repr(decision), 80)}; expected 'block'"
    name = output.get("hookEventName")
    if name is not None and name not in names:
        return f"it answered for the event {bounded(repr(name), 80)}, not for {' or '.join(names)}"
    return ""


def _by_json(reply: dict[str, Any], ended: Exit) -> Allow | Block | Halt | Problem:
    if reply.get("continue") is False:
        return Halt(hook_answers.text(reply, "stopReason"))
    if reply.get("decision") == "block":
        return Block(hook_answers.text(reply, "reason") or "Blocked by hook")
    context = hook_answers.context(reply)
    return Block(context) if context else _by_code(ended)  # it continues the agent (F11)


def _by_code(ended: Exit) -> Allow | Block | Problem:
    stderr = hook_answers.words(ended.stderr)
    if ended.code == 0:
        return Allow()
    if ended.code == hook_answers.BLOCKING:
        return Block(stderr or "No stderr output")
    return hook_answers.failed(ended, stderr)
