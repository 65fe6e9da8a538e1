"""Start hooks: commands and functions that may add words for an agent that starts (F13)."""

from __future__ import annotations

from notyet.core.gate import Command, Function, applies_to_start, folder_of, where
from notyet.core.record import Record, variant
from notyet.core.text import bounded, joined
from notyet.core.verdict import Allow, Problem
from notyet.engine.gate_runs import gate_command, transcripts_for
from notyet.hosts import start_face
from notyet.hosts.plugins import DIALECT, STARTING, read_return, write_start
from notyet.run.drive import Stage
from notyet.run.functions import GateFunction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.core.event import StartEvent
    from notyet.core.gate import Exit, Starter
    from notyet.core.remote import Remote
    from notyet.core.verdict import Report
    from notyet.hosts.answers import Reading
    from notyet.run.command import GateCommand
    from notyet.run.drive import Line
    from notyet.run.ssh_job import Transcripts

_MOST_OF_ONE = 30_000  # characters
_MOST = 100_000


class Entry(Record):
    """A starter, and how it is called if it is a function; made once."""

    starter: Starter
    question: GateFunction | None


def entry_for(starter: Starter, engine: int) -> Entry:
    """Return how a starter is run by this engine."""
    check = starter.check
    if not isinstance(check, Function):
        return Entry(starter, None)
    name = f"start handler {starter.name}"
    question = GateFunction(name, check.call, read_return, timeout=starter.timeout, engine=engine)
    return Entry(starter, question)


def handler(name: str, call: Callable[..., Any], place: int) -> Starter:
    """Return the starter for a handler that was registered under one of the names above."""
    from notyet.core.gate import Starter, name_of

    return Starter(
        name=f"{name}[{place}] {name_of(call)}",
        check=Function(call, DIALECT),
        scope=STARTING[name],
    )


def begin(event: StartEvent, entries: Sequence[Entry], warn: Callable[[str], None]) -> Line[str]:
    """Run commands together and functions one after another; join what they add, in order.

    Nothing that goes wrong keeps the agent from starting.
    """
    asked = [entry for entry in entries if applies_to_start(entry.starter, event)]
    reports: dict[int, Report] = {}
    hooks = [place for place, entry in enumerate(asked) if entry.question is None]
    if hooks:
        starters = [asked[place].starter for place in hooks]
        places = [where(s.check) if isinstance(s.check, Command) else None for s in starters]
        transcripts = yield from transcripts_for(event, places)
        questions = [
            _command(starter, event, place, transcripts)
            for starter, place in zip(starters, places, strict=True)
        ]
        answers: list[Report] = yield Stage({}, dict(enumerate(questions)))
        reports |= zip(hooks, answers, strict=True)
    for place, entry in enumerate(asked):
        if entry.question is not None:
            (reports[place],) = yield Stage({0: (entry.question, _arguments(entry, event))}, {})
    return _joined([reports[place] for place in sorted(reports)], warn)


def _joined(reports: Sequence[Report], warn: Callable[[str], None]) -> str:
    said = []
    for report in reports:
        if isinstance(report.answer, Problem):
            warn(f"{report.gate} {report.answer} (it adds nothing)")
        elif isinstance(report.answer, Allow) and report.answer.note:
            said.append(bounded(report.answer.note, _MOST_OF_ONE))
        if report.warning:
            warn(f"{report.gate}: {report.warning}")
        if report.tell_user:  # it is for the user, not for the agent (F14)
            warn(f"{report.gate} says: {report.tell_user}")
    return bounded(joined(said), _MOST)


def _arguments(entry: Entry, event: StartEvent) -> tuple[Any, ...]:
    speaks = entry.starter.check.speaks
    return write_start(event) if speaks == DIALECT else (event.__copy__(),)


def _command(
    starter: Starter, event: StartEvent, remote: Remote | None, transcripts: Transcripts | None
) -> GateCommand:
    check = starter.check
    assert isinstance(check, Command)
    face = start_face(check.speaks)

    def read(ended: Exit) -> Reading:
        reading = face.read_context(ended, event.scope)
        if isinstance(reading.answer, Problem):
            return reading
        return variant(reading, {"answer": Allow(note=reading.context)})

    return gate_command(
        check,
        event,
        lambda event, _folder: face.write_start(event),
        read,
        name=f"start hook {starter.name}",
        remote=remote,
        folder=folder_of(starter),
        timeout=starter.timeout,
        transcripts=transcripts,
    )
