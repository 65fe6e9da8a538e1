"""Claude Code: hook commands written for it, and Claude Code itself when it calls us."""

from __future__ import annotations

from notyet.core.event import StartEvent, StopEvent, parents_key
from notyet.core.json_text import dumps
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.dialects import answers
from notyet.dialects.payload import background_tasks, flag, known, path, text
from notyet.dialects.reply import Reading, Reply, presentable, prompt_for, utf16_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.core.command import Exit
    from notyet.core.event import Scope
    from notyet.core.gate import Gate

_STOPS = ("Stop", "SubagentStop", "StopFailure")
_STARTS: dict[str, Scope] = {"SessionStart": "agent", "SubagentStart": "subagent"}
_NAMES: dict[Scope, str] = {"agent": "Stop", "subagent": "SubagentStop"}
_CAP = 8  # blocks in a row that Claude Code honours; the next one costs the final answer
_CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_CONTEXT_SINCE = (2, 1, 163)  # the first version that continues on `additionalContext`
_MOST_CONTEXT = 9_000  # characters; beyond 10,000 Claude Code shows a preview and a file
_MOST_REASON = 30_000
_LONGEST_PART = 9  # digits of one part of a version
_HALF_JSON = "it printed something like JSON that cannot be read"
# What a hook may answer, and of which type; unknown keys are nothing to Claude Code.
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


def read_event(
    payload: Mapping[str, Any], environ: Mapping[str, str], host: str = "claude"
) -> StopEvent | StartEvent | None:
    """Read a payload of Claude Code, or of a host that copied its format (W1)."""
    name = text(payload, "hook_event_name")
    if name in _STARTS:
        return read_start(payload, host, _STARTS[name])
    if name not in _STOPS:
        return None
    # `agent_type` alone does not make a subagent: `claude --agent` has one too.
    agent_id = text(payload, "agent_id")
    failed = name == "StopFailure"
    is_subagent = name == "SubagentStop" or (failed and agent_id is not None)
    return StopEvent(
        scope="subagent" if is_subagent else "agent",
        host=host,
        session_id=text(payload, "session_id") or "",
        turn_id=text(payload, "prompt_id"),
        agent_id=agent_id,
        agent_type=text(payload, "agent_type") or text(payload, "subagent_type"),
        agent_name=text(payload, "agent_name"),
        cwd=path(payload, "cwd") or path(environ, "CLAUDE_PROJECT_DIR") or "",
        ending="error" if failed else "done",
        error=text(payload, "error") if failed else None,
        last_message=text(payload, "last_assistant_message"),
        transcript_path=path(payload, "transcript_path"),
        agent_transcript_path=path(payload, "agent_transcript_path"),
        stop_hook_active=flag(payload, "stop_hook_active"),
        background_tasks=background_tasks(payload),
        permission_mode=text(payload, "permission_mode"),
        host_version=_version(environ) if host == "claude" else None,
        # What calls us as conclaude is Claude Code, too.
        host_cap=_cap(environ) if host in {"claude", "conclaude"} else 0,
        raw=payload,
    )


def read_start(payload: Mapping[str, Any], host: str, scope: Scope) -> StartEvent:
    """Read a start event, which Claude Code and Codex write alike."""
    return StartEvent(
        scope=scope,
        host=host,
        session_id=text(payload, "session_id") or "",
        agent_id=text(payload, "agent_id"),
        agent_type=text(payload, "agent_type"),
        cwd=path(payload, "cwd") or "",
        source=text(payload, "source"),
        turn_id=text(payload, "turn_id") or text(payload, "prompt_id"),
        transcript_path=path(payload, "transcript_path"),
        model=text(payload, "model"),
        permission_mode=text(payload, "permission_mode"),
    )


def _version(environ: Mapping[str, str]) -> str | None:
    """Return the version from `AI_AGENT`, e.g. "claude-code_2-1-325_agent"."""
    name, _, rest = environ.get("AI_AGENT", "").partition("_")
    version = rest.partition("_")[0].replace("-", ".")
    return version if name == "claude-code" and version else None


def _cap(environ: Mapping[str, str]) -> int:
    try:
        cap = int(environ.get(_CAP_VARIABLE, _CAP))
    except ValueError:
        return _CAP
    return max(0, cap)  # 0 and below switch it off


def write_reply(
    verdict: Allow | Block | Halt,
    note: str,
    event: StopEvent,
    settings: Mapping[str, str],
) -> Reply:
    """Answer Claude Code: exit 0 and at most one JSON object, whatever we say (G1)."""
    told: dict[str, Any] = {"systemMessage": presentable(note)} if note else {}
    if isinstance(verdict, Halt):
        # Together with a block it would lose the agent's final answer.
        return Reply(stdout=dumps(_halting(verdict) | told))
    if isinstance(verdict, Block):
        return Reply(stdout=dumps(_holding(verdict, event, settings) | told))
    return Reply(stdout=dumps(told) if told else "")


def _halting(verdict: Halt) -> dict[str, Any]:
    return {"continue": False, "stopReason": bounded(presentable(verdict.reason), _MOST_REASON)}


def _holding(verdict: Block, event: StopEvent, settings: Mapping[str, str]) -> dict[str, Any]:
    """Prefer context: told once, without our command line, and the answer survives the cap."""
    if settings.get("claude") == "block" or not _takes_context(event.host_version):
        return {"decision": "block", "reason": prompt_for(verdict.prompt, _MOST_REASON)}
    return _adding(verdict.prompt, event_name(event))


