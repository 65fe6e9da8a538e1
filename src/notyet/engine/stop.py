"""One stop, front to back.

    look at the files ─► ledger.begin ─► plan ─► run each stage ─► settle ─► ledger.record

`check` is this list; `decide` is its middle part, for callers that count and record themselves.
Both are generators: they yield what they wait for and receive the result, so that the hook, the
engine and asyncio share this code (see `run.drive`).
"""

from __future__ import annotations

from time import monotonic

from notyet.core.gate import can_skip, defined, file_of
from notyet.core.limits import History, Limits, uncounted
from notyet.core.plan import blocks, missing_names, needs_tree, plan
from notyet.core.record import replace, variant
from notyet.core.verdict import Decision, skipped
from notyet.engine.gate_runs import GateRuns
from notyet.errors import LedgerError
from notyet.ledger import REPEATED
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
    from notyet.git.fingerprint import FileSet
    from notyet.ledger import AnyLedger, Begun
    from notyet.run.drive import Ends, Progress, Steps
    from notyet.run.functions import GateFunction

    Keep = Callable[[Report], str]  # stores the whole output of a report, and returns the path

NO_SESSION = "the event has no session_id, so no gate ran"
WAIT_FOR_EQUAL = 600.0  # seconds that the second of two equal stops waits for the first
_ONE_WAIT = 1.0  # seconds of that, between which the check can be cancelled
_WAIT_FOR_LEDGER = 60.0  # seconds where there is no deadline; a ledger may give up earlier
_TO_FINISH = 1.0  # seconds after the gates, out of the margin that the hook leaves
_PART_TO_FINISH = 8  # at most this part of a short time
_LEAST_SHARE = 1.0  # seconds; less says nothing about a command
_MOST_WARNINGS = 10  # of one stop


class Deadline:
    """Gates run until `ends`; recording and observers have until `last`.

    Both are times of the monotonic clock; None without a limit.
    """

    def __init__(self, within: float | None) -> None:
        if within is not None and within != within:  # noqa: PLR0124  # NaN is not equal to itself
            raise ValueError("within is a number of seconds, not NaN")
        self.ends = self.last = None
        self.within = within
        if within is not None:
            self.ends = monotonic() + within
            self.last = self.ends + min(_TO_FINISH, within / _PART_TO_FINISH)

    def left(self, patience: float) -> float:
        """Return how many seconds of `patience` are left before the gates must have ended."""
        return _within(patience, self.ends)

    def left_to_begin(self) -> float:
        """Return how many seconds the ledger has before the gates: all, since none runs without."""
        return _WAIT_FOR_LEDGER if self.ends is None else max(0.0, self.ends - monotonic())

    def left_to_record(self) -> float:
        """Return how many seconds the ledger has after the gates, without the observers' part."""
        if self.ends is None or self.last is None:
            return _WAIT_FOR_LEDGER
        return max(0.0, (self.ends + self.last) / 2 - monotonic())


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
        functions: Mapping[str, GateFunction] = {},
        watches: Sequence[Watch] = (),
        before_commands: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
        on_cancel: Callable[[Callable[[], None]], None] | None = None,
        wait_for_equal: float = WAIT_FOR_EQUAL,
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
        looked: Mapping[FileSet, str] = {},
        unchecked: tuple[str, ...] = (),
        untrusted: Sequence[str] = (),
        members: Sequence[tuple[str, Sequence[str]]] = (),
    ) -> None:
        """Take also what a caller wants done meanwhile.

        `before_commands` is called once, before the first command starts; `on_wait` once, while
        git or the first commands run. `on_cancel` is called if the check is cancelled, with the
        function that records it. `answers` are known reports of gates that do not run.
        `wait_for_equal` is how long to wait for an equal stop that is being decided (B12).
        `unchecked` says what is trusted and could not be loaded: this stop never passes (A8).
        `untrusted` says which files are not trusted, where no gate is: observers are notified.
        `members` are projects with the globs of their members: those without gates here are as
        they were when the agent began.
        """
        self.event = event
        self.gates = gates
        self.declared = declared or gates  # all gates, also those that do not apply
        self.looked = looked  # fingerprints that are known already
        self.ledger = ledger
        self.limits = limits
        self.unchecked = unchecked
        self.untrusted = untrusted
        self.members = members
        self.deadline = Deadline(within)
        self.warn = warn
        self.watches = watches
        self.on_cancel = on_cancel or (lambda record: record())
        self.wait_for_equal = wait_for_equal
        self.is_repeat = False  # an equal stop has answered (B12)
        self.warnings_of_files: tuple[str, ...] = ()  # which files git could not read
        self.skipped_unchanged: Mapping[str, str] = {}  # gates that need not run, and why (N1)
        self.runs = GateRuns(
            event,
            self.deadline,
            functions,
            progress,
            answers,
            before_commands=before_commands,
            on_wait=on_wait,
            jobs=limits.jobs,
        )

    def plan(self, history: History, unchanged: Mapping[str, str]) -> Plan:
        """Return which gates run, in which order."""
        if history.sent_back_by and self.members:
            history = self._without_unchanged_members(history)
        return plan(
            self.event,
            self.gates,
            history,
            self.limits,
            self.declared,
            unchanged=unchanged,
            unchecked=self.unchecked,
        )

    def _without_unchanged_members(self, history: History) -> History:
        """Forget that gates of members sent the agent back, if it undid its changes there (J6)."""
        from notyet.config.members import is_member

        here = {file_of(gate) for gate in self.declared}
        left = tuple(
            (name, file)
            for name, file in history.sent_back_by
            if file in here
            or not any(is_member(file.rpartition("/")[0], *project) for project in self.members)
        )
        return variant(history, {"sent_back_by": left})


