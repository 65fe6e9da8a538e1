"""Gates in notyet's own format: commands in a `notyet.toml`, and Python functions."""

from __future__ import annotations

from notyet.core.event import StopEvent, private_copy
from notyet.core.record import plain
from notyet.core.text import bounded
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.hosts import hook_answers
from notyet.hosts.hook_answers import HookAnswer
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.core.gate import Exit, Gate

VERDICTS = (Allow, Block, Halt)
_ALLOW = Allow()
_NOT_RUNNABLE = {126: "the shell could not execute it", 127: "the shell could not find it"}
_SHELLS_WORDS = ("not found", "No such file or directory", "ermission denied", "s a directory")
_PROGRAM_AND_WHY = 2  # parts of what a shell says that matter
_MOST_DESCRIBED = 8_000


def write_call(event: StopEvent) -> Callable[[], tuple[StopEvent]]:
    """Return a function that makes the arguments of a call: a copy of the event."""
    return lambda: (private_copy(event),)


def read_return(returned: object) -> tuple[Allow | Block | Halt | Problem, str]:
    """Read what a gate function returned."""
    if returned is None:
        return _ALLOW, ""
    if isinstance(returned, VERDICTS):
        return returned, ""
    kind = type(returned).__name__
    hint = "return Allow(), Block('what to do next'), Halt('why') or None"
    return Problem("bad_answer", f"it returned {kind}; {hint}"), ""


def write_event(event: StopEvent, folder: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return stdin and environment of a gate in a `notyet.toml` (W5, H5)."""
    payload = {name: _json(event.__dict__[name]) for name in StopEvent._fields if name != "raw"}
    environ = {
        "EVENT": "subagent_stop" if event.scope == "subagent" else "stop",
        "HOST": event.host,
        "SESSION_ID": event.session_id,
        "AGENT_ID": event.agent_id,
        "AGENT_TYPE": event.agent_type,
        "CWD": event.cwd,
        "PROJECT_DIR": folder or event.cwd,
        "TRANSCRIPT_PATH": event.transcript_path,
        "AGENT_TRANSCRIPT_PATH": event.agent_transcript_path,
        "BLOCK_COUNT": str(event.block_count),
        "MAX_BLOCKS": str(event.max_blocks),
        "STOP_HOOK_ACTIVE": "true" if event.stop_hook_active else "false",
    }
    # All of them, always: a script with `set -u` must not fail over a missing one.
    return payload, {f"NOTYET_{name}": value or "" for name, value in environ.items()}


def _json(value: Any) -> Any:
    """Return a value that JSON can hold; of a foreign object, its repr."""
    if value is None or isinstance(value, str | bool | int):
        return value
    value = plain(value)
    try:
        dumps(value)
    except ValueError:
        return bounded(repr(value), _MOST_DESCRIBED)
    return value


def read_reply(gate: Gate, ended: Exit) -> HookAnswer:
    """Read a gate's exit code, or the decision that it printed (E10)."""
    problem = hook_answers.problem_of(gate, ended)
    if problem is not None:
        return HookAnswer(answer=problem)
    options: Mapping[str, Any] = gate.check.options  # type: ignore[union-attr]  # a Command
    passes = ended.code in options.get("pass_codes", (0,))
    stderr = hook_answers.words(ended.stderr)
    if ended.code in _NOT_RUNNABLE and not passes:
        why = _said_by_shell(stderr) or _NOT_RUNNABLE[ended.code]
        return HookAnswer(answer=Problem("cannot_start", why))
    reply = hook_answers.json_object(ended.stdout, loads) or {}
    is_child = "python" in options or "kind" in options  # they print nothing but an answer
    if is_child and isinstance(reply.get("problem"), str):
        described = hook_answers.text(reply, "problem") or "it failed and did not say how"
        problem = Problem(
            "unsure" if "kind" in options else "crashed", bounded(described, _MOST_DESCRIBED)
        )
        return HookAnswer(answer=problem, **hook_answers.extras(reply))
    # A tool's report may be JSON too; without a decision, the exit code counts.
    if reply.get("decision") is not None or reply.get("continue") is False:
        return HookAnswer(answer=_said(reply), **hook_answers.extras(reply))
    if passes:
        if is_child and options.get("kind") != "run":
            return HookAnswer(answer=Problem("bad_answer", "its answer could not be read"))
        return HookAnswer(answer=_ALLOW)
    output = "\n".join(part for part in (hook_answers.words(ended.stdout), stderr) if part)
    return HookAnswer(answer=Block(output or f"It exited with code {ended.code} and said nothing."))


def _said_by_shell(stderr: str) -> str:
    """Return why a shell could not run a program: `./x: not found` of `/bin/sh: 1: ./x: not found`.

    A program that started it may have said more after that.
    """
    lines = stderr.splitlines()
    found = [line for line in lines if line.endswith(_SHELLS_WORDS)] or lines[-1:]
    parts = found[-1].split(": ") if found else []
    while len(parts) > _PROGRAM_AND_WHY:
        del parts[0]  # the shell and the line of its script
    return bounded(": ".join(parts), 300)


def _said(reply: dict[str, Any]) -> Allow | Block | Halt | Problem:
    decision = reply.get("decision")
    reason = hook_answers.text(reply, "reason")
    if reply.get("continue") is False or decision == "halt":
        return Halt(reason or hook_answers.text(reply, "stopReason"))
    if decision not in ("allow", "block"):  # a tuple, because the value may be unhashable
        strange = bounded(repr(decision), 80)
        hint = "say allow, block or halt"
        return Problem("bad_answer", f"it answered with the decision {strange}; {hint}")
    extend = reply.get("extend", 0)
    try:
        if decision == "allow":
            return Allow(extend=extend, note=reason)
        prompt = hook_answers.text(reply, "prompt") or reason
        return Block(prompt, "" if reason == prompt else reason, extend)
    except ValueError as error:
        return Problem("bad_answer", str(error))
