"""Settle recorded stops again, under today's configuration or another one.

A gate of today gets the answer that was recorded for the same definition (`core.gate`).
If the outcome depends on a gate without a recorded answer, the result is "unknown". A turn is
replayed from its first stop: after a stop that would have ended differently, the rest of the turn
is "hypothetical", because the agent would have done something else.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.config.load import NO_LOOK, load
from notyet.config.off import switched_off
from notyet.core.gate import Gate, definition_of, why_not
from notyet.core.limits import History, Limits, after
from notyet.core.plan import blocks, needs_tree, plan, select
from notyet.core.record import replace, variant
from notyet.core.settle import settle
from notyet.core.task import SUPERVISED_HOST
from notyet.core.text import visible
from notyet.core.verdict import Decision, Problem, Report, skipped
from notyet.git.repository import repository_of
from notyet.hosts import HOSTS
from notyet.ledger.past_histories import CountedStop, counted_stops, original_outcome
from notyet.ledger.past_stops import PastStop, read_stops
from notyet.ledger.tasks import Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from notyet.config.load import Draft, Setup
    from notyet.core.event import StopEvent
    from notyet.ledger.ledger import Ledger

RESULTS = ("same", "differs", "unknown", "hypothetical", "left_out")
SUPERVISOR = "notyet with"
_OWN_GATES = "a program used gates of its own"
_NOT_IN_FORCE = frozenset({"untrusted", "config"})
_REPLAYED_CAUSES = _NOT_IN_FORCE | {"background", "unchanged"}
_FAILING = frozenset({"blocked", "halted", "problem"})
_SLACK = 1.02  # a command that times out takes a little longer than its timeout

Then = tuple[PastStop, CountedStop]
Cause = tuple[str, str]  # a gate and what changed; an empty name: something else changed


@dataclass(frozen=True, kw_only=True)
class Config:
    """The gates and limits in force where a stop happened."""

    gates: tuple[Gate, ...] = ()
    definitions: Mapping[str, str] = field(default_factory=dict)  # by gate name
    limits: Limits = field(default_factory=Limits)
    workspace: str = ""
    no_gate: str = "no-gate"  # the cause of a stop that meets no gate
    has_git: bool = True
    answers: dict[str, Report] = field(default_factory=dict)  # of `--run`, by definition


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of replaying one stop."""

    past: PastStop
    result: str  # one of RESULTS
    was: str  # the outcome as it was decided then
    outcome: str = ""  # the outcome now; empty: unknown
    why: str = ""
    because: tuple[Cause, ...] = ()
    missing: tuple[tuple[Gate, str], ...] = ()  # gates without a recorded answer, and why
    ran_now: tuple[str, ...] = ()  # gates whose answer comes from `--run`
    history: History = field(default_factory=History)
    follows: int = 0  # an earlier stop of the turn that differs or is unknown
    left_out: str = ""

    @property
    def was_words(self) -> str:
        """The outcome then, with the cause of a skipped stop."""
        return _with_cause(self.was, self.past.why)

    @property
    def now_words(self) -> str:
        """The outcome now; "?" if it is unknown."""
        return _with_cause(self.outcome, self.why) or "?"

    @property
    def reasons(self) -> str:
        """Why it differs or is unknown."""
        words = [" ".join(filter(None, cause)) for cause in self.because]
        words += [f"{gate.name}: {why}" for gate, why in self.missing]
        return "; ".join(words) or "whether a file changed since the stop before"

    def plain(self) -> dict[str, Any]:
        """Return it as plain types, for programs."""
        past = self.past
        return {
            "id": past.id,
            "at": past.begun_at,
            "host": past.host,
            "session_id": past.session_id,
            "agent_id": past.agent_id,
            "cwd": past.event.cwd,
            "turn": past.turn,
            "result": self.result,
            "was": self.was,
            "recorded": past.outcome,
            "could_be": [self.outcome] if self.outcome else [],
            "why": self.why,
            "because": [{"gate": gate, "what": what} for gate, what in self.because],
            "missing": [{"gate": gate.name, "why": why} for gate, why in self.missing],
            "asked_now": list(self.ran_now),
            "follows": self.follows or None,
            "left_out": self.left_out,
        }


def _with_cause(outcome: str, why: str) -> str:
    return f"{outcome} ({why})" if outcome == "skipped" and why else outcome


