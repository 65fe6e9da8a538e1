"""One stop, front to back.

    look at the files ─► ledger.begin ─► plan ─► run each stage ─► settle ─► ledger.record

`check` is this list; `decide` is its middle, for callers who count and record by themselves. Both
are generators: they yield what they wait for and receive the result, so that the hook, the engine
and asyncio share this code (see `run.drive`).
"""

from __future__ import annotations

from time import monotonic

from notyet.core.gate import Command
from notyet.core.limits import History, Limits
from notyet.core.plan import missing_names, plan
from notyet.core.record import replace, variant
from notyet.core.verdict import Allow, Decision, skipped
from notyet.engine.questions import Questions
from notyet.errors import LedgerError
from notyet.run.drive import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Report
    from notyet.engine.observers import Watch
    from notyet.engine.unchanged import Files
    from notyet.ledger import AnyLedger, Begun
    from notyet.run.drive import Ends, Line, Progress
    from notyet.run.functions import Question

    Keep = Callable[[Report], str]  # keeps a report's whole output, and returns the path
    Run = Callable[[Sequence[Gate], Ends | None], Line[list[Report]]]
    Look = Callable[[Plan, Sequence[Gate], Sequence[Report]], Line[str]]
    Aside = Callable[[Callable[[], None]], None]  # runs what the caller does not wait for

NO_SESSION = "the event has no session_id, so nothing was asked"
FIRST_ANSWER = 600.0  # seconds that the second of two equal stops waits for the first
_ONE_WAIT = 1.0  # seconds of that, between which the check can be cancelled
_PATIENCE_OF_LEDGER = 60.0  # seconds at most; a ledger in a file has a patience of its own
_AFTERWARDS = 1.0  # seconds for what follows the gates, out of the margin that the hook leaves
_AFTERWARDS_PART = 8  # and no more than this part of a short time
_MOST_WARNINGS = 10  # of one stop


class Deadline:
    """Gates run until `ends`; recording and observers have until `last`.

    Both are times of the monotonic clock; None without a limit.
    """

    def __init__(self, within: float | None) -> None:
        if within is not None and within != within:  # noqa: PLR0124  # NaN is not equal to itself
            raise ValueError("within is a number of seconds, not NaN")
        self.ends = self.last = None
        if within is not None:
            self.ends = monotonic() + within
            self.last = self.ends + min(_AFTERWARDS, within / _AFTERWARDS_PART)

    def left(self, patience: float) -> float:
        """Return how many seconds of `patience` are left before the gates must have ended."""
        return _within(patience, self.ends)

    def left_to_record(self, patience: float) -> float:
        """Return how many seconds of `patience` are left after the gates, less the observers'."""
        if self.ends is None or self.last is None:
            return patience
        return _within(patience, (self.ends + self.last) / 2)


def _within(patience: float, ends: float | None) -> float:
    return patience if ends is None else max(0.0, min(patience, ends - monotonic()))


class Stop:
    """One stop event, the gates that apply to it, and what it is decided with."""

    def __init__(
        self,
        event: StopEvent,
        gates: tuple[Gate, ...],
        ledger: AnyLedger,
        *,
        declared: Sequence[Gate] = (),
        limits: Limits = Limits(),  # noqa: B008  # a record cannot be changed
        within: float | None = None,
        warn: Callable[[str], None],
        functions: Mapping[str, Question] = {},
        watches: Sequence[Watch] = (),
        before_commands: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
    ) -> None:
        """Take a caller's wishes too.

        `before_commands` is called once, before the first command starts; `on_wait` once, while
        git or the first commands work. `answers` are known reports of gates that do not run.
        """
        self.event = event
        self.gates = gates
        self.declared = declared or gates  # all gates, also those that do not apply
        self.ledger = ledger
        self.limits = limits
        self.deadline = Deadline(within)
        self.warn = warn
        self.watches = watches
        self.is_repeat = False  # an equal stop has answered (B12)
        self.unseen: tuple[str, ...] = ()  # warnings about files that could not be looked at
        self.skipped_unchanged: Mapping[str, str] = {}  # gates that need not run, and why (N1)
        self.questions = Questions(
            event,
            self.deadline,
            functions,
            progress,
            answers,
            before_commands=before_commands,
            on_wait=on_wait,
        )

    def plan(self, history: History, unchanged: Mapping[str, str]) -> Plan:
        """Return which gates run, in which order."""
        return plan(
            self.event, self.gates, history, self.limits, self.declared, unchanged=unchanged
        )


