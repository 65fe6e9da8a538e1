"""Observers: notified of decisions, one after another, and unable to change them (K10)."""

from __future__ import annotations

from notyet.core.event import private_copy
from notyet.core.gate import Command, check_timeout, name_of, where
from notyet.core.message import note
from notyet.core.record import Record, as_dict, variant
from notyet.core.text import clean
from notyet.core.verdict import (
    GONE,
    GROUPS,
    OUTCOMES,
    Allow,
    Block,
    Decision,
    Halt,
    Problem,
    group_of,
)
from notyet.engine.gate_runs import gate_command, transcripts_for
from notyet.hosts import neovate, openclaw
from notyet.hosts.hook_answers import HookAnswer
from notyet.hosts.notyet.hooks import write_event
from notyet.run.drive import Stage
from notyet.run.functions import GateFunction
from notyet.run.gate_command import exit_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.config.compiled import FileObserver
    from notyet.core.event import StopEvent
    from notyet.core.gate import Exit
    from notyet.core.verdict import Report
    from notyet.run.drive import Steps
    from notyet.run.gate_command import GateCommand

_SCOPES = {"stop": "agent", "subagent_stop": "subagent", "subagent_ended": "subagent"}
EVERY_DECISION = "decision"  # sent-back agents included
OBSERVED = (*_SCOPES, EVERY_DECISION)
_NO_ENDING = frozenset({"blocked", "overridden"})  # the first goes on, the second ended long ago


class Observer(Record):
    """A handler `(event, ctx)` for "stop", "subagent_stop", "subagent_ended" or "decision".

    One for "decision" is notified of every decision, also of those that send an agent back; it
    gets `(event, decision)`, and may be a `Command`, which runs here unless it names a workspace.
    At the next stop it is also notified if the agent was sent back and did not come again; then
    `decision.overridden` is the number of that stop. `outcomes` narrows down which, by
    outcomes or their groups "not_passed" and "not_checked".
    """

    on: str
    call: Callable[..., Any] | Command
    timeout: float | None = 30.0
    name: str = ""
    folder: str = ""  # of the file that it is written in
    outcomes: tuple[str, ...] = OUTCOMES

    def _validate(self) -> None:
        if self.on not in OBSERVED:
            raise ValueError(
                f"an observer is for one of {', '.join(OBSERVED)}, not for {self.on!r}"
            )
        is_command = isinstance(self.call, Command) and self.on == EVERY_DECISION
        if not is_command and not callable(self.call):
            raise TypeError(f"an observer is a function, not {type(self.call).__name__}")
        given: Any = self.outcomes  # one text stands for a tuple of one
        self.__dict__["outcomes"] = (given,) if isinstance(given, str) else tuple(given)
        known = (*OUTCOMES, *GROUPS)
        strange = [name for name in self.outcomes if name not in known]
        if strange:
            raise ValueError(f"outcomes are some of {', '.join(known)}, not {strange[0]!r}")
        check_timeout(self.timeout)


def observer_of(observer: FileObserver) -> Observer:
    """Return the observer that a file declares."""
    return Observer(
        EVERY_DECISION,
        observer.check,
        timeout=observer.timeout,
        name=observer.name,
        folder=observer.source.file.rpartition("/")[0] if observer.source is not None else "",
        outcomes=observer.on,
    )


