"""`--answer NAME=VERDICT[:WORDS]`: what a gate is taken to say, without asking it."""

from __future__ import annotations

from notyet.cli.about_event import read
from notyet.config.inside import inside_agent
from notyet.config.settings import Setup
from notyet.core.event import StopEvent
from notyet.core.gate import Command, Exit, why_not
from notyet.core.limits import History, Limits, open_turn
from notyet.core.plan import missing_names, select
from notyet.core.record import Record, replace
from notyet.core.verdict import Allow, Block, Halt, Problem, Report, skipped
from notyet.engine.stop import NO_SESSION, Stop, decide, decide_again, warn_all
from notyet.errors import LedgerError, LedgerUnmended
from notyet.hook.main import Hook, answer_by, completed
from notyet.hook.payload import Call, Options
from notyet.ledger import Begun
from notyet.ledger.history import foresee
from notyet.ledger.memory import MemoryLedger
from notyet.ledger.stops import Ledger
from notyet.run.drive import drive_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.cli.about_event import About
    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.core.verdict import Decision
    from notyet.hosts import Reply
    from notyet.ledger import AnyLedger
    from notyet.run.drive import Progress

VERDICTS = ("allow", "block", "halt", "broken", "exit")
_HOW = "write it like tests=block:'Mend the tests.', tests=allow, tests=broken or tests=exit:3"
_HIGHEST_EXIT = 255
_UNSAID = "(answered by --answer)"


class Answer(Record):
    """What a gate is taken to say."""

    gate: str
    verdict: str
    words: str = ""


def answer_from(text: str) -> Answer:
    """Read an answer. Raises ValueError that says how one is written."""
    at = text.find("=")
    while at > 0:  # a name may hold the sign itself
        verdict, _, words = text[at + 1 :].partition(":")
        if verdict in VERDICTS:
            return _checked(Answer(text[:at], verdict, words))
        at = text.find("=", at + 1)
    raise ValueError(f"{text!r} is no answer; {_HOW}")


def _checked(answer: Answer) -> Answer:
    if answer.verdict != "exit":
        return answer
    if not answer.words.isascii() or not answer.words.isdecimal():
        raise ValueError(f"exit is followed by a code, not {answer.words!r}; {_HOW}")
    if len(answer.words) > len(str(_HIGHEST_EXIT)) or int(answer.words) > _HIGHEST_EXIT:
        raise ValueError(f"an exit code is at most {_HIGHEST_EXIT}, not {answer.words}")
    return answer


def report_of(gate: Gate, answer: Answer) -> Report:
    """Return what a gate would have reported, had it answered so."""
    words = answer.words.strip() and answer.words
    if answer.verdict == "exit":
        return _ended(gate, int(answer.words))
    said: Allow | Block | Halt | Problem = Allow()
    if answer.verdict == "block":
        said = Block(words or _UNSAID)
    elif answer.verdict == "halt":
        said = Halt(words)
    elif answer.verdict == "broken":
        said = Problem("crashed", words or _UNSAID)
    return Report(gate=gate.name, answer=said, observed=gate.observe, output=words)


def _ended(gate: Gate, code: int) -> Report:
    """Return what a command's exit code says, in the words of whom the command is written for."""
    from notyet.hosts import command_face
    from notyet.run.command import CommandQuestion
    from notyet.run.spawn import Job

    assert isinstance(gate.check, Command)  # no file holds a function
    face = command_face(gate.check.speaks)
    question = CommandQuestion(
        name=gate.name,
        job=Job(argv=("true",), dir="/", environ={}),  # which is not run
        read=lambda ended: face.read_reply(gate, ended),
        observed=gate.observe,
    )
    return question.report(Exit(code=code), cut=False)


# Of a supervisor, or of `notyet status`, and of no interest to somebody who asks.
_OTHERS = frozenset({"NOTYET_SUPERVISED", "NOTYET_PROBE"})
_NOBODY_TO_ASK = frozenset({"no-gate", "background"})  # as it should be
_NOT_REMEMBERED = "what passed is not remembered, since an agent runs this check"

_UNKNOWN = "so it is not known what was spent and what passed, and nothing is remembered of this"


class Wish(Record, kw_only=True):
    """What somebody wants to know."""

    stop: About
    names: tuple[str, ...] = ()  # only these gates; empty: all
    answers: tuple[Answer, ...] = ()
    timeout: str = ""
    progress: Progress | None = None


