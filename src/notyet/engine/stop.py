"""When a stop must be decided, because its host waits no longer (E9)."""

from __future__ import annotations

from time import monotonic

from notyet import light
from notyet.core.gate import Command, Function, place_of
from notyet.core.limits import History, Limits
from notyet.core.plan import plan
from notyet.core.record import Record, replace, variant
from notyet.core.settle import holds, needs_tree, too_long
from notyet.core.verdict import Allow, Decision, skipped
from notyet.errors import LedgerError
from notyet.git import look
from notyet.hosts import command_face
from notyet.light import dumps
from notyet.run.drive import Call, Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from notyet.core.event import StopEvent
    from notyet.core.gate import Exit, Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Report
    from notyet.engine.unchanged import Remembering
    from notyet.hosts.answers import Reading
    from notyet.ledger import AnyLedger, Begun
    from notyet.run.command import CommandQuestion
    from notyet.run.drive import Ends, Line, Progress
    from notyet.run.elsewhere import Transcripts
    from notyet.run.functions import Question, Writer
    from notyet.run.spawn import Job

    Keep = Callable[[Report], str]  # keeps a report's output, and returns where
    Asked = Literal["needed", "all"]  # "all": nobody is spared because nothing changed (N1)
    Aside = Callable[[Callable[[], None]], None]  # runs what nobody waits for

_SPARE = 1.0  # seconds for what comes after the gates, out of the margin that the hook leaves
_SPARE_PART = 8  # and no more than this part of the time, where there is little of it


class Deadline:
    """The gates have until `ends`; to record the answer and tell observers, until `last`.

    Both are times of the monotonic clock; None where nobody presses.
    """

    def __init__(self, within: float | None) -> None:
        if within is not None and within != within:  # noqa: PLR0124  # NaN is not equal to itself
            raise ValueError("within is a number of seconds, not NaN")
        self.ends = None if within is None else monotonic() + within
        self.last = self.ends
        if within is not None and self.ends is not None:
            self.last = self.ends + min(_SPARE, within / _SPARE_PART)

    def left(self, patience: float) -> float:
        """Return how long to wait for something of our own before the gates have answered."""
        return _within(patience, self.ends)

    def left_at_last(self, patience: float) -> float:
        """Return how long to wait once they have; observers are left the rest of the time."""
        if self.ends is None or self.last is None:
            return patience
        return _within(patience, (self.ends + self.last) / 2)


def _within(patience: float, ends: float | None) -> float:
    return patience if ends is None else max(0.0, min(patience, ends - monotonic()))


_NOT_RUNNABLE = (126, 127)


