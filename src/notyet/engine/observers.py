"""Observers: told about an ending, one after another, and unable to change it (K10)."""

from __future__ import annotations

from notyet.core.gate import Command, check_timeout, name_of, where
from notyet.core.record import Record, variant
from notyet.core.verdict import OUTCOMES, Allow, Block, Halt, Problem
from notyet.run.drive import Call, Stage
from notyet.run.functions import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.core.event import StopEvent
    from notyet.core.gate import Exit
    from notyet.core.verdict import Decision, Report
    from notyet.hosts.answers import Reading
    from notyet.run.command import CommandQuestion
    from notyet.run.drive import Line
    from notyet.run.elsewhere import Transcripts
    from notyet.run.spawn import Job

_SCOPES = {"stop": "agent", "subagent_stop": "subagent", "subagent_ended": "subagent"}
EVERY_DECISION = "decision"  # sent-back agents included
OBSERVED = (*_SCOPES, EVERY_DECISION)
_NO_ENDING = frozenset({"blocked", "overridden"})  # the one goes on, the other is long over


class Observer(Record):
    """A handler `(event, ctx)` for "stop", "subagent_stop", "subagent_ended" or "decision".

    One for "decision" is told of every decision, also of those that send an agent back; it gets
    `(event, decision)`, and may be a `Command`, which runs here unless it names a workspace. It is
    told too, at the next stop, that the host let an agent go although it had been sent back; then
    `decision.overridden` is the number of that stop. `outcomes` narrows down which.
    """

    on: str
    call: Callable[..., Any] | Command
    timeout: float | None = 30.0
    name: str = ""
    folder: str = ""  # of the file that it is written in
    outcomes: tuple[str, ...] = OUTCOMES

    def _validate(self) -> None:
        if self.on not in OBSERVED:
            raise ValueError(f"an observer is told of {', '.join(OBSERVED)}, not of {self.on!r}")
        is_command = isinstance(self.call, Command) and self.on == EVERY_DECISION
        if not is_command and not callable(self.call):
            raise TypeError(f"an observer is a function, not {type(self.call).__name__}")
        given: Any = self.outcomes  # one text stands for a tuple of one
        self.__dict__["outcomes"] = (given,) if isinstance(given, str) else tuple(given)
        strange = [name for name in self.outcomes if name not in OUTCOMES]
        if strange:
            raise ValueError(f"outcomes are some of {', '.join(OUTCOMES)}, not {strange[0]!r}")
        check_timeout(self.timeout)


