"""How an agent's start is told to those who may add words for it (F13)."""

from __future__ import annotations

import os

from notyet.core.gate import Command, Function, is_asked, where
from notyet.core.record import Record, variant
from notyet.core.text import bounded, joined
from notyet.core.verdict import Allow, Problem
from notyet.hosts import start_face
from notyet.hosts.starts import STARTING, read_return, write_start
from notyet.light import dumps
from notyet.run.command import CommandQuestion, job_for
from notyet.run.drive import Call, Stage
from notyet.run.functions import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.core.event import StartEvent
    from notyet.core.gate import Exit, Starter
    from notyet.core.verdict import Report
    from notyet.hosts.answers import Reading
    from notyet.run.drive import Line
    from notyet.run.elsewhere import Transcripts

_MOST_OF_ONE = 30_000  # characters
_MOST = 100_000


class Entry(Record):
    """A starter, and how it is asked if it is a function; made once."""

    starter: Starter
    question: Question | None


def entry_for(starter: Starter, engine: int) -> Entry:
    """Return how a starter is asked by this engine."""
    check = starter.check
    if not isinstance(check, Function):
        return Entry(starter, None)
    name = f"start handler {starter.name}"
    question = Question(name, check.call, read_return, timeout=starter.timeout, engine=engine)
    return Entry(starter, question)


def handler(name: str, call: Callable[..., Any], place: int) -> Starter:
    """Return the starter for a handler that was registered under one of the names above."""
    from notyet.core.gate import Starter, name_of

    return Starter(
        name=f"{name}[{place}] {name_of(call)}",
        check=Function(call, "openclaw"),
        scope=STARTING[name],
    )


def begin(event: StartEvent, entries: Sequence[Entry], warn: Callable[[str], None]) -> Line[str]:
    """Ask commands together and functions one after another; join what they add, in order.

    Nothing that goes wrong keeps the agent from starting.
    """
    asked = [entry for entry in entries if is_asked(entry.starter, event)]
    reports: dict[int, Report] = {}
    hooks = [place for place, entry in enumerate(asked) if entry.question is None]
    if hooks:
        starters = [asked[place].starter for place in hooks]
        transcripts = yield from _transcripts(starters, event)
        questions = [_command(starter, event, transcripts) for starter in starters]
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
    return write_start(event) if speaks == "openclaw" else (event.__copy__(),)


def _transcripts(starters: Sequence[Starter], event: StartEvent) -> Line[Transcripts | None]:
    """Read what is sent along, if a command runs elsewhere; off the caller's thread."""
    if not any(isinstance(s.check, Command) and where(s.check) for s in starters):
        return None
    from notyet.run.elsewhere import read_transcripts

    read: Transcripts = yield Call(read_transcripts, (event,))
    return read


def _command(
    starter: Starter, event: StartEvent, transcripts: Transcripts | None
) -> CommandQuestion:
    check = starter.check
    assert not isinstance(check, Function)
    face = start_face(check.speaks)
    remote = where(check)
    warning = ""
    if remote is None or transcripts is None:
        payload, environ = face.write_start(event)
        folder = os.path.dirname(starter.source.file) if starter.source is not None else ""
        job = job_for(
            check,
            folder=folder or event.cwd,
            cwd=event.cwd,
            stdin=dumps(payload).encode(),
            environ=environ,
            timeout=starter.timeout,
        )
    else:
        from notyet.run.elsewhere import job_there

        warning = transcripts.warning
        job = job_there(
            check,
            remote,
            event,
            lambda event, _: face.write_start(event),
            transcripts=transcripts,
            timeout=starter.timeout,
        )

    def read(exit: Exit) -> Reading:  # noqa: A002  # its name in our words
        reading = face.read_context(exit, event.scope)
        if isinstance(reading.answer, Problem):
            return reading
        return variant(reading, {"answer": Allow(note=reading.context)})

    name = f"start hook {starter.name}"
    return CommandQuestion(name=name, job=job, read=read, warning=warning)