def turns_of(ledger: Ledger, pasts: Sequence[PastStop]) -> list[list[Then]]:
    """Return the turns of these stops, each with the earlier stops of the same turn."""
    wanted = {past.id: past for past in pasts}
    counts = counted_stops(ledger, list(wanted))
    counts |= {number: _uncounted(past) for number, past in wanted.items() if number not in counts}
    last = {_turn(counts[number]): number for number in sorted(wanted)}
    earlier = [number for number, count in counts.items() if number < last.get(_turn(count), 0)]
    wanted |= {past.id: past for past in read_stops(ledger, earlier)}
    turns: dict[tuple[int, int], list[Then]] = {}
    for number, past in sorted(wanted.items()):
        turns.setdefault(_turn(counts[number]), []).append((past, counts[number]))
    return list(turns.values())


def _turn(count: CountedStop) -> tuple[int, int]:
    return (count.agent, count.turn) if count.turn else (0, -count.stop)


def _uncounted(past: PastStop) -> CountedStop:
    outcome = original_outcome(past.outcome, past.why)
    return CountedStop(stop=past.id, agent=0, turn=0, outcome=outcome, history=History(turn=1))


class Configs:
    """Loads the configuration of recorded stops, once for each place. Connects to no machine."""

    def __init__(self, environ: Mapping[str, str], draft: Draft | None, ledger: Ledger) -> None:
        self._environ = environ
        self._draft = draft
        self._tasks = Tasks(ledger)
        self._known: dict[tuple[str, ...], Config | str] = {}
        self.notes: dict[str, None] = {}  # what a person should know, in order

    def of(self, past: PastStop) -> Config | str:
        """Return the configuration for a stop, or why there is none."""
        task = past.task if past.host == SUPERVISED_HOST else ""
        key = (past.event.cwd, past.host, past.event.workspace, task)
        if key not in self._known:
            self._known[key] = self._loaded(*key)
        return self._known[key]

    def _loaded(self, cwd: str, host: str, workspace: str, task: str) -> Config | str:
        agent = ""
        if task:
            views = self._tasks.views(task)
            if not views or views[0].program != SUPERVISOR:
                return _OWN_GATES if views else "its task is not recorded any more"
            agent = views[0].agent or "?"
        if not cwd and not workspace:
            return "it names no folder"
        if not workspace and not os.path.isdir(cwd):
            return f"its folder is gone: {visible(cwd)}"
        off = switched_off(cwd, self._environ)
        if off:
            self.notes[f"gating is {off}; replayed as if it were on"] = None
        setup = self._setup(cwd, host, agent, workspace)
        if isinstance(setup, str):
            return setup
        self.notes.update(dict.fromkeys((*setup.warnings, *setup.distrust)))
        if setup.offline:
            where = visible(setup.workspace)
            self.notes[f"{where} was not connected to; its trusted files count"] = None
        return Config(
            gates=setup.gates,
            definitions={gate.name: definition_of(gate) for gate in setup.gates},
            limits=Limits(**setup.limits),
            workspace=setup.workspace,
            no_gate="untrusted" if setup.untrusted else "config" if setup.unreadable else "no-gate",
            has_git=bool(workspace or repository_of(cwd)),
        )

    def _setup(self, cwd: str, host: str, agent: str, workspace: str) -> Setup | str:
        """Load what is in force; the record does not say whether host or file named a workspace."""
        environ, draft = self._environ, self._draft
        setup = load(cwd, host, environ, agent=agent, patience=NO_LOOK, draft=draft)
        if not workspace or setup.workspace == workspace:
            return setup
        if draft is not None:
            return f"its files were in {visible(workspace)}, which the file does not name"
        setup = load(cwd, host, environ, agent=agent, patience=NO_LOOK, workspace=workspace)
        return setup if setup.workspace else replace(setup, workspace=workspace)


def replay(
    turns: Sequence[Sequence[Then]], config_of: Callable[[PastStop], Config | str]
) -> list[Finding]:
    """Replay turns, each with its oldest stop first; `config_of` may say why there is none."""
    found = [finding for turn in turns for finding in _replay_turn(turn, config_of)]
    return sorted(found, key=lambda finding: finding.past.id)


def _replay_turn(
    turn: Sequence[Then], config_of: Callable[[PastStop], Config | str]
) -> Iterator[Finding]:
    known = turn[0][1].history  # what earlier stops of this turn leave behind
    is_stuck_known = turn[0][1].is_first
    differs = unknown = 0
    for past, count in turn:
        config = _why_left_out(past) or config_of(past)
        if isinstance(config, str) or differs:
            why = config if isinstance(config, str) else ""
            result = "left_out" if why else "hypothetical"
            follows = 0 if why else differs
            yield Finding(
                past=past, result=result, was=count.outcome, follows=follows, left_out=why
            )
            continue
        history = replace(
            count.history,
            extend=max(known.extend, count.history.extend if unknown else 0),
            repeats=known.repeats if is_stuck_known else count.history.blocks,
            repeat_key=known.repeat_key,
            sent_back_by=known.sent_back_by,
        )
        stop = _Stop((past, count), config, history, is_stuck_known=is_stuck_known)
        yield stop.finding(follows=unknown)
        decision = stop.decision
        if decision is None:
            unknown = unknown or past.id
            is_stuck_known = False
            continue
        known = after(history, replace(decision, turn=history.turn))
        is_blocked = decision.outcome == "blocked" and stop.needs_tree
        is_stuck_known = is_stuck_known and (bool(decision.repeat_key) or not is_blocked)
        if _effect(decision.outcome, count) != _effect(count.outcome, count):
            differs = past.id


