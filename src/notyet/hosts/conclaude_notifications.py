"""What a `.conclaude.yaml` wants its user to be notified of.

`showErrors` and `showSuccess` choose among what commands did; that a stop is over is a system
event, told unless `showSystemEvents` is off.
"""

from __future__ import annotations

from notyet.core.text import bounded, clean
from notyet.core.verdict import Allow, Block
from notyet.hosts.conclaude import hook_name, options_of, shown_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Decision, Report

    Said = tuple[str, str]  # the wish that asks for it, and the words

_MOST_BODY = 300  # characters of a notification
_CALM = frozenset({"passed", "observed", "skipped"})  # outcomes that are nobody's failure
_FAILED, _FINE = "showErrors", "showSuccess"


def notifications(
    wishes: Mapping[str, Any], event: StopEvent, decision: Decision, gates: Sequence[Gate]
) -> list[tuple[str, str]]:
    """Return title and body of each notification; see `conclaude.notifications`."""
    hook = hook_name(event)
    hooks = wishes.get("hooks") or ()
    if wishes.get("enabled") is not True or not ("*" in hooks or hook in hooks):
        return []
    ours = {gate.name: gate for gate in gates if gate.check.speaks == "conclaude"}
    said = list(_of_commands(ours, decision))
    bodies = [body for wish, body in said if wishes.get(wish) is True]
    wish, body = _of_event(ours, event, decision)
    if wishes.get("showSystemEvents") is not False or wishes.get(wish) is True:
        bodies.append(body)
    return [(f"notyet - {hook}", bounded(clean(body), _MOST_BODY)) for body in bodies]


def _of_commands(ours: Mapping[str, Gate], decision: Decision) -> Iterator[Said]:
    """Yield what `notifyPerCommand` asks for."""
    for report in decision.reports:
        gate = ours.get(report.gate)
        if gate and report.answer and options_of(gate).get("notifyPerCommand") is True:
            command = shown_command(gate)
            if _has_failed(report):
                yield _FAILED, f"Command failed{command}"
            else:
                yield _FINE, f"Command passed{command}"


def _has_failed(report: Report) -> bool:
    return bool(report.warning) or not isinstance(report.answer, Allow)


def _of_event(ours: Mapping[str, Gate], event: StopEvent, decision: Decision) -> Said:
    if event.ending == "error":
        return _FAILED, f"The turn ended with an error: {event.error or 'unknown'}"
    if event.scope == "subagent":
        return _of_subagent(event, decision)
    if isinstance(decision.verdict, Block):
        held = [ours.get(r.gate) for r in decision.reports if r.status == "blocked"]
        if held and all(gate and options_of(gate)["section"] == "infinite" for gate in held):
            return _FINE, f"Continuing: {decision.verdict.prompt}"
        return _FAILED, decision.verdict.prompt
    if decision.outcome == "passed":
        return _FINE, "All commands passed"
    wish = _FINE if decision.outcome in _CALM else _FAILED
    return wish, f"{decision.outcome}: {decision.why}"


def _of_subagent(event: StopEvent, decision: Decision) -> Said:
    name = event.agent_id or event.agent_name or event.agent_type or "unknown"
    if isinstance(decision.verdict, Block):
        return _FAILED, f"Subagent '{name}' was sent back"
    if decision.outcome in _CALM:
        return _FINE, f"Subagent '{name}' completed"
    return _FAILED, f"Subagent '{name}' was let go, {decision.outcome}: {decision.why}"