class Checked(Record, kw_only=True):
    """What came of it."""

    event: StopEvent
    decision: Decision  # with everybody asked
    foretold: Decision  # what a stop would come to now, which leaves out whom it spares (N1)
    reply: Reply  # to the stop
    setup: Setup = Setup()
    unasked: tuple[tuple[Gate, str], ...] = ()  # those that do not apply, and why
    spared: Mapping[str, str] = {}  # those that a stop would not ask, and why (N1)
    answered: frozenset[str] = frozenset()
    named: tuple[str, ...] = ()  # whom somebody wants to be asked; empty: all
    unknown: tuple[str, ...] = ()  # names that no gate has
    notes: tuple[str, ...] = ()  # for whoever asked
    trouble: str = ""  # of the ledger

    @property
    def is_unasked(self) -> bool:
        """Whether there may be gates that should have been asked, and were not."""
        decision = self.decision
        if decision.outcome == "skipped" and decision.why not in _NOBODY_TO_ASK:
            return True
        asked = {report.gate for report in decision.reports if report.answer is not None}
        return not asked.issuperset(self.named)


def ask(wish: Wish, environ: Mapping[str, str]) -> Checked:
    """Ask the gates, remember their passes, and return what a stop would have come to.

    Raises NotyetError for what is no stop.
    """
    read(wish.stop, environ)
    hook = _Rehearsal(wish, environ)
    try:
        reply = answer_by(hook)
    finally:
        hook.close()
    if hook.error is not None:
        raise hook.error
    return hook.checked(reply)