def _adding(told: str, name: str) -> dict[str, Any]:
    context = prompt_for(told, _MOST_CONTEXT, utf16_size)
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": context}}


def _takes_context(version: str | None) -> bool:
    parts = (version or "").split(".")
    if not all(part.isdecimal() and len(part) <= _LONGEST_PART for part in parts):
        return False
    return tuple(int(part) for part in parts) >= _CONTEXT_SINCE


def write_context(told: str, event: StartEvent) -> Reply:
    """Put a text before a starting agent's first request (F13)."""
    return Reply(stdout=dumps(_adding(told, start_name(event.scope))))


def start_name(scope: Scope) -> str:
    """Return what Claude Code and Codex call the beginning of an agent (C8)."""
    return "SubagentStart" if scope == "subagent" else "SessionStart"


def event_name(event: StopEvent) -> str:
    """Return what Claude Code and those after it call this event."""
    return _NAMES[event.scope]


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:  # noqa: ARG001  # of the protocol
    """Return stdin and environment of a hook written for Claude Code (W1, H1)."""
    tasks = [task.__dict__.copy() for task in event.background_tasks]
    payload = {
        "session_id": parents_key(event),
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "prompt_id": event.turn_id,
        "permission_mode": event.permission_mode or "default",
        # A main agent has a type at most: who has an id is a subagent.
        "agent_id": event.agent_id if event.scope == "subagent" else None,
        "agent_type": event.agent_type,
        "hook_event_name": event_name(event),
        "stop_hook_active": event.stop_hook_active is True,
        "agent_transcript_path": event.agent_transcript_path,
        "last_assistant_message": event.last_message,
        "background_tasks": tasks,
        "session_crons": [],
    }
    return known(payload), {"CLAUDE_PROJECT_DIR": event.cwd}


def write_start(event: StartEvent) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a start hook written for Claude Code (F13)."""
    is_subagent = event.scope == "subagent"
    payload = {
        "session_id": parents_key(event),
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "prompt_id": event.turn_id,
        "agent_id": event.agent_id if is_subagent else None,
        "agent_type": event.agent_type,
        "hook_event_name": start_name(event.scope),
        "source": None if is_subagent else event.source or "startup",
    }
    return known(payload), {"CLAUDE_PROJECT_DIR": event.cwd}


def read_context(exit: Exit, scope: Scope = "agent") -> Reading:  # noqa: A002  # its name in our words
    """Read what a start hook gives the agent; a SessionStart hook may just print it (F13)."""
    problem = answers.start_problem(exit)
    if problem is not None:
        return Reading(answer=problem)
    said = answers.json_object(exit.stdout)
    if said is None:
        printed = answers.words(exit.stdout)
        if printed.startswith("{"):
            return Reading(answer=Problem("bad_answer", _HALF_JSON))
        return Reading(answer=Allow(), context=printed if scope == "agent" else "")
    wrong = _refused(said, (start_name(scope),))
    if wrong:
        return Reading(answer=Problem("bad_answer", wrong))
    return Reading(answer=Allow(), **answers.extras(said))


def read_reply(gate: Gate, exit: Exit) -> Reading:  # noqa: A002  # its name in our words
    """Read what a hook written for Claude Code answered (F, column claude)."""
    problem = answers.problem_of(gate, exit)
    if problem is not None:
        return Reading(answer=problem)
    said = answers.json_object(exit.stdout)
    if said is None:
        begun = exit.stdout.lstrip().startswith(b"{")
        warning = f"{_HALF_JSON}; ignored" if begun else ""
        return Reading(answer=_by_code(exit), warning=warning)
    wrong = _refused(said, tuple(_NAMES[scope] for scope in gate.match.events))
    if wrong and exit.code == 0:
        return Reading(answer=Problem("bad_answer", wrong))
    if wrong:
        return Reading(answer=_by_code(exit), warning=wrong)
    return Reading(answer=_by_json(said, exit), **answers.extras(said))


def _refused(said: dict[str, Any], names: tuple[str, ...]) -> str:
    """Say what Claude Code would refuse in an answer; empty when nothing."""
    output: Any = said.get("hookSpecificOutput") or {}
    wrong = answers.wrong_type(said, _KEYS) or answers.wrong_type(output, _OUTPUT_KEYS)
    if wrong:
        return wrong
    decision = said.get("decision")
    if decision not in {None, "approve", "block"}:
        return f"it printed the decision {bounded(repr(decision), 80)}; there is only 'block'"
    name = output.get("hookEventName")
    if name is not None and name not in names:
        return f"it answered for the event {bounded(repr(name), 80)}, not for {' or '.join(names)}"
    return ""


def _by_json(said: dict[str, Any], exit: Exit) -> Allow | Block | Halt | Problem:  # noqa: A002  # as above
    if said.get("continue") is False:
        return answers.halt(said)
    if said.get("decision") == "block":
        return Block(answers.reason(said) or "Blocked by hook")
    context = answers.context(said)
    return Block(context) if context else _by_code(exit)  # it continues the agent (F11)


def _by_code(exit: Exit) -> Allow | Block | Problem:  # noqa: A002  # as above
    stderr = answers.words(exit.stderr)
    if exit.code == 0:
        return Allow()
    if exit.code == answers.BLOCKING:
        return Block(stderr or "No stderr output")
    return answers.failed(exit, stderr)
