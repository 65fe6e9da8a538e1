"""`plan`: which gates run at a stop, in which order, or why none does."""

from __future__ import annotations

from notyet.core.event import child_key
from notyet.core.gate import EVERY_AGENT, VERBATIM, Command, file_of, machine_of, why_not
from notyet.core.limits import History, Limit, Limits, limit_in_force, used
from notyet.core.record import Record, made, variant
from notyet.core.text import listed
from notyet.core.verdict import Allow, Block, Halt, Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Report

HANDED_BACK = "BLOCKED:"  # how an agent says that it needs its user (B14)
# Work that will wake the agent up again; shells and monitors may run for ever (B10).
_WAITED_FOR = frozenset({"subagent", "workflow", "teammate"})
_NOT_RUN = ("not started", "lost")  # how a command ended that was kept from answering


class Plan(Record, kw_only=True):
    """The gates to run, stage by stage; or `skipped`, the cause why none does."""

    event: StopEvent  # as the gates see it: with its count, its limit and its flag (B5)
    gates: tuple[Gate, ...] = ()  # all that apply, in declared order
    stages: tuple[tuple[Gate, ...], ...] = ()
    history: History = History()
    limits: Limits = Limits()
    limit: Limit = Limit(0, "")
    at_limit: bool = False
    handed_back: bool = False
    skipped: str = ""
    unchanged: Mapping[str, str] = {}  # gates that need not run, and why (N1)
    unchecked: tuple[str, ...] = ()  # why the stop cannot pass, in sentences (A8)
    warnings: tuple[str, ...] = ()


def select(event: StopEvent, gates: Sequence[Gate]) -> tuple[Gate, ...]:
    """Return the gates that apply to an event, in declared order."""
    if event.internal:
        return ()
    return tuple([gate for gate in gates if not why_not(gate, event)])


def plan(
    event: StopEvent,
    gates: tuple[Gate, ...],
    history: History,
    limits: Limits,
    declared: Sequence[Gate] = (),
    *,
    unchanged: Mapping[str, str] = {},
    unchecked: tuple[str, ...] = (),
) -> Plan:
    """Plan which of these selected gates run for an event, in which order.

    `declared` are all gates, also those that do not apply because the event does not say enough.
    `unchanged` says of gates that need not run why: no file changed since they "passed", or since
    the agent began ("unchanged"). With `unchecked`, the stop cannot end as passed; nor can it if a
    gate that sent the agent back is not declared any more.
    """
    limit = limit_in_force(limits, history, event.host_cap)
    at_limit = history.blocks >= limit.number
    skipped = ""
    if event.background_tasks and limits.wait_for_background and _others_at_work(event):
        skipped = "background"
    handed_back = history.blocks > 0 and (event.last_message or "").lstrip().startswith(HANDED_BACK)
    running = gates
    if skipped:
        running = ()
    if handed_back:  # leaves out the gates that know that word (B14)
        running = tuple(gate for gate in running if not gate.native)
    below_limit = running
    if at_limit:
        running = tuple(gate for gate in running if gate.check.speaks not in VERBATIM)
    staged = running
    if unchanged:
        unchanged = {gate.name: unchanged[gate.name] for gate in running if gate.name in unchanged}
        staged = tuple(gate for gate in running if gate.name not in unchanged)
    told = {
        "block_count": history.blocks,
        "max_blocks": limit.number,
        "stop_hook_active": history.blocks > 0 or event.stop_hook_active is True,
    }
    event = variant(event, told)
    warnings: tuple[str, ...] = ()
    if not skipped:
        warnings = missing_names(event, declared or gates)
        if at_limit and (staged or running != below_limit):  # else no gate runs that could reach it
            reached = used(limits, history, limit)
            warnings += (_limit_reached(event, gates, running, reached),)
    if history.sent_back_by:
        unchecked += _left_behind(history, declared or gates)
    planned = {
        "event": event,
        "gates": gates,
        "stages": _stages(staged),
        "history": history,
        "limits": limits,
        "limit": limit,
        "at_limit": at_limit,
        "handed_back": handed_back,
        "skipped": skipped,
        "unchanged": unchanged,
        "unchecked": unchecked,
        "warnings": warnings,
    }
    return made(Plan, planned)


def _others_at_work(event: StopEvent) -> bool:
    return event.scope == "agent" and any(
        task.type in _WAITED_FOR and task.status == "running" and task.id != event.agent_id
        for task in event.background_tasks
    )