def _effect(outcome: str, count: CountedStop) -> tuple[str, int]:
    """Return whether an agent continues after an outcome, and how many send-backs count then."""
    fate = outcome if outcome in {"blocked", "halted"} else "allowed"
    return fate, 0 if outcome in {"passed", "observed"} else count.history.blocks


def _why_left_out(past: PastStop) -> str:
    """Return why no configuration decides about a stop; empty if one does."""
    if past.outcome == "asking":
        return "its gates are still running"
    if past.host not in HOSTS:
        return _OWN_GATES
    if past.outcome == "skipped" and past.why not in _REPLAYED_CAUSES:
        return f"skipped: {past.why}"
    if past.why == "background" and not past.event.background_tasks:
        return "its background tasks were too many to record"
    return ""


class _Stop:
    """One stop, settled again from recorded reports; no `decision`: an answer is missing."""

    def __init__(
        self, then: Then, config: Config, history: History, *, is_stuck_known: bool
    ) -> None:
        self._past, self._count = then
        self._config, self._history = config, history
        self._is_stuck_known = is_stuck_known
        self._event = variant(self._past.event, {"workspace": config.workspace})
        self._gates = select(self._event, config.gates)
        self._missing: list[tuple[Gate, str]] = []
        self._ran_now: list[str] = []
        self.needs_tree = False  # whether it is stuck depends on the state of the files
        self.decision = self._settled() if self._gates else skipped(config.no_gate)

    def finding(self, *, follows: int) -> Finding:
        """Compare the outcome with the recorded one."""
        past, was, decision = self._past, self._count.outcome, self.decision
        outcome = decision.outcome if decision is not None else ""
        result = "unknown" if decision is None else "same" if outcome == was else "differs"
        was_gated = was != "skipped" or past.why not in _NOT_IN_FORCE
        if was_gated != bool(self._gates):
            result = "differs"
        causes: tuple[Cause, ...] = ()
        if result == "differs":
            causes = _because(past, was, decision, self._config, self._event)
        return Finding(
            past=past,
            result=result,
            was=was,
            outcome=outcome,
            why=decision.why if decision is not None else "",
            because=causes,
            missing=tuple(self._missing) if decision is None else (),
            ran_now=tuple(self._ran_now),
            history=self._history,
            follows=follows,
        )

    def _settled(self) -> Decision | None:
        """Go through the stages with the recorded answers; None if one is missing that matters."""
        answers = {gate.name: self._answer(gate) for gate in self._gates}
        unchanged = {n: a.spared for n, a in answers.items() if isinstance(a, Report) and a.spared}
        limits, every = self._config.limits, self._config.gates
        planned = plan(self._event, self._gates, self._history, limits, every, unchanged=unchanged)
        reports: list[Report] = []
        is_held = False
        for stage in planned.stages:
            running = [gate for gate in stage if gate.always or not is_held]
            said = [(gate, answers[gate.name]) for gate in running]
            known = [(gate, answer) for gate, answer in said if isinstance(answer, Report)]
            # After a missing answer later stages may not run, but can fail all the same.
            self._missing = self._missing or [(g, why) for g, why in said if isinstance(why, str)]
            reports += [report for _, report in known]
            if not is_held and any(blocks(gate, report) for gate, report in known):
                is_held = True
                self.needs_tree = needs_tree(planned, *zip(*known, strict=True))
        if self._missing and not is_held:
            return None
        tree = [*self._count.repeat_key.split("-", 2), "", ""][2]
        decision = settle(planned, reports, tree if self.needs_tree else "")
        is_known = self._is_stuck_known and not self._missing
        is_known = is_known and (bool(tree) or not self._config.has_git)
        may_be_stuck = self.needs_tree and self._history.repeats + 1 >= limits.stuck_after
        is_unclear = may_be_stuck and not is_known and decision.outcome in {"blocked", "stuck"}
        return None if is_unclear else decision

    def _answer(self, gate: Gate) -> Report | str:
        """Return a gate's recorded answer as a report of today, or why there is none."""
        definition = self._config.definitions[gate.name]
        said = _recorded(gate, definition, self._past.reports)
        if isinstance(said, str):
            if definition not in self._config.answers:
                return said
            self._ran_now.append(gate.name)
            said = self._config.answers[definition]
        return replace(said, gate=gate.name, observed=gate.observe, held=False)