def check(stop: Stop, patience: float = FIRST_ANSWER, aside: Aside | None = None) -> Line[Decision]:
    """Decide a stop, count it, record it, and notify the observers.

    `patience` is how long to wait for an equal stop that is being decided (B12). When the check is
    cancelled, `aside` runs what records that.
    """
    if not stop.gates:
        decision = skipped("no-gate", *missing_names(stop.event, stop.declared))
    elif not stop.event.session_id.strip():
        decision = skipped("no-session", NO_SESSION)
        yield from _record_skip(stop, decision)
    else:
        files = yield from look_ahead(stop)  # git starts now, while the ledger opens
        try:
            begun = yield from _begin(stop, patience)
            if isinstance(begun, Decision):
                decision = begun
            else:
                if files is not None:
                    stop.questions.use_wait()
                decision = yield from _decide_and_record(stop, begun, files, aside)
        finally:
            if files is not None:
                files.leave()
    yield from finish(stop, decision)
    return decision


def decide(
    stop: Stop,
    history: History,
    keep: Keep,
    files: Files | None = None,
    *,
    run_unchanged: bool = False,
) -> Line[Decision]:
    """Plan the gates, run them stage by stage and settle their reports; record nothing.

    `files` may have been looked at ahead. Gates whose files did not change are skipped, unless
    `run_unchanged`; either way `stop.skipped_unchanged` names them afterwards.
    """
    if not stop.gates:
        return skipped("no-gate", *missing_names(stop.event, stop.declared))
    planned = stop.plan(history, {})
    running = [gate for stage in planned.stages for gate in stage]
    if not depends_on_files(planned.event, running):
        files = None
    elif files is None:
        files = _files_of(stop)
    if files is not None:
        yield from files.look(running)
        stop.unseen = files.warnings
        stop.skipped_unchanged = yield from files.recall(stop.ledger, stop.warn)
        if stop.skipped_unchanged and not run_unchanged:
            planned = stop.plan(history, stop.skipped_unchanged)
    decision = yield from _settle(stop, planned, keep, files)
    return decision if files is None else (yield from files.seal(decision))


def decide_again(
    stop: Stop, history: History, keep: Keep, unchanged: Mapping[str, str], before: Stop
) -> Line[Decision]:
    """Decide with these gates skipped, after a stop that looked at the files already."""
    decision = yield from _settle(stop, stop.plan(history, unchanged), keep, None)
    return variant(decision, {"warnings": (*decision.warnings, *before.unseen)})