def check(stop: Stop) -> Steps[Decision]:
    """Decide a stop, count it, record it, and notify the observers."""
    if not stop.gates:
        decision = _without_gates(stop)
        if stop.unchecked:
            decision = yield from _record_skip(stop, decision)
    elif not stop.event.session_id.strip():
        decision = yield from _record_skip(stop, skipped("no-session", NO_SESSION))
    else:
        decision = yield from _check_gates(stop)
    warn_all(decision.warnings, stop.warn)
    if stop.watches and not stop.is_repeat:  # else they are notified of the stop that it repeats
        from notyet.engine.observers import notify_all

        stop.runs.before_first()
        yield from notify_all(stop.watches, stop.event, decision, stop.deadline.last, stop.warn)
    return decision


def _without_gates(stop: Stop) -> Decision:
    """Return the decision where no gate applies; one may be in what could not be loaded (A8)."""
    if stop.unchecked:
        return skipped("config", *stop.unchecked)
    if stop.untrusted:
        return skipped("untrusted", *stop.untrusted)
    return skipped("no-gate", *missing_names(stop.event, stop.declared))


def _check_gates(stop: Stop) -> Steps[Decision]:
    files = _files_of(stop, stop.event, stop.gates)
    if files is not None:
        yield from files.begin()  # git runs while the ledger opens
    try:
        begun = yield from _begin(stop)
        if isinstance(begun, Decision):
            return begun
        if files is not None:
            stop.runs.use_wait()
        keep = keep_in(stop.ledger, begun, stop.warn)
        recorded: Decision | None = None
        try:
            decision = yield from decide(stop, begun.history, keep, files)
            recorded = yield from _record(stop, begun, decision)
            return recorded
        finally:
            if recorded is None:  # cancelled or interrupted: the stop must not stay open
                stop.on_cancel(lambda: _give_up(stop, begun))
    finally:
        if files is not None:
            files.cancel()


