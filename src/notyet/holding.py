"""What is found out where a stage holds the agent: its files, and what of an output it reads."""

from __future__ import annotations

from notyet.checks.drive import Call
from notyet.core.gate import Function
from notyet.core.record import replace
from notyet.core.settle import holds, needs_tree, too_long
from notyet.workspace import look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.asking import Asking, Keep
    from notyet.checks.drive import Line
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Report

_UNREACHED = ("cannot_start", "timeout")


def tree_of(
    asking: Asking, planned: Plan, gates: Sequence[Gate], reports: Sequence[Report]
) -> Line[str]:
    """Return what the files look like that this is about; empty if unknown, or nobody asks.

    Those that the holding gates look at must be known. The agent's own count too, here and in
    its workspace: who changes them is not stuck, though a gate may not have got them yet.
    """
    answered = gates[: len(reports)]
    if not needs_tree(planned, answered, reports):
        return ""
    own = _workspace(asking.event)
    places: dict[Remote | None, None] = {}
    for gate, report in zip(answered, reports, strict=True):
        if holds(gate, report):
            # What a function looks at, nobody knows; most likely at the agent's files.
            is_function = isinstance(gate.check, Function)
            places[own if is_function else asking.place(gate)] = None
            if asking.place(gate) is not None and _may_be_lost(report):
                return ""  # another try could take long, and the agent's host waits
    trees = []
    for place in dict.fromkeys((*places, own, None)):
        wait = asking.deadline.left(look.PATIENCE)
        if place is None:
            tree = yield Call(look.fingerprint, (asking.event.cwd, wait))
        else:
            from notyet.workspace.remote import fingerprint_there

            tree = yield Call(fingerprint_there, (place, wait))
        if not tree and place in places:
            return ""
        trees.append(tree)
    return " ".join(filter(None, trees))


def _workspace(event: StopEvent) -> Remote | None:
    """Return where the agent's files are, if elsewhere."""
    if not event.workspace:
        return None
    from notyet.core.remote import remote_from

    return remote_from(event.workspace)


def _may_be_lost(report: Report) -> bool:
    """Tell whether the machine that a gate runs on may be out of reach."""
    return report.exit == "lost" or getattr(report.answer, "kind", "") in _UNREACHED


def with_logs(
    planned: Plan, reports: Sequence[Report], tree: str, keep: Keep
) -> Line[list[Report]]:
    """Keep the output of each gate of which the agent is told only a part; empty if there is none.

    The line that names a log takes room too, and may be what cuts the next gate short.
    """
    known = {report.gate: report for report in reports}
    kept: set[str] = set()
    while cut := [n for n in too_long(planned, [*known.values()], tree) if n not in kept]:
        for name in cut:
            path = yield Call(keep, (known[name],))
            known[name] = replace(known[name], log=path)
        kept.update(cut)
    return [*known.values()] if kept else []