def _settle(stop: Stop, planned: Plan, keep: Keep, files: Files | None) -> Line[Decision]:
    """Run the planned gates and settle their reports."""

    def look(planned: Plan, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:
        from notyet.engine.unchanged import tree_for_stuck

        return tree_for_stuck(planned, gates, reports, stop.deadline, files)

    stop.questions.event = planned.event
    reports, tree = yield from run_stages(planned, stop.questions.run, look, stop.questions.steps)
    from notyet.core.settle import settle  # the hook loads it while the gates run

    reports = yield from _keep_long_outputs(planned, reports, tree, keep)
    decision = settle(planned, reports, tree)
    if any(isinstance(gate.check, Command) for gate in stop.gates):
        from notyet.core.definition import defined

        decision = variant(decision, {"reports": defined(decision.reports, stop.gates)})
    return decision


def run_stages(
    planned: Plan,
    run: Run,
    look: Look,
    steps: Callable[[Sequence[Sequence[Gate]]], list[tuple[Sequence[Gate], bool]]] | None = None,
) -> Line[tuple[list[Report], str]]:
    """Run stage after stage until a gate blocks; return the reports, and the tree if it blocked.

    Gates that run in any case (A2, D3) run after that too. `steps` may join stages whose functions
    run one after another in one thread.
    """
    reports: list[Report] = []
    tree = ""
    blocked = False
    joined = steps(planned.stages) if steps else [(stage, False) for stage in planned.stages]
    for stage, in_order in joined:
        running = [gate for gate in stage if gate.always] if blocked else stage
        while running:
            ends = _until_blocked(running, blocked=blocked) if in_order else None
            answers: list[Report] = yield from run(running, ends)
            reports += answers
            left = running[len(answers) :]
            if not blocked and _one_blocks(running, answers):
                blocked = True
                tree = yield from look(planned, running, answers)
                left = [gate for gate in left if gate.always]
            running = left
    return reports, tree


def _until_blocked(gates: Sequence[Gate], *, blocked: bool) -> Ends:
    """Return what says, by place and report, that the gates after it do not run."""
    return lambda place, report: not blocked and _one_blocks(gates[place:], (report,))


def _one_blocks(gates: Sequence[Gate], reports: Sequence[Report]) -> bool:
    for gate, report in zip(gates, reports, strict=False):
        if not isinstance(report.answer, Allow):
            from notyet.core.settle import blocks

            if blocks(gate, report):
                return True
    return False


def _keep_long_outputs(
    planned: Plan, reports: list[Report], tree: str, keep: Keep
) -> Line[list[Report]]:
    """Keep each output that the agent is told only a part of; return the reports with the paths.

    The line that names a log takes room too, and may be what cuts the next gate short.
    """
    if all(isinstance(report.answer, Allow) for report in reports):
        return reports
    from notyet.core.settle import too_long

    known = {report.gate: report for report in reports}
    kept: set[str] = set()
    while cut := [n for n in too_long(planned, [*known.values()], tree) if n not in kept]:
        for name in cut:
            path = yield Call(keep, (known[name],))
            known[name] = replace(known[name], log=path)
        kept.update(cut)
    return [*known.values()]


# The files.


def look_ahead(stop: Stop) -> Line[Files | None]:
    """Let git look at the files that the gates depend on, while other things are done."""
    if not depends_on_files(stop.event, stop.gates):
        return None
    files = _files_of(stop)
    yield from files.begin()
    return files


def depends_on_files(event: StopEvent, gates: Sequence[Gate]) -> bool:
    """Return True if one of the gates can be skipped because no file changed (N1)."""
    for gate in gates:
        if gate.when == "changed" and isinstance(gate.check, Command):
            from notyet.git.repository import repository_of

            return not event.workspace and bool(repository_of(event.cwd))
    return False


def _files_of(stop: Stop) -> Files:
    from notyet.engine.unchanged import Files

    return Files(stop.event, stop.gates, stop.deadline)


# The ledger.


def _begin(stop: Stop, patience: float) -> Line[Begun | Decision]:
    """Enter a stop in the ledger, or return the answer of an equal one (B12)."""
    ends = monotonic() + stop.deadline.left(patience)
    while True:
        wait = stop.deadline.left(_PATIENCE_OF_LEDGER)
        try:
            begun: Begun = yield from _call(
                stop, stop.ledger.begin, stop.event, wait, undo=lambda begun: _give_up(stop, begun)
            )
            if not begun.repeats:
                return begun
            wait = max(0.0, min(_ONE_WAIT, ends - monotonic()))
            answer: Decision | None = yield Call(stop.ledger.answer, (begun.repeats, wait))
        except LedgerError as error:
            return skipped("ledger", f"{error} (nothing was asked)")
        if answer is None and monotonic() >= ends:
            answer = skipped("duplicate", "an equal stop is still being checked")
        if answer is not None:
            stop.is_repeat = True
            return answer


def _decide_and_record(
    stop: Stop, begun: Begun, files: Files | None, aside: Aside | None
) -> Line[Decision]:
    try:
        keep = keep_in(stop.ledger, begun, stop.warn)
        decision = yield from decide(stop, begun.history, keep, files)
        if begun.warnings or begun.overridden:
            warnings = (*begun.warnings, *decision.warnings)
            decision = variant(decision, {"overridden": begun.overridden, "warnings": warnings})
        try:
            wait = stop.deadline.left_to_record(_PATIENCE_OF_LEDGER)
            ceiling = stop.limits.session_ceiling
            recorded: Decision = yield from _call(
                stop, stop.ledger.record, begun, decision, ceiling, wait
            )
        except LedgerError as error:
            from notyet.core.limits import uncounted

            return uncounted(decision, str(error))
    except BaseException:  # cancelled or interrupted: the stop must not stay open in the ledger
        if aside is None:
            _give_up(stop, begun)
        else:
            aside(lambda: _give_up(stop, begun))
        raise
    return recorded


def keep_in(ledger: AnyLedger, begun: Begun, warn: Callable[[str], None]) -> Keep:
    """Return what keeps an output that is too long for the agent."""

    def keep(report: Report) -> str:
        try:
            path = ledger.keep_output(begun, report)
        except LedgerError as error:
            warn(f"{error} (the whole output of {report.gate} was not kept)")
            return ""
        if not path and not ledger.in_memory:
            warn(f"the whole output of {report.gate} could not be kept")
        return path

    return keep


def _record_skip(stop: Stop, decision: Decision) -> Line[None]:
    """Record a stop that was allowed for a cause (A10)."""
    try:
        wait = stop.deadline.left_to_record(_PATIENCE_OF_LEDGER)
        yield from _call(stop, stop.ledger.skip, stop.event, decision, wait)
    except LedgerError as error:
        stop.warn(f"{error} (that the stop was skipped was not recorded)")


def _give_up(stop: Stop, begun: Begun) -> None:
    if begun.repeats:
        return  # another process's stop
    try:
        stop.ledger.give_up(begun, stop.deadline.left_to_record(_PATIENCE_OF_LEDGER))
    except LedgerError as error:
        stop.warn(f"{error} (that this check was cancelled was not recorded)")


def _call(
    stop: Stop, call: Callable[..., Any], *args: Any, undo: Callable[[Any], None] | None = None
) -> Line[Any]:
    """Call the ledger; yield only where it can make us wait."""
    if stop.ledger.in_memory:
        return call(*args)
    return (yield Call(call, args, undo))


# Afterwards.


def finish(stop: Stop, decision: Decision) -> Line[None]:
    """Pass on the warnings of a decision, and notify the observers."""
    warn_all(decision.warnings, stop.warn)
    if stop.watches and not stop.is_repeat:  # else they hear of the stop that it repeats
        stop.questions.before_first()
        yield from notify(stop.watches, stop.event, decision, stop.deadline.last, stop.warn)


def notify(
    watches: Sequence[Watch],
    event: StopEvent,
    decision: Decision,
    deadline: float | None,
    warn: Callable[[str], None],
) -> Line[None]:
    """Notify the observers of a decision that is in force."""
    if not watches or (decision.outcome, decision.why) == ("skipped", "inside"):
        return  # a gate's own work is not an agent's ending
    from notyet.engine.observers import notify_all

    yield from notify_all(tuple(watches), event, decision, deadline, warn)


def warn_all(warnings: Sequence[str], warn: Callable[[str], None]) -> None:
    """Pass on the warnings of one stop, the first of very many."""
    for warning in warnings[:_MOST_WARNINGS]:
        warn(warning)
    if len(warnings) > _MOST_WARNINGS:
        warn(f"and {len(warnings) - _MOST_WARNINGS} more warnings about this stop")
