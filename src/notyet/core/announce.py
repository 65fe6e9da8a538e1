"""What a parent agent is told when a subagent of its has ended."""

from __future__ import annotations

from notyet.core.text import bounded, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.task import Result

_MOST_REPORT = 100_000
_WORDS = {
    "done": "has finished",
    "error": "failed",
    "timeout": "ran out of time",
    "killed": "was killed",
    "reset": "was reset",
    "interrupted": "was interrupted",
}
_NOT_PASSED = {"capped", "stuck", "handed_back", "failed_open", "halted"}


def announced(result: Result) -> str:
    """Return the words that bring a result to the agent who asked for it."""
    who = clean(result.label or result.agent_type or result.task_id)
    lines = [f"Subagent {who} {_WORDS[result.ending]}."]
    if result.outcome in _NOT_PASSED:
        why = f": {result.stop_reason}" if result.stop_reason else ""
        lines.append(clean(f"Its work did not pass the checks ({result.outcome}{why})."))
    if result.error:
        lines.append(clean(f"Error: {result.error}"))
    if result.text.strip():
        lines += ["Its report:", bounded(clean(result.text), _MOST_REPORT)]
    elif result.rejected.strip():
        lines += [
            "It gave no final report. An earlier one, which the checks may have rejected, was:",
            bounded(clean(result.rejected), _MOST_REPORT),
        ]
    else:
        lines.append("It gave no report.")
    return "\n".join(lines)