class _Rehearsal(Hook):
    """A call of the hook that records nothing but passes, and tells nobody."""

    sees_all = True

    def __init__(self, wish: Wish, environ: Mapping[str, str]) -> None:
        argv = ["--host", wish.stop.host] if wish.stop.host else []
        argv += ["--timeout", wish.timeout] if wish.timeout else []
        kept = {name: value for name, value in environ.items() if name not in _OTHERS}
        super().__init__(Call(Options(argv), kept, lambda: wish.stop.content), _adopt)
        self.wish = wish
        self.error: Exception | None = None
        self._setup_here = Setup()
        self._decision = skipped("no-gate")
        self._foretold: Decision | None = None
        self._stop: Stop | None = None
        self._found = Begun(stop=0)  # what the ledger knows of the agent
        self._spared: Mapping[str, str] = {}
        self._unasked: tuple[tuple[Gate, str], ...] = ()
        self._unknown: tuple[str, ...] = ()
        self._trouble: list[str] = []
        self.notes: list[str] = []  # for whoever asked, and no part of the reply
        self._ledger = Ledger(mends=False)  # only a stop mends it, since its user is told
        self._known: AnyLedger = self._ledger  # or nothing, in place of what is damaged

    def close(self) -> None:
        """Give back what the ledger holds."""
        self._ledger.close()

    def stopping(self, event: StopEvent) -> Reply:
        """Answer a stop, with what the options say in place of what its payload says."""
        self.event = self.wish.stop.changed(event)
        return super().stopping(self.event)

    def load(self, event: StopEvent | StartEvent, longest: float) -> Setup:
        """Return what is in force, with only the gates that were named."""
        setup = super().load(event, longest)
        known = {gate.name for gate in setup.gates}
        named = (*self.wish.names, *(answer.gate for answer in self.wish.answers))
        self._unknown = tuple(dict.fromkeys(name for name in named if name not in known))
        self._setup_here = setup
        if self._unknown:  # then nobody is asked
            return replace(setup, gates=())
        if self.wish.names:
            kept = tuple(gate for gate in setup.gates if gate.name in self.wish.names)
            return replace(setup, gates=kept)
        return setup

    def check(self, event: StopEvent, setup: Setup) -> Decision:
        """Ask the gates, and remember their passes."""
        event = completed(event, setup)
        self.event = event
        self._unasked = tuple((gate, why) for gate in setup.gates if (why := _why_not(gate, event)))
        gates = {gate.name: gate for gate in setup.gates}
        answers = {
            answer.gate: report_of(gates[answer.gate], answer)
            for answer in self.wish.answers
            if answer.gate in gates
        }
        self._decision = self._rehearsed(event, setup, answers)
        self._remember([r for r in self._decision.reports if r.gate not in answers])
        self._foretold = self._without_spared(event) if self._spared else self._decision
        warn_all(self._foretold.warnings, self.said.append)
        warn_all(self._decision.warnings, self.notes.append)
        return self._foretold

    def _without_spared(self, event: StopEvent) -> Decision:
        """Return what a stop would come to now, which leaves out whom it spares.

        Whoever has answered already is not asked again; others may be, whom a gate held up here
        that a stop would not have asked.
        """
        assert self._stop is not None
        known = {r.gate: r for r in self._decision.reports if r.answer is not None}
        stop = self._new_stop(event, self._stop.gates, known)
        line = decide_again(stop, self._found.history, _keep_nothing, self._spared, self._stop)
        return self._as_begun(drive_sync(line))

    def _new_stop(
        self, event: StopEvent, gates: tuple[Gate, ...], answers: Mapping[str, Report]
    ) -> Stop:
        setup = self._setup_here
        return Stop(
            event,
            gates,
            self._known,
            declared=setup.gates,
            limits=Limits(**setup.limits),
            within=self.time_left(),
            warn=self._trouble.append,
            before_commands=self.before_commands,
            progress=self.wish.progress,
            answers=answers,
        )

    def repaired(self) -> Sequence[str]:
        """Return nothing: no ledger is repaired here."""
        return ()

    def _rehearsed(self, event: StopEvent, setup: Setup, answers: Mapping[str, Report]) -> Decision:
        """Ask every gate that applies, and look whom a stop would have spared."""
        gates = select(event, setup.gates)
        if not gates:
            return skipped("no-gate", *missing_names(event, setup.gates))
        if not event.session_id.strip():
            return skipped("no-session", NO_SESSION)
        try:
            self._found = begun = self._begun(event)
        except LedgerError as error:
            return skipped("ledger", f"{error} (nothing was asked)")
        self._stop = stop = self._new_stop(event, gates, answers)
        decision = drive_sync(decide(stop, begun.history, _keep_nothing, run_unchanged=True))
        self._spared = stop.skipped_unchanged
        return self._as_begun(decision)

    def _as_begun(self, decision: Decision) -> Decision:
        """Add to a decision what was found when the stop began, as the engine does."""
        warnings = (*self._found.warnings, *decision.warnings)
        return replace(decision, overridden=self._found.overridden, warnings=warnings)

    def _begun(self, event: StopEvent) -> Begun:
        """Return what a stop would find in the ledger; nothing is counted. Raises LedgerError."""
        try:
            return foresee(self._ledger, event, self.time_left())
        except LedgerUnmended as error:  # a stop begins a new one, whatever of this can be read
            self._trouble.append(f"{error} ({_UNKNOWN})")
            self._known = MemoryLedger()
            return Begun(stop=0, history=open_turn(History(), event))

    def _remember(self, reports: Sequence[Report]) -> None:
        """Remember the passes, so that the next stop need not ask; take back what failed now.

        No passes for an agent: it chooses which programs are found here, and at a stop its host
        does.
        """
        passed = [report for report in reports if report.passed_on]
        failed = [r for r in reports if r.failed_on and self._spared.get(r.gate) == "passed"]
        if passed and inside_agent(self.environ):
            self.notes.append(_NOT_REMEMBERED)
            passed = []
        if not passed and not failed:
            return
        try:
            self._known.remember([*passed, *failed])
        except LedgerError as error:
            self._trouble.append(f"{error} (so nothing is remembered of this)")
            return
        asked = {report.gate for report in failed}  # by the next stop, too
        self._spared = {name: why for name, why in self._spared.items() if name not in asked}

    def record_skip(self, cause: str, words: Sequence[str]) -> Sequence[str]:
        """Write down nothing: this is no stop."""
        self._decision = skipped(cause, *words)
        return ()

    def recover(self, error: Exception) -> Reply:
        """Keep a fault of ours: here nobody waits for an answer who must not see it."""
        self.error = error
        return super().recover(error)

    def checked(self, reply: Reply) -> Checked:
        """Return what came of it."""
        setup = self._setup_here
        warnings = (*self.call.options.warnings, *self.said, *setup.warnings)
        said = (*warnings, *setup.distrust, *self.notes)
        return Checked(
            event=self.event or StopEvent(host=self.host),
            decision=self._decision,
            foretold=self._foretold or self._decision,
            reply=reply,
            setup=setup,
            unasked=self._unasked,
            spared=self._spared,
            answered=frozenset(answer.gate for answer in self.wish.answers),
            named=self.wish.names,
            unknown=self._unknown,
            notes=tuple(dict.fromkeys(said)),
            trouble=self._trouble[-1] if self._trouble else "",
        )


def _keep_nothing(_report: Report) -> str:
    return ""


def _why_not(gate: Gate, event: StopEvent) -> str:
    if event.internal:
        return "it is a helper of the host itself"
    return why_not(gate, event)


def _adopt() -> None:
    """Become the parent of whatever gates leave behind, before the first one is asked (E2)."""
    from notyet.run.sweep import adopt_orphans

    adopt_orphans()
