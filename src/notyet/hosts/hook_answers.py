"""`HookAnswer`: the answer of a hook command, and what all dialects share to read it (table F)."""

from __future__ import annotations

from notyet.core.record import Record
from notyet.core.text import bounded, clean
from notyet.core.verdict import Allow, Block, Halt, Problem
from notyet.light import loads_strictly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from notyet.core.gate import Exit, Gate


class HookAnswer(Record, kw_only=True):
    """The answer of a hook command."""

    answer: Allow | Block | Halt | Problem
    warning: str = ""  # for the command's author
    tell_user: str = ""  # its `systemMessage` (F14)
    hidden: bool = False  # its `suppressOutput` (F12)
    tokens: int = 0  # that a judge's model used
    context: str = ""  # its `additionalContext`, at a start event (F13)


BLOCKING = 2  # the exit code that blocks
_SHORT = 300
_MOST_TOKENS = 2**53
_HANGS = "it hangs or is too slow"


def problem_of(gate: Gate | None, ended: Exit) -> Problem | None:
    """Return why a command gave no answer at all; None if it answered."""
    if ended.problem:
        return Problem(
            "unreachable" if ended.unreachable or ended.lost else "cannot_start", ended.problem
        )
    if ended.timed_out:
        return Problem("timeout", _unfinished(gate.timeout if gate else None, ended.seconds))
    if ended.cancelled:
        return Problem("crashed", "it was ended before it could answer")
    if ended.code is None:
        return Problem("killed", f"was ended by signal {ended.signal}")
    return None


def _unfinished(timeout: float | None, seconds: float) -> str:
    """Return how long a command was given, which may be less than its own timeout (E9)."""
    if timeout is None or 0 < seconds < timeout:
        return f"did not finish within {seconds:.1f} s, all that its host allows: {_HANGS}"
    minutes, rest = divmod(timeout, 60)
    took = f"{timeout:g} s" if rest or not minutes else f"{minutes:g} min"
    return f"did not finish within {took}: {_HANGS}"


def start_problem(ended: Exit) -> Problem | None:
    """Return why the output of a start hook does not count; None if it exited with 0."""
    problem = problem_of(None, ended)
    if problem is not None or ended.code == 0:
        return problem
    return failed(ended, words(ended.stderr))


def by_exit(gate: Gate, ended: Exit) -> Block | Problem | None:
    """Return what the exit code and stderr say; None if it exited with 0."""
    stderr = words(ended.stderr)
    problem = problem_of(gate, ended)
    if problem is not None or ended.code == 0:
        return problem
    if ended.code != BLOCKING:
        return failed(ended, stderr)
    if stderr:
        return Block(stderr)
    return Problem("bad_answer", "it exited with code 2 but wrote no reason to stderr")


def decided(reply: dict[str, Any]) -> Allow | Block | Halt | Problem:
    """Return the verdict of a JSON answer; a block must have a reason."""
    if reply.get("continue") is False:
        return Halt(text(reply, "stopReason"))
    if reply.get("decision") != "block":
        return Allow()
    why = text(reply, "reason")
    return Block(why) if why else Problem("bad_answer", "it answered block without a reason")


def failed(ended: Exit, stderr: str) -> Problem:
    """Return the problem of a command that exited with an unknown code."""
    detail = f": {bounded(stderr, _SHORT)}" if stderr else ""
    return Problem("crashed", f"it exited with code {ended.code}{detail}")


def words(output: bytes) -> str:
    """Return output as clean text (E5)."""
    return clean(output.decode("utf-8", "replace")).strip()


def json_object(
    output: bytes, read: Callable[[str], Any] = loads_strictly
) -> dict[str, Any] | None:
    """Return the one JSON object that a command printed; None for anything else."""
    printed = output.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    if not printed.startswith("{"):
        return None
    try:
        value: dict[str, Any] = read(printed)
    except ValueError:
        return None
    return value


def wrong_type(reply: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> str:
    """Return which field has a type that its host refuses; empty if none has."""
    for name, kind in kinds.items():
        if name in reply and not isinstance(reply[name], kind):
            return f"it printed a {type(reply[name]).__name__} as {name}, which its host refuses"
    return ""


def context(reply: dict[str, Any]) -> str:
    """Return a hook's `additionalContext`."""
    output = reply.get("hookSpecificOutput")
    return text(output, "additionalContext") if isinstance(output, dict) else ""


def extras(reply: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `HookAnswer` that an answer fills besides its decision."""
    tokens = reply.get("tokens", 0)
    return {
        "tell_user": text(reply, "systemMessage"),
        "hidden": reply.get("suppressOutput") is True,
        "context": context(reply),
        "tokens": tokens if isinstance(tokens, int) and 0 <= tokens < _MOST_TOKENS else 0,
    }


def text(reply: dict[str, Any], name: str) -> str:
    """Return a field of an answer as clean text; empty if it is missing."""
    value = reply.get(name)
    return clean(value).strip() if isinstance(value, str) else ""