class Asking:
    """One stop, as its gates get to see it."""

    def __init__(
        self,
        event: StopEvent,
        questions: Mapping[str, Question],
        deadline: Deadline,
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
        *,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self.event = event  # once it is planned: as the gates see it
        self._progress = progress
        self._answers = answers  # of gates that are not asked, because somebody answers
        self._while_waiting = while_waiting
        self._questions = questions
        self.deadline = deadline
        self._calls: dict[Writer, Callable[[], tuple[Any, ...]]] = {}
        # Each dialect's form of the event is written once.
        self._payloads: dict[tuple[str, str], tuple[bytes, dict[str, str]]] = {}
        self._transcripts: Transcripts | None = None

    def use_wait(self) -> None:
        """Do what is to be done while somebody is at work, if that was not done yet."""
        if self._while_waiting is not None:
            do, self._while_waiting = self._while_waiting, None
            do()

    def decide(self, planned: Plan, keep: Keep) -> Line[Decision]:
        """Ask stage after stage, until one holds the agent, and settle what was said."""
        self.event = planned.event
        reports: list[Report] = []
        tree = ""
        is_held = False
        for stage, in_order in self._steps(planned.stages):
            # Some run in any case, whatever another one said (A2, D3).
            asked = [gate for gate in stage if gate.always] if is_held else stage
            while asked:
                ends = _until_held(asked, is_held=is_held) if in_order else None
                answers: list[Report] = yield from self._ask(asked, ends)
                reports += answers
                left = asked[len(answers) :]
                if not is_held and _is_one_holding(asked, answers):
                    is_held = True
                    tree = yield from self._tree(planned, asked, answers)
                    left = [gate for gate in left if gate.always]
                asked = left
        from notyet.core import settle  # which a hook loads while it waits

        decision = settle.settle(planned, reports, tree)
        if decision.outcome == "blocked":
            logged = yield from with_logs(planned, reports, tree, keep)
            decision = settle.settle(planned, logged, tree) if logged else decision
        return decision

    def _tree(self, planned: Plan, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:
        """Return what the files look like that this is about; empty if unknown, or nobody asks."""
        # most stops hold nobody

        return (yield from tree_of(self, planned, gates, reports))

    def _steps(self, stages: Sequence[Sequence[Gate]]) -> list[tuple[Sequence[Gate], bool]]:
        """Return who is asked in one go: a stage, or functions that come one after another.

        Those are handed over to one thread; but somebody who listens wants to hear of each.
        """
        if len(stages) == 1 or self._progress is not None or self._answers:
            return [(stage, False) for stage in stages]
        steps: list[tuple[Sequence[Gate], bool]] = []
        row: list[Gate] = []
        is_async: bool | None = None
        for stage in stages:
            question = self._questions.get(stage[0].name) if len(stage) == 1 else None
            if question is None:
                steps.append((stage, False))
                is_async = None
                continue
            if question.is_async is not is_async:  # another kind needs another way
                row, is_async = [], question.is_async
                steps.append((row, True))
            row += stage
        return steps

    def _ask(self, gates: Sequence[Gate], ends: Ends | None) -> Line[list[Report]]:
        """Ask gates in one go, but for those whose answer is known."""
        asked = gates
        if self._answers:
            asked = [gate for gate in gates if gate.name not in self._answers]
        if self._transcripts is None and self._is_elsewhere(asked):
            from notyet.run.elsewhere import read_transcripts

            self._transcripts = yield Call(read_transcripts, (self.event,))
        answers: list[Report] = []
        if asked:
            answers = yield self._stage(asked, ends)
            self._while_waiting = None  # it is called once
        if not self._answers:
            return answers
        said = {**self._answers, **{report.gate: report for report in answers}}
        return [said[gate.name] for gate in gates]

    def _is_elsewhere(self, gates: Sequence[Gate]) -> bool:
        """Tell whether one of these gates runs on another machine; a function never does."""
        for gate in gates:
            if gate.name not in self._questions and self.place(gate) is not None:
                return True
        return False

    def place(self, gate: Gate) -> Remote | None:
        """Return where a gate's command runs; None: here, as functions always do (M1)."""
        return place_of(gate, self.event.workspace)

    def _stage(self, gates: Sequence[Gate], ends: Ends | None) -> Stage:
        """Return what asks these gates."""
        functions = {}
        commands = {}
        for place, gate in enumerate(gates):
            question = self._questions.get(gate.name)
            if question is None:
                commands[place] = self._command(gate)
            else:
                functions[place] = (question, self._arguments(question))
        meanwhile = self._while_waiting if commands else None
        return Stage(
            functions,
            commands,
            self.deadline.ends,
            self._progress,
            ends=ends,
            while_waiting=meanwhile,
        )

    def _arguments(self, question: Question) -> tuple[Any, ...]:
        write = question.write
        assert write is not None  # a gate's
        call = self._calls.get(write)
        if call is None:
            call = self._calls[write] = write(self.event)
        return call()

    def _command(self, gate: Gate) -> CommandQuestion:
        from notyet.run.command import CommandQuestion

        check = gate.check
        assert isinstance(check, Command)
        face = command_face(check.speaks)
        remote = self.place(gate)
        warning = ""
        if remote is None:
            job = self._job(gate, check)
        else:
            job, warning = self._job_there(gate, check, remote)
        if "refused" in check.options:  # why it must not even be tried
            from notyet.run.linked import LinkedJob

            if not isinstance(job, LinkedJob):
                job = LinkedJob(**job.__dict__)
            job = replace(job, refused=check.options["refused"])
        return CommandQuestion(
            name=gate.name,
            job=job,
            read=lambda exit: _silent(check, exit, remote) or face.read_reply(gate, exit),  # noqa: A006  # its name in our words
            observed=gate.observe,
            warning=warning,
        )

    def _job(self, gate: Gate, check: Command) -> Job:
        from notyet.run.command import job_for

        folder = folder_of(gate)
        written = (check.speaks, folder)
        if written not in self._payloads:
            payload, environ = command_face(check.speaks).write_event(self.event, folder)
            self._payloads[written] = dumps(payload).encode(), environ
        stdin, environ = self._payloads[written]
        return job_for(
            check,
            folder=folder or self.event.cwd,
            cwd=self.event.cwd,
            stdin=stdin,
            environ=environ,
            timeout=gate.timeout,
        )

    def _job_there(self, gate: Gate, check: Command, remote: Remote) -> tuple[Job, str]:
        """Return what asks a gate elsewhere, and what is to be said about that."""
        from notyet.run.elsewhere import Transcripts, job_there

        transcripts = self._transcripts or Transcripts()
        job = job_there(
            check,
            remote,
            self.event,
            command_face(check.speaks).write_event,
            transcripts=transcripts,
            timeout=gate.timeout,
        )
        return job, transcripts.warning


def _until_held(gates: Sequence[Gate], *, is_held: bool) -> Ends:
    """Return what tells, by place and report, that gates which come later are not asked."""
    return lambda place, report: not is_held and _is_one_holding(gates[place:], (report,))


def _is_one_holding(gates: Sequence[Gate], reports: Sequence[Report]) -> bool:
    """Tell whether one of these reports ends the questioning; most have nothing against it."""
    for gate, report in zip(gates, reports, strict=False):
        if not isinstance(report.answer, Allow):
            from notyet.core.settle import holds

            if holds(gate, report):
                return True
    return False


def _silent(check: Command, exit: Exit, remote: Remote | None) -> Reading | None:  # noqa: A002  # its name in our words
    """Return the problem of a Python gate whose process ended before it could answer (N4)."""
    if "python" not in check.options:
        return None
    if remote is not None and exit.code in _NOT_RUNNABLE:
        return None  # the shell there says why
    if exit.code is None or exit.problem or exit.timed_out or exit.stdout.strip():
        return None
    from notyet.core.verdict import Problem
    from notyet.hosts.answers import Reading

    said = f"its process ended with exit code {exit.code} and no answer"
    return Reading(answer=Problem("crashed", said))


def folder_of(gate: Gate) -> str:
    """Return the folder of the file that a gate is written in; empty for one made in code."""
    return light.dirname(gate.source.file) if gate.source is not None else ""


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
            from notyet.git.remote import fingerprint_there

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


# How a stop that gates apply to is decided: who is asked, who is spared, and what came of it.
#
#     plan ─► look at the files ─► recall who has passed ─► ask each stage ─► settle ─► look again
#
# Nothing is counted and nothing is written here, so that `notyet check` goes the same way as a
# stop.


NO_SESSION = "the event has no session_id, so nothing was asked"


class Situation(Record, kw_only=True):
    """What a stop is decided by: the gates that apply, and how often they held this agent."""

    gates: tuple[Gate, ...]
    declared: Sequence[Gate] = ()  # all gates, also those that do not apply
    history: History = History()
    limits: Limits = Limits()


class Deciding:
    """One stop that is being decided."""

    def __init__(self, asking: Asking, situation: Situation) -> None:
        self._asking = asking
        self._situation = situation
        self.spared: Mapping[str, str] = {}  # whom a stop need not ask, and why
        self._unseen: tuple[str, ...] = ()  # that files could not be looked at

    def decide(
        self,
        ledger: AnyLedger,
        keep: Keep,
        warn: Callable[[str], None],
        asked: Asked = "needed",
        *,
        remembering: Remembering | None = None,
    ) -> Line[Decision]:
        """Ask those who must be asked, settle what was said, and look on which files they passed.

        The ledger is only asked what it remembers. `remembering` may have begun to look already.
        """
        everybody = self._plan({})
        if not depends_on_files(everybody.event, [g for stage in everybody.stages for g in stage]):
            return self._defined((yield from self._asking.decide(everybody, keep)))
        if remembering is None:
            from notyet.engine.unchanged import Remembering

            gates, deadline = self._situation.gates, self._asking.deadline
            remembering = Remembering(everybody.event, gates, deadline)
        yield from remembering.look(everybody)
        self._unseen = remembering.warnings
        self.spared = yield from remembering.recall(ledger, warn)
        needed = self._plan(self.spared) if self.spared and asked == "needed" else everybody
        decision = yield from self._asking.decide(needed, keep)
        return (yield from remembering.seal(self._defined(decision)))

    def decide_without(
        self, spared: Mapping[str, str], asking: Asking, keep: Keep
    ) -> Line[Decision]:
        """Decide again with some gates left out; the files are not looked at another time."""
        self._asking = asking
        decision = self._defined((yield from asking.decide(self._plan(spared), keep)))
        return variant(decision, {"warnings": (*decision.warnings, *self._unseen)})

    def _plan(self, spared: Mapping[str, str]) -> Plan:
        now = self._situation
        event = self._asking.event
        return plan(event, now.gates, now.history, now.limits, now.declared, spared=spared)

    def _defined(self, decision: Decision) -> Decision:
        """Return a decision whose reports say what was asked, where that is a command."""
        gates = self._situation.gates
        for gate in gates:
            if isinstance(gate.check, Command):
                from notyet.core.definition import defined

                return variant(decision, {"reports": defined(decision.reports, gates)})
        return decision


def begin_to_look(
    event: StopEvent, gates: Sequence[Gate], deadline: Deadline
) -> Line[Remembering | None]:
    """Have git look at the files that gates depend on, while other things are done."""
    if not depends_on_files(event, gates):
        return None
    from notyet.engine.unchanged import Remembering

    remembering = Remembering(event, gates, deadline)
    yield from remembering.begin()
    return remembering


def depends_on_files(event: StopEvent, gates: Sequence[Gate]) -> bool:
    """Tell whether one of the gates may be spared by what the files look like (N1)."""
    for gate in gates:
        if gate.when == "changed" and isinstance(gate.check, Command):
            from notyet.git.place import repository_of

            return bool(event.workspace or repository_of(event.cwd))
    return False


# How a stop that gates apply to is checked: entered in the ledger, decided, counted, recorded.
#
# ledger.begin ─► decide (see `deciding`) ─► ledger.record


_ONE_WAIT = 1.0  # seconds
_PATIENCE_OF_LEDGER = 60.0  # seconds at most; a ledger of files has a patience of its own


class Checking:
    """One stop that is being checked."""

    def __init__(
        self,
        asking: Asking,
        situation: Situation,
        ledger: AnyLedger,
        warn: Callable[[str], None],
        aside: Aside,
    ) -> None:
        self.repeats = False  # whether the answer is that of an equal stop
        self._asking = asking
        self._event = asking.event
        self._deadline = asking.deadline
        self._situation = situation
        self._ledger = ledger
        self._warn = warn
        self._aside = aside

    def check(self, patience: float, remembering: Remembering | None = None) -> Line[Decision]:
        """Decide and record; `patience` is for the first of two equal stops.

        `remembering` may have begun to look at files already.
        """
        if not self._event.session_id.strip():
            decision = skipped("no-session", NO_SESSION)
            yield from self._write_down(decision)
            return decision
        if remembering is None:  # git is at work while the ledger is opened
            gates = self._situation.gates
            remembering = yield from begin_to_look(self._event, gates, self._deadline)
        try:
            entered = yield from self._enter(patience)
            if isinstance(entered, Decision):
                return entered
            if remembering is not None:
                self._asking.use_wait()
            return (yield from self._decide_and_record(entered, remembering))
        finally:
            if remembering is not None:
                remembering.leave()

    def _enter(self, patience: float) -> Line[Begun | Decision]:
        """Enter a stop in the ledger, or return the answer that an equal one gets (B12)."""
        ends = monotonic() + self._deadline.left(patience)
        while True:
            wait = self._deadline.left(_PATIENCE_OF_LEDGER)
            try:
                begun: Begun = yield from self._keep(
                    self._ledger.begin, self._event, wait, undo=self._give_up
                )
                if not begun.repeats:
                    return begun
                # In short waits, so that nobody is left waiting when this check is cancelled.
                wait = max(0.0, min(_ONE_WAIT, ends - monotonic()))
                answer: Decision | None = yield Call(self._ledger.answer, (begun.repeats, wait))
            except LedgerError as error:
                return skipped("ledger", f"{error} (nothing was asked)")
            if answer is not None:
                self.repeats = True
                return answer
            if monotonic() >= ends:
                self.repeats = True
                return skipped("duplicate", "an equal stop is still being checked")

    def _decide_and_record(self, begun: Begun, remembering: Remembering | None) -> Line[Decision]:
        deciding = Deciding(self._asking, variant(self._situation, {"history": begun.history}))
        try:
            decision = yield from deciding.decide(
                self._ledger, self._kept_by(begun), self._warn, remembering=remembering
            )
            if begun.warnings or begun.overridden:
                warnings = (*begun.warnings, *decision.warnings)
                found = {"overridden": begun.overridden, "warnings": warnings}
                decision = variant(decision, found)
            try:
                wait = self._deadline.left_at_last(_PATIENCE_OF_LEDGER)
                ceiling = self._situation.limits.session_ceiling
                recorded: Decision = yield from self._keep(
                    self._ledger.record, begun, decision, ceiling, wait
                )
            except LedgerError as error:
                from notyet.core.limits import uncounted

                return uncounted(decision, str(error))
        except BaseException:  # cancelled, interrupted: the stop must not look asked for ever
            self._aside(lambda: self._give_up(begun))
            raise
        return recorded

    def _kept_by(self, begun: Begun) -> Callable[[Report], str]:
        """Return what keeps an output that is too long for the agent, and says where."""

        def keep(report: Report) -> str:
            try:
                path = self._ledger.keep_output(begun, report)
            except LedgerError as error:
                self._warn(f"{error} (the whole output of {report.gate} was not kept)")
                return ""
            if not path and not self._ledger.instant:
                self._warn(f"the whole output of {report.gate} could not be kept")
            return path

        return keep

    def _write_down(self, decision: Decision) -> Line[None]:
        """Record a stop that was let go for a cause (A10)."""
        try:
            wait = self._deadline.left_at_last(_PATIENCE_OF_LEDGER)
            yield from self._keep(self._ledger.skip, self._event, decision, wait)
        except LedgerError as error:
            self._warn(f"{error} (that the stop was skipped was not recorded)")

    def _keep(
        self, call: Callable[..., Any], *args: Any, undo: Callable[[Any], None] | None = None
    ) -> Line[Any]:
        """Call the ledger, and wait for it only where it can make us wait."""
        if self._ledger.instant:
            return call(*args)
        return (yield Call(call, args, undo))

    def _give_up(self, begun: Begun) -> None:
        if begun.repeats:
            return  # another's stop
        try:
            self._ledger.give_up(begun, self._deadline.left_at_last(_PATIENCE_OF_LEDGER))
        except LedgerError as error:
            self._warn(f"{error} (that this check was cancelled was not recorded)")