class Watch:
    """An observer, and how it is run; made once."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.name = observer.name
        self._question: GateFunction | None = None
        if not isinstance(observer.call, Command):
            name = self.name or f"{observer.on} observer {name_of(observer.call)}"
            self._question = GateFunction(name, observer.call, _ignore, timeout=observer.timeout)

    def notify(self, event: StopEvent, decision: Decision, deadline: float | None) -> Steps[Report]:
        """Notify the observer of a decision; return how that went."""
        if self._question is not None:
            arguments = _arguments(self.observer.on, event, decision)
            stage = Stage({0: (self._question, arguments)}, {}, deadline)
        else:
            command = yield from self._command(event, decision)
            stage = Stage({}, {0: command}, deadline)
        reports: list[Report] = yield stage
        return reports[0]

    def _command(self, event: StopEvent, decision: Decision) -> Steps[GateCommand]:
        observer = self.observer
        assert isinstance(observer.call, Command)
        remote = where(observer.call)
        return gate_command(
            observer.call,
            event,
            lambda event, folder: _written(event, folder, decision),
            _ended,
            name=f"observer {self.name}",
            remote=remote,
            folder=observer.folder,
            timeout=observer.timeout,
            transcripts=(yield from transcripts_for(event, (remote,))),
        )


def notify_all(
    watches: Sequence[Watch],
    event: StopEvent,
    decision: Decision,
    deadline: float | None,
    warn: Callable[[str], None],
) -> Steps[None]:
    """Notify observers of a decision, one after another; what goes wrong is only warned of."""
    if (decision.outcome, decision.why) == ("skipped", "inside"):
        return  # a gate's own work is not an agent's ending
    if decision.overridden and decision.outcome != "overridden":
        before = found_out(decision.overridden, decision.turn - 1)
        yield from notify_all(watches, event, before, deadline, warn)
    seen = variant(event, {"block_count": decision.count, "max_blocks": decision.limit})
    for watch in watches:
        if hears(watch.observer, event, decision):
            report = yield from watch.notify(seen, decision, deadline)
            if isinstance(report.answer, Problem):
                warn(f"{report.gate} {report.answer} (ignored)")
            if report.warning:
                warn(f"{report.gate}: {report.warning}")


def hears(observer: Observer, event: StopEvent, decision: Decision) -> bool:
    """Return True if this observer is notified of a decision."""
    kinds = {decision.outcome, group_of(decision.outcome, decision.why)}
    if event.internal or kinds.isdisjoint(observer.outcomes):
        return False
    if observer.on == EVERY_DECISION:
        return True
    return decision.outcome not in _NO_ENDING and _SCOPES[observer.on] == event.scope


def found_out(stop: int, turn: int) -> Decision:
    """Return the decision by which observers hear that an agent did not come again (B11)."""
    return Decision(
        verdict=Allow(),
        outcome="overridden",
        turn=turn,
        why=f"the agent {GONE}",
        overridden=stop,
        stop=stop,
    )


def _arguments(on: str, event: StopEvent, decision: Decision) -> tuple[Any, ...]:
    """Return the arguments of a function, in a copy of its own."""
    event = private_copy(event)
    if on == EVERY_DECISION:
        return event, decision
    if on == "stop":
        return neovate.write_stop(event, decision)
    if on == "subagent_stop":
        return neovate.write_subagent_stop(event, decision)
    return openclaw.write_ended(event, decision)


def _written(
    event: StopEvent, folder: str, decision: Decision
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a command gets on its stdin, and in its environment."""
    payload, environ = write_event(event, folder)
    reports = [as_dict(report) | {"status": report.status} for report in decision.reports]
    settled = as_dict(decision) | _kind_of(decision) | {"reports": reports}
    content = {"event": payload, "decision": settled}
    said = {"NOTYET_OUTCOME": decision.outcome, "NOTYET_NOTE": clean(note(decision))}
    return content, environ | said


def _kind_of(decision: Decision) -> dict[str, str]:
    """Return the verdict's name and words: its fields alone do not name it."""
    verdict = decision.verdict
    fields = {"verdict": type(verdict).__name__.lower()}
    if isinstance(verdict, Block):
        fields |= {"prompt": verdict.prompt, "reason": verdict.because}
    elif isinstance(verdict, Halt):
        fields["reason"] = verdict.reason
    return fields


def _ignore(_returned: object) -> tuple[Allow, str]:
    return Allow(), ""


def _ended(ended: Exit) -> HookAnswer:
    """Read how an observer's command ended: only a failure is worth a warning."""
    if ended.code == 0:
        return HookAnswer(answer=Allow())
    return HookAnswer(answer=Problem("crashed", ended.problem or exit_words(ended)))