def _stages(gates: tuple[Gate, ...]) -> tuple[tuple[Gate, ...], ...]:
    """Return the gates that run together: those of a priority and a step (A1)."""
    if not gates:
        return ()
    priority, step = gates[0].priority, gates[0].step
    for gate in gates:
        if gate.priority != priority or gate.step != step:
            break
    else:  # as it mostly is
        return (gates,)
    stages: dict[tuple[int, int], list[Gate]] = {}
    for gate in gates:
        stages.setdefault((-gate.priority, gate.step), []).append(gate)
    return tuple([tuple(stages[key]) for key in sorted(stages)])


def _limit_reached(
    event: StopEvent, gates: tuple[Gate, ...], running: tuple[Gate, ...], reached: str
) -> str:
    known = {gate.name for gate in running}
    left_out = [gate.name for gate in gates if gate.name not in known]
    not_run = f"; not run: {listed(left_out)}" if left_out else ""
    run = f"run {event.run_id} of " if event.run_id else ""  # only supervisors know of runs
    return (
        f"limit reached: {reached} in {run}session {child_key(event)}; "
        f"the agent is not sent back again{not_run}"
    )


def _left_behind(history: History, declared: Sequence[Gate]) -> tuple[str, ...]:
    """Return a sentence about each gate that sent the agent back and is not declared here."""
    here = {_identity(gate.name, file_of(gate)) for gate in declared}
    return tuple(
        f"{name} sent the agent back, and does not apply where it works now, so it was not run"
        for name, file in history.sent_back_by
        if _identity(name, file) not in here
    )


def _identity(name: str, file: str) -> tuple[str, str]:
    """Return a gate's file, and its name without the label that other files may give it (J6)."""
    return (name.rpartition(":")[2] if file else name), file


def missing_names(event: StopEvent, gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return a warning if a subagent has no id, and a pattern would be tried on it (D2)."""
    if event.scope == "agent" or event.agent_id:
        return ()
    matches = [gate.match for gate in gates if "subagent" in gate.match.events]
    if all(match.agents == EVERY_AGENT and not match.never for match in matches):
        return ()
    return ("the event names no agent_id; only its type and name can match a pattern",)


class Wanted(Record, kw_only=True):
    """A gate that can be skipped if it passed on these files, or if the agent started with them.

    `definition` is a digest of what it runs, `tree` a fingerprint of the files that it depends on,
    and `scope` names these files; each is empty if unknown (N1).
    """

    gate: str
    definition: str
    scope: str
    tree: str


def skip_causes(
    wanted: Sequence[Wanted], start: Mapping[str, str], passed: Sequence[bool]
) -> dict[str, str]:
    """Return why gates can be skipped: gate -> cause; those that must run are left out."""
    skipped = {}
    for one, has_passed in zip(wanted, passed, strict=True):
        if not one.tree:  # unknown files
            continue
        if has_passed and one.definition:
            skipped[one.gate] = "passed"
        elif start.get(one.scope) == one.tree:
            skipped[one.gate] = "unchanged"
    return skipped


def blocks(gate: Gate, report: Report) -> bool:
    """Return True if a report keeps the gates after it from running (A2)."""
    answer = report.answer
    if isinstance(answer, Allow) or gate.observe:
        return False
    if isinstance(answer, Problem):
        answer = counted(gate, answer, report)
    return isinstance(answer, Block | Halt)


def needs_tree(plan: Plan, stage: Sequence[Gate], reports: Sequence[Report]) -> bool:
    """Return True if the agent may be stuck on this stage (B6), if no file has changed.

    The files of another machine are unknown, so that an agent is never stuck on a gate there.
    """
    if plan.at_limit or not plan.limits.stuck_after:
        return False
    return all(
        gate.native and machine_of(gate) is None
        for gate, report in zip(stage, reports, strict=True)
        if blocks(gate, report)
    )


def counted(gate: Gate, problem: Problem, report: Report) -> Block | Problem:
    """Return what a problem counts as: `if_broken` may make it a Block (A6)."""
    if gate.observe or gate.if_broken == "allow" or problem.is_ours:
        return problem
    if problem.kind == "unreachable" and not gate.unreachable_blocks:
        return problem
    # An agent must not fix everything: a person has to accept an unknown host key.
    needs_user = report.exit in _NOT_RUN and bool(report.tell_user)
    then = "Only your user can fix that." if needs_user else "Fix that first."
    if not gate.native or not isinstance(gate.check, Command):
        return Block(f"The gate {gate.name} could not run ({problem}). {then}")
    # Of a long output the end is shown, so this comes last.
    said = [report.output, f"It {problem}.", then if needs_user else ""]
    return Block("\n".join(filter(None, said)), reason=f"{gate.name} {problem}")