def decide(
    stop: Stop,
    history: History,
    keep: Keep,
    files: Files | None = None,
    *,
    unchanged: Mapping[str, str] | None = None,
    run_unchanged: bool = False,
) -> Steps[Decision]:
    """Plan the gates, run them stage by stage and settle their reports; record nothing.

    Git may have started on `files` before. Gates whose files did not change are skipped, unless
    `run_unchanged`; either way `stop.skipped_unchanged` names them afterwards. A caller that knows
    them passes `unchanged`; then no file is read.
    """
    if not stop.gates:
        return _without_gates(stop)
    planned = stop.plan(history, unchanged or {})
    running = [gate for stage in planned.stages for gate in stage]
    known = files
    files = _files_of(stop, planned.event, running, known) if unchanged is None else None
    if files is not None:
        yield from files.fingerprint(running)
        stop.warnings_of_files = files.warnings
        stop.skipped_unchanged = yield from files.recall(stop.ledger, stop.warn)
        if stop.skipped_unchanged and not run_unchanged:
            planned = stop.plan(history, stop.skipped_unchanged)
    reports, tree = yield from _run_stages(stop, planned, files)
    decision = yield from _settle(planned, reports, tree, keep)
    decision = defined(decision, stop.gates)
    return decision if files is None else (yield from files.add_to_reports(decision))


def _files_of(
    stop: Stop, event: StopEvent, gates: Sequence[Gate], begun: Files | None = None
) -> Files | None:
    """Return the files that decide which of these gates can be skipped; None if none can (N1)."""
    if event.workspace or not any(map(can_skip, gates)):
        return None
    if begun is not None:
        return begun
    from notyet.git.repository import repository_of

    if not repository_of(event.cwd):
        return None
    from notyet.engine.unchanged import Files

    return Files(stop.event, stop.gates, stop.deadline, stop.looked)


def _run_stages(stop: Stop, planned: Plan, files: Files | None) -> Steps[tuple[list[Report], str]]:
    """Run stage after stage until a gate blocks; return the reports, and the tree if one did.

    Gates with `always` run even then (A2, D3).
    """
    stop.runs.event = planned.event
    stop.runs.gates = stop.declared
    if stop.deadline.within is not None:
        # One that had that much and did not finish is too slow; else we were late (E9).
        stop.runs.share = max(_LEAST_SHARE, stop.deadline.within / (len(planned.stages) + 1))
    reports: list[Report] = []
    tree = ""
    blocked = False
    for gates, one_by_one in stop.runs.steps(planned.stages):
        left = [gate for gate in gates if gate.always] if blocked else gates
        while left:
            ends = _until_one_blocks(left) if one_by_one and not blocked else None
            answers: list[Report] = yield from stop.runs.run(left, ends)
            reports += answers
            stop.runs.reports = reports
            ran, left = left[: len(answers)], left[len(answers) :]
            if not blocked and any(map(blocks, ran, answers)):
                blocked = True
                left = [gate for gate in left if gate.always]
                tree = yield from _tree_of_stuck(stop, planned, ran, answers, files)
    return reports, tree


def _until_one_blocks(gates: Sequence[Gate]) -> Ends:
    """Return what ends a row of functions: the first report that blocks."""
    return lambda index, report: blocks(gates[index], report)


def _tree_of_stuck(
    stop: Stop, planned: Plan, gates: Sequence[Gate], reports: Sequence[Report], files: Files | None
) -> Steps[str]:
    """Return the fingerprint by which a blocked agent may be stuck (B6); empty if unknown."""
    event = planned.event
    if event.workspace or not needs_tree(planned, gates, reports):
        return ""
    tree: str = files.tree(event.cwd) if files is not None else ""
    if not tree:
        from notyet.git.fingerprint import PATIENCE, fingerprint

        tree = yield Call(fingerprint, (event.cwd, stop.deadline.left(PATIENCE)))
    return tree