def _recorded(gate: Gate, definition: str, reports: Sequence[Report]) -> Report | str:
    """Return the report with this definition, under any name; or why there is none."""
    if all(report.answer is None for report in reports):
        return "no gate ran then"
    twins = [report for report in reports if definition and report.definition == definition]
    report = next((twin for twin in twins if twin.gate == gate.name), twins[0] if twins else None)
    if report is None:
        namesake = next((report for report in reports if report.gate == gate.name), None)
        if namesake is None:
            return "it is new"
        is_old = not namesake.definition and namesake.answer is not None
        return "what it ran is not recorded" if is_old else "it runs something else now"
    if report.spared:
        return report if gate.when == "changed" else "it was skipped then, files unchanged"
    if report.answer is None:
        return "it did not run then"
    timeout = gate.timeout
    if isinstance(report.answer, Problem) and report.answer.kind == "timeout":
        has_more = timeout is None or timeout > report.seconds * _SLACK
        return "it timed out then, and has more time now" if has_more else report
    if _is_too_slow(timeout, report):
        said = f"it took {report.seconds:.1f} s, and its timeout is {timeout:g} s"
        return replace(report, answer=Problem("timeout", said))
    return report


def _is_too_slow(timeout: float | None, report: Report) -> bool:
    is_cut = isinstance(report.answer, Problem) and report.answer.kind in {"timeout", "deadline"}
    return timeout is not None and not is_cut and report.seconds > timeout * _SLACK


def _changes(past: PastStop, config: Config, event: StopEvent) -> dict[str, str]:
    """Return what changed about each gate since a stop; gates that did not change are left out."""
    if not past.reports:  # the gates in force then are not recorded
        return {}
    by_name = {gate.name: gate for gate in config.gates}
    reports = _renamed(past.reports, config)
    found = {one.gate: _change(one, by_name.get(one.gate), config, event) for one in reports}
    for gate in config.gates:
        if gate.name not in found and not why_not(gate, event):
            found[gate.name] = "is new"
    return {name: what for name, what in found.items() if what}


def _renamed(reports: Sequence[Report], config: Config) -> list[Report]:
    """Return reports under the names that gates with the same definition have today."""
    names = {definition: name for name, definition in reversed([*config.definitions.items()])}
    return [
        report
        if not report.definition or config.definitions.get(report.gate) == report.definition
        else replace(report, gate=names.get(report.definition, report.gate))
        for report in reports
    ]


def _change(report: Report, gate: Gate | None, config: Config, event: StopEvent) -> str:
    if gate is None:
        return "is gone"
    if report.definition and config.definitions[gate.name] != report.definition:
        return "runs something else now"
    why = why_not(gate, event)
    if why:
        return f"no longer applies: {why}"
    if gate.observe != report.observed:
        return "only observes now" if gate.observe else "no longer only observes"
    if report.when and gate.when != report.when:
        return f"has when = {gate.when} now"
    if isinstance(report.answer, Problem) and blocks(gate, report) != report.held:
        return f"has if_broken = {gate.if_broken} now"
    if _is_too_slow(gate.timeout, report):
        return f"took {report.seconds:.3g} s, and has a timeout of {gate.timeout:g} s now"
    return ""


def _because(
    past: PastStop, was: str, decision: Decision | None, config: Config, event: StopEvent
) -> tuple[Cause, ...]:
    """Return what makes the difference between a recorded stop and a decision of today."""
    if was == "skipped" and past.why in _NOT_IN_FORCE:
        return (("", f"its gates were not in force then ({past.why})"),)
    if was == "skipped" and past.why == "background":
        return (("", "wait_for_background is false now"),)
    if decision is None:
        return ()
    if (decision.outcome, decision.why) == ("skipped", "background"):
        return (("", "wait_for_background is true now"),)
    then, now = (
        {
            (one.gate, one.status, one.observed, one.held)
            for one in reports
            if one.status in _FAILING
        }
        for reports in (_renamed(past.reports, config), decision.reports)
    )
    changed = _changes(past, config, event)
    moved = {gate for gate, *_ in then ^ now}
    found = [(gate, what) for gate, what in changed.items() if gate in moved]
    if "capped" in {was, decision.outcome} and decision.limit != past.limit:
        words = f"the limit is {decision.limit} ({decision.limit_source}), not {past.limit}"
        found.append(("", words))
    if "stuck" in {was, decision.outcome} and not found:
        found.append(("", f"stuck_after is {config.limits.stuck_after} now"))
    return tuple(found or changed.items())