class Watch:
    """An observer, and how it is told; made once."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.name = observer.name
        self._question: Question | None = None
        if not isinstance(observer.call, Command):
            name = self.name or f"{observer.on} observer {name_of(observer.call)}"
            self._question = Question(name, observer.call, _ignore, timeout=observer.timeout)

    def tell(self, event: StopEvent, decision: Decision, deadline: float | None) -> Line[Report]:
        """Tell the observer of an ending; return how that went."""
        if self._question is not None:
            arguments = _arguments(self.observer.on, event, decision)
            stage = Stage({0: (self._question, arguments)}, {}, deadline)
        else:
            command = yield from self._command(event, decision)
            stage = Stage({}, {0: command}, deadline)
        reports: list[Report] = yield stage
        return reports[0]

    def _command(self, event: StopEvent, decision: Decision) -> Line[CommandQuestion]:
        from notyet.run.command import CommandQuestion

        observer = self.observer
        assert isinstance(observer.call, Command)
        remote = where(observer.call)
        warning = ""
        if remote is None:
            job = self._job(observer.call, event, decision)
        else:
            from notyet.run.elsewhere import job_there, read_transcripts

            transcripts: Transcripts = yield Call(read_transcripts, (event,))
            warning = transcripts.warning
            job = job_there(
                observer.call,
                remote,
                event,
                lambda event, folder: _told(event, folder, decision),
                transcripts=transcripts,
                timeout=observer.timeout,
            )
        name = f"observer {self.name}"
        return CommandQuestion(name=name, job=job, read=_ended, warning=warning)

    def _job(self, command: Command, event: StopEvent, decision: Decision) -> Job:
        from notyet.light import dumps
        from notyet.run.command import job_for

        told, environ = _told(event, self.observer.folder, decision)
        return job_for(
            command,
            folder=self.observer.folder or event.cwd,
            cwd=event.cwd,
            stdin=dumps(told).encode(),
            environ=environ,
            timeout=self.observer.timeout,
        )


def tell(
    watches: Sequence[Watch],
    event: StopEvent,
    decision: Decision,
    deadline: float | None,
    warn: Callable[[str], None],
) -> Line[None]:
    """Tell observers of a decision, one after another; what goes wrong with one is only said."""
    if decision.overridden and decision.outcome != "overridden":
        before = found_out(decision.overridden, decision.turn - 1)
        yield from tell(watches, event, before, deadline, warn)
    told = variant(event, {"block_count": decision.count, "max_blocks": decision.limit})
    for watch in watches:
        if is_told(watch.observer, event, decision):
            report = yield from watch.tell(told, decision, deadline)
            if isinstance(report.answer, Problem):
                warn(f"{report.gate} {report.answer} (ignored)")
            if report.warning:
                warn(f"{report.gate}: {report.warning}")


def is_told(observer: Observer, event: StopEvent, decision: Decision) -> bool:
    """Tell whether an ending is one that this observer is told of."""
    if event.internal or decision.outcome not in observer.outcomes:
        return False
    if observer.on == EVERY_DECISION:
        return True
    return decision.outcome not in _NO_ENDING and _SCOPES[observer.on] == event.scope


def found_out(stop: int, turn: int) -> Decision:
    """Return what observers are told of a stop that the host overrode, once that is known (B11)."""
    from notyet.core.verdict import Decision

    why = f"the host let the agent go although stop {stop} had sent it back"
    return Decision(verdict=Allow(), outcome="overridden", turn=turn, why=why, overridden=stop)


def _arguments(on: str, event: StopEvent, decision: Decision) -> tuple[Any, ...]:
    """Return what a function is told, in a copy that is its alone."""
    from notyet.core.event import private_copy
    from notyet.hosts import neovate, openclaw

    event = private_copy(event)
    if on == EVERY_DECISION:
        return event, decision
    if on == "stop":
        return neovate.write_stop(event, decision)
    if on == "subagent_stop":
        return neovate.write_subagent_stop(event, decision)
    return openclaw.write_ended(event, decision)


def _told(
    event: StopEvent, folder: str, decision: Decision
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a command gets on its stdin, and in its environment."""
    from notyet.core.record import as_dict
    from notyet.hosts.native import write_event

    payload, environ = write_event(event, folder)
    reports = [as_dict(report) | {"status": report.status} for report in decision.reports]
    settled = as_dict(decision) | _kind_of(decision) | {"reports": reports}
    told = {"event": payload, "decision": settled}
    return told, environ | {"NOTYET_OUTCOME": decision.outcome}


def _kind_of(decision: Decision) -> dict[str, str]:
    """Say which verdict it was, in words: its fields alone do not."""
    verdict = decision.verdict
    said = {"verdict": type(verdict).__name__.lower()}
    if isinstance(verdict, Block):
        said |= {"prompt": verdict.prompt, "reason": verdict.because}
    elif isinstance(verdict, Halt):
        said["reason"] = verdict.reason
    return said


def _ignore(_returned: object) -> tuple[Allow, str]:
    return Allow(), ""


def _ended(exit: Exit) -> Reading:  # noqa: A002  # its name in our words
    """An observer says nothing; but that it failed is worth a line."""
    from notyet.hosts.answers import Reading

    if exit.code == 0:
        return Reading(answer=Allow())
    from notyet.run.command import how

    return Reading(answer=Problem("crashed", exit.problem or how(exit)))