def _settle(planned: Plan, reports: list[Report], tree: str, keep: Keep) -> Steps[Decision]:
    """Settle the reports; store each output that the prompt shortens, so that it can name the file.

    The line that names a file needs room too, and may shorten the output of the next gate.
    """
    from notyet.core.settle import settle_and_cut  # the hook loads it while the gates run

    stored: set[str] = set()
    decision, cut = settle_and_cut(planned, reports, tree)
    while not stored.issuperset(cut):
        for at, report in enumerate(reports):
            if report.gate in cut and report.gate not in stored:
                reports[at] = replace(report, log=(yield Call(keep, (report,))))
        stored.update(cut)
        decision, cut = settle_and_cut(planned, reports, tree)
    return decision


# The ledger.


def _begin(stop: Stop) -> Steps[Begun | Decision]:
    """Enter a stop in the ledger, or return what an equal one was sent back with (B12)."""
    ends = monotonic() + stop.deadline.left(stop.wait_for_equal)
    while True:
        wait = stop.deadline.left_to_begin()
        try:
            begun: Begun = yield from _call(
                stop, stop.ledger.begin, stop.event, wait, undo=lambda begun: _give_up(stop, begun)
            )
            if not begun.repeats:
                return begun
            wait = max(0.0, min(_ONE_WAIT, ends - monotonic()))
            answer: Decision | None = yield Call(stop.ledger.answer, (begun.repeats, wait))
        except LedgerError as error:
            return skipped("ledger", f"{error} (no gate ran)")
        if answer is not None and answer.outcome in REPEATED:
            stop.is_repeat = True
            return answer
        if answer is None and monotonic() >= ends:
            answer = skipped("duplicate", "the same stop is still being checked")
            yield from _record_skip(stop, answer)
            return answer


def _record(stop: Stop, begun: Begun, decision: Decision) -> Steps[Decision]:
    """Record a decision; return it as it may stand, since other stops count too."""
    if begun.warnings or begun.overridden:
        warnings = (*begun.warnings, *decision.warnings)
        decision = variant(decision, {"overridden": begun.overridden, "warnings": warnings})
    wait = stop.deadline.left_to_record()
    ceiling = stop.limits.session_ceiling
    try:
        recorded: Decision = yield from _call(
            stop, stop.ledger.record, begun, decision, ceiling, wait
        )
    except LedgerError as error:
        return uncounted(decision, str(error))
    return recorded


def keep_in(ledger: AnyLedger, begun: Begun, warn: Callable[[str], None]) -> Keep:
    """Return what stores the whole output of a gate; it returns no path where that failed."""

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


def _record_skip(stop: Stop, decision: Decision) -> Steps[Decision]:
    """Record a stop that was allowed for a cause (A10); return the decision with its number."""
    try:
        wait = stop.deadline.left_to_record()
        number: int = yield from _call(stop, stop.ledger.skip, stop.event, decision, wait)
    except LedgerError as error:
        stop.warn(f"{error} (that the stop was skipped was not recorded)")
        return decision
    return variant(decision, {"stop": number})


def _give_up(stop: Stop, begun: Begun) -> None:
    """Record that the check of a stop was cancelled."""
    if begun.repeats:
        return  # another process's stop
    try:
        stop.ledger.give_up(begun, stop.deadline.left_to_record())
    except LedgerError as error:
        stop.warn(f"{error} (that this check was cancelled was not recorded)")


def _call(
    stop: Stop, call: Callable[..., Any], *args: Any, undo: Callable[[Any], None] | None = None
) -> Steps[Any]:
    """Call the ledger; yield only where it can make us wait."""
    if stop.ledger.in_memory:
        return call(*args)
    return (yield Call(call, args, undo))


def warn_all(warnings: Sequence[str], warn: Callable[[str], None]) -> None:
    """Pass on the warnings of one stop, the first of very many."""
    for warning in warnings[:_MOST_WARNINGS]:
        warn(warning)
    if len(warnings) > _MOST_WARNINGS:
        warn(f"and {len(warnings) - _MOST_WARNINGS} more warnings about this stop")
