"""A rehearsed stop: the hook answers it as any other, but nothing is counted or recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.cli.stop_options import read_stop
from notyet.config.caller import inside_agent
from notyet.config.load import Setup
from notyet.core.event import StopEvent
from notyet.core.gate import Command, Exit, why_not
from notyet.core.limits import History, Limits, open_turn
from notyet.core.plan import missing_names, select
from notyet.core.record import replace
from notyet.core.verdict import UNCHECKED, Allow, Block, Halt, Problem, Report, skipped
from notyet.engine.stop import NO_SESSION, Stop, decide, warn_all
from notyet.errors import LedgerError, LedgerNeedsRepair
from notyet.hook.hook import Hook, completed, reply_of
from notyet.hook.payload import HostCall, Options
from notyet.hosts import command_dialect
from notyet.hosts.host import Reply
from notyet.ledger import Begun
from notyet.ledger.ledger import Ledger
from notyet.ledger.memory import MemoryLedger
from notyet.ledger.past_histories import preview_begin
from notyet.ledger.untold import preview_unchanged
from notyet.run.drive import drive_sync
from notyet.run.gate_command import GateCommand
from notyet.run.groups import adopt_orphans
from notyet.run.spawn import Job
from notyet.status.overview import only_elsewhere, setups_elsewhere

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.cli.stop_options import DescribedStop
    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Decision
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Progress

VERDICTS = ("allow", "block", "halt", "broken", "exit")
# Causes for which a stop is allowed before any file is loaded.
_NOT_LOADED = ("off", "inside", "supervised", "unreadable", "host")
_HOW = "write it like tests=block:'Fix the tests.', tests=allow, tests=broken or tests=exit:3"
_MAX_EXIT = 255
_NO_WORDS = "(answered by --answer)"
_OTHERS_VARIABLES = frozenset({"NOTYET_SUPERVISED", "NOTYET_PROBE"})
_NOT_REMEMBERED = "passes are not remembered, because an agent runs this check"
_UNKNOWN = "so counts and remembered passes are unknown, and this check is not remembered"


@dataclass(frozen=True)
class AnswerOption:
    """`--answer NAME=VERDICT[:WORDS]`: what a gate is taken to say, without running it."""

    gate: str
    verdict: str
    words: str = ""

    @classmethod
    def parse(cls, text: str) -> AnswerOption:
        """Parse an option. Raises ValueError that shows how one is written."""
        name, _, said = text.partition("=")
        verdict, _, words = said.partition(":")
        if not name or verdict not in VERDICTS:
            raise ValueError(f"{text!r} is not an answer; {_HOW}")
        if verdict == "exit":
            is_number = words.isascii() and words.isdecimal() and len(words) <= len(str(_MAX_EXIT))
            if not is_number or int(words) > _MAX_EXIT:
                raise ValueError(f"exit takes a code from 0 to {_MAX_EXIT}, not {words!r}; {_HOW}")
        return cls(name, verdict, words)

    def report(self, gate: Gate) -> Report:
        """Return the report of a gate with this answer."""
        words = self.words.strip() and self.words
        if self.verdict == "exit":
            return self._exit(gate)
        said: Allow | Block | Halt | Problem = Allow()
        if self.verdict == "block":
            said = Block(words or _NO_WORDS)
        elif self.verdict == "halt":
            said = Halt(words)
        elif self.verdict == "broken":
            said = Problem("crashed", words or _NO_WORDS)
        return Report(gate=gate.name, answer=said, observed=gate.observe, output=words)

    def _exit(self, gate: Gate) -> Report:
        """Return what an exit code means to the host that the command is written for."""
        assert isinstance(gate.check, Command)  # files hold no functions
        dialect = command_dialect(gate.check.speaks)
        question = GateCommand(
            name=gate.name,
            job=Job(argv=("true",), dir="/", environ={}),  # which is not run
            read=lambda ended: dialect.read_reply(gate, ended),
            observed=gate.observe,
        )
        return question.report(Exit(code=int(self.words)), cut=False)


@dataclass
class Rehearsal:
    """The result of a rehearsed stop."""

    event: StopEvent
    decision: Decision = field(default_factory=lambda: skipped("no-gate"))  # with all gates run
    stop_decision: Decision | None = None  # with unchanged gates skipped, as a stop does (N1)
    reply: Reply = field(default_factory=Reply)  # to the stop
    setup: Setup = field(default_factory=Setup)
    not_applying: Sequence[tuple[Gate, str]] = ()  # gates that are not for this stop, and why
    skipped_unchanged: Mapping[str, str] = field(default_factory=dict)  # by a stop, and why (N1)
    answered: frozenset[str] = frozenset()
    names: Sequence[str] = ()  # the gates that were named; empty: all
    unknown: Sequence[str] = ()  # names that no gate has
    notes: Sequence[str] = ()
    trouble: str = ""  # of the ledger

    @property
    def is_unchecked(self) -> bool:
        """True if a gate that counts gave no answer, whatever that means for a stop."""
        reports = self.decision.reports
        counting = [report for report in reports if not report.observed]
        if any(isinstance(report.answer, Problem) for report in counting):
            return True
        # Gates after one that blocks need not run.
        if not self.blocks and any(report.answer is None for report in counting):
            return True
        if not set(self.names).issubset({r.gate for r in reports if r.answer is not None}):
            return True
        is_untrusted = bool(self.setup.untrusted) and not self.names
        return not reports or is_untrusted or bool(self.setup.unchecked)

    @property
    def blocks(self) -> bool:
        """True if a gate that counts blocks or halts, also where the limit allows the stop."""
        reports = self.decision.reports
        return any(isinstance(r.answer, Block | Halt) and not r.observed for r in reports)


def rehearse(
    stop: DescribedStop,
    environ: Mapping[str, str],
    *,
    names: Sequence[str] = (),
    answers: Sequence[AnswerOption] = (),
    timeout: str = "",
    progress: Progress | None = None,
) -> Rehearsal:
    """Run the gates, remember their passes, and return what a stop would have come to.

    Raises NotyetError for a payload that is not a stop.
    """
    read_stop(stop, environ)
    argv = ["--host", stop.host] if stop.host else []
    argv += ["--timeout", timeout] if timeout else []
    kept = {name: value for name, value in environ.items() if name not in _OTHERS_VARIABLES}
    hook = RehearsalHook(
        HostCall(Options(argv), kept, lambda: stop.content), stop, names, answers, progress
    )
    try:
        reply = reply_of(hook)
    finally:
        hook.ledger.close()
    if hook.error is not None:
        raise hook.error
    done, setup = hook.done, hook.done.setup
    done.reply = reply
    done.event = hook.event or done.event
    notes = (
        *hook.call.options.warnings,
        *(line for line in hook.warnings if not line.startswith(UNCHECKED)),
        *(done.decision.warnings if done.decision.outcome == "skipped" else ()),
        *setup.warnings,
        *setup.distrust,
        *hook.notes,
    )
    done.notes = tuple(dict.fromkeys(notes))
    done.trouble = hook.trouble[-1] if hook.trouble else ""
    if not setup.workspace and done.event.cwd and done.decision.why not in _NOT_LOADED:
        others = setups_elsewhere(done.event.cwd, environ, ())
        done.not_applying = [*done.not_applying, *only_elsewhere(setup, others)]
    return done


class RehearsalHook(Hook):
    """A hook that records nothing but passes."""

    sees_all = True

    def __init__(
        self,
        call: HostCall,
        about: DescribedStop,
        names: Sequence[str],
        answers: Sequence[AnswerOption],
        progress: Progress | None,
    ) -> None:
        super().__init__(call, _adopt)
        self.about = about
        self.answers = {answer.gate: answer for answer in answers}
        self.progress = progress
        self.done = Rehearsal(
            StopEvent(host=self.host), names=tuple(names), answered=frozenset(self.answers)
        )
        self.error: Exception | None = None
        self.trouble: list[str] = []
        self.notes: list[str] = []  # which are not in the reply
        self.ledger = Ledger(repair=False)  # only a stop repairs it, since its user is told
        self._known: AnyLedger = self.ledger  # or an empty one, in place of a damaged one
        self._begun = Begun(stop=0)

    def answer_stop(self, event: StopEvent) -> Reply:
        """Answer a stop; options replace what its payload says."""
        self.event = self.about.changed(event)
        return super().answer_stop(self.event)

    def load(self, event: StopEvent | StartEvent, longest: float) -> Setup:
        """Return what is in force, with only the gates that were named."""
        self.done.setup = setup = super().load(event, longest)
        known = {gate.name for gate in setup.gates}
        named = dict.fromkeys((*self.done.names, *self.answers))
        self.done.unknown = [name for name in named if name not in known]
        if self.done.unknown:
            return replace(setup, gates=())
        if self.done.names:
            kept = tuple(gate for gate in setup.gates if gate.name in self.done.names)
            return replace(setup, gates=kept)
        return setup

    def check(self, event: StopEvent, setup: Setup) -> Decision:
        """Run the gates, and remember their passes."""
        done = self.done
        self.event = event = completed(event, setup)
        done.not_applying = [(g, why) for g in setup.gates if (why := _why_not(g, event))]
        answers = {
            gate.name: self.answers[gate.name].report(gate)
            for gate in setup.gates
            if gate.name in self.answers
        }
        gates = select(event, setup.gates)
        stop = self._stop(event, gates, answers)
        done.decision = self._run_all(stop, setup)
        self._remember([r for r in done.decision.reports if r.gate not in answers])
        done.stop_decision = done.decision
        if done.skipped_unchanged:
            # Gates that ran need not run again; others may, if a skipped one blocked them here.
            known = {r.gate: r for r in done.decision.reports if r.answer is not None}
            again = self._stop(event, gates, known)
            unchanged, history = done.skipped_unchanged, self._begun.history
            line = decide(again, history, _keep_nothing, unchanged=unchanged)
            decision = self._with_begun(drive_sync(line))
            warnings = (*decision.warnings, *stop.warnings_of_files)
            done.stop_decision = replace(
                decision, warnings=warnings, unchanged=self._unchanged_in(event, decision)
            )
        warn_all(done.stop_decision.warnings, self.warnings.append)
        warn_all(done.decision.warnings, self.notes.append)
        return done.stop_decision

    def _stop(
        self, event: StopEvent, gates: tuple[Gate, ...], answers: Mapping[str, Report]
    ) -> Stop:
        setup = self.done.setup
        return Stop(
            event,
            gates,
            self._known,
            declared=setup.gates,
            limits=Limits(**setup.limits),
            within=self.time_left(),
            warn=self.trouble.append,
            before_commands=self.before_commands,
            progress=self.progress,
            answers=answers,
            unchecked=setup.unchecked,
            members=self.members,
        )

    def _run_all(self, stop: Stop, setup: Setup) -> Decision:
        """Run every gate that applies; note which of them a stop would have skipped."""
        if not stop.gates:
            return skipped("no-gate", *missing_names(stop.event, setup.gates))
        if not stop.event.session_id.strip():
            return skipped("no-session", NO_SESSION)
        try:
            self._begun = preview_begin(self.ledger, stop.event, self.time_left())
        except LedgerNeedsRepair as error:  # a stop begins a new ledger
            self.trouble.append(f"{error} ({_UNKNOWN})")
            self._known = stop.ledger = MemoryLedger()
            self._begun = Begun(stop=0, history=open_turn(History(), stop.event))
        except LedgerError as error:
            return skipped("ledger", f"{error} (no gate ran)")
        line = decide(stop, self._begun.history, _keep_nothing, run_unchanged=True)
        decision = drive_sync(line)
        self.done.skipped_unchanged = stop.skipped_unchanged
        return self._with_begun(decision)

    def _unchanged_in(self, event: StopEvent, decision: Decision) -> tuple[str, ...]:
        """Return the gates of which a stop tells the user that no file changed."""
        try:
            return self.ledger.connection.read(lambda db: preview_unchanged(db, event, decision))
        except LedgerError:  # which is reported already
            return ()

    def _with_begun(self, decision: Decision) -> Decision:
        """Add what was found when the stop began, as the engine does."""
        warnings = (*self._begun.warnings, *decision.warnings)
        return replace(decision, overridden=self._begun.overridden, warnings=warnings)

    def _remember(self, reports: Sequence[Report]) -> None:
        """Remember passes, so that the next stop skips them; forget those that fail now.

        An agent's check remembers none: it chooses the programs on its PATH, at a stop its host
        does.
        """
        done = self.done
        passed = [report for report in reports if report.passed_on]
        failed = [
            r for r in reports if r.failed_on and done.skipped_unchanged.get(r.gate) == "passed"
        ]
        if passed and inside_agent(self.environ):
            self.notes.append(_NOT_REMEMBERED)
            passed = []
        if not passed and not failed:
            return
        try:
            self._known.remember([*passed, *failed])
        except LedgerError as error:
            self.trouble.append(f"{error} (this check is not remembered)")
            return
        runs = {report.gate for report in failed}  # in the next stop, too
        kept = {name: why for name, why in done.skipped_unchanged.items() if name not in runs}
        done.skipped_unchanged = kept

    def repaired(self) -> Sequence[str]:
        """Return nothing: no ledger is repaired here."""
        return ()

    def record_skip(self, cause: str, words: Sequence[str]) -> int:
        """Record nothing in the ledger."""
        self.done.decision = skipped(cause, *words)
        return 0

    def recover(self, error: Exception) -> Reply:
        """Keep a fault of ours: here it is raised, since no agent is to be protected from it."""
        self.error = error
        return super().recover(error)


def _adopt() -> None:
    """Become the parent of the processes that gates leave behind (E2)."""
    adopt_orphans()


def _keep_nothing(_report: Report) -> str:
    return ""


def _why_not(gate: Gate, event: StopEvent) -> str:
    return "it is the host's own helper agent" if event.internal else why_not(gate, event)
