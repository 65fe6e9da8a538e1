"""Start hooks: commands and functions that may add words for an agent that starts (F13)."""

from __future__ import annotations

from notyet.core.gate import (
    Command,
    Function,
    Starter,
    applies_to_start,
    name_of,
    project_of,
    where,
)
from notyet.core.record import variant
from notyet.core.text import bounded, joined
from notyet.core.verdict import Allow, Problem
from notyet.engine.gate_runs import gate_command, transcripts_for
from notyet.hosts import start_dialect
from notyet.hosts.plugins import DIALECT, STARTING, read_return, write_start
from notyet.run.drive import Stage
from notyet.run.functions import GateFunction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from notyet.core.event import StartEvent
    from notyet.core.gate import Exit
    from notyet.core.remote import Remote
    from notyet.core.verdict import Report
    from notyet.hosts.hook_answers import HookAnswer
    from notyet.run.drive import Steps
    from notyet.run.gate_command import GateCommand
    from notyet.run.ssh_job import Transcripts

_MOST_OF_ONE = 30_000  # characters
_MOST = 100_000


class StartHook:
    """A starter, and how it is called if it is a function; made once."""

    def __init__(self, starter: Starter, engine: int) -> None:
        self.starter = starter
        self.function: GateFunction | None = None
        if isinstance(starter.check, Function):
            name, call = f"start handler {starter.name}", starter.check.call
            self.function = GateFunction(
                name, call, read_return, timeout=starter.timeout, engine=engine
            )


def start_handler(name: str, call: Callable[..., Any], index: int) -> Starter:
    """Return the starter for a handler that was registered under one of the names above."""
    return Starter(
        name=f"{name}[{index}] {name_of(call)}",
        check=Function(call, DIALECT),
        scope=STARTING[name],
    )


def run_start_hooks(
    event: StartEvent, hooks: Sequence[StartHook], warn: Callable[[str], None]
) -> Steps[str]:
    """Run commands together and functions one after another; join what they add, in order.

    Nothing that goes wrong keeps the agent from starting.
    """
    running = [hook for hook in hooks if applies_to_start(hook.starter, event)]
    reports: dict[int, Report] = {}
    commands = [index for index, hook in enumerate(running) if hook.function is None]
    if commands:
        starters = [running[index].starter for index in commands]
        machines = [where(s.check) if isinstance(s.check, Command) else None for s in starters]
        transcripts = yield from transcripts_for(event, machines)
        questions = [
            _command(starter, event, machine, transcripts)
            for starter, machine in zip(starters, machines, strict=True)
        ]
        answers: list[Report] = yield Stage({}, dict(enumerate(questions)))
        reports |= zip(commands, answers, strict=True)
    for index, hook in enumerate(running):
        if hook.function is not None:
            (reports[index],) = yield Stage({0: (hook.function, _arguments(hook, event))}, {})
    return _joined([reports[index] for index in sorted(reports)], warn)


def _joined(reports: Sequence[Report], warn: Callable[[str], None]) -> str:
    texts = []
    for report in reports:
        if isinstance(report.answer, Problem):
            warn(f"{report.gate} {report.answer} (it adds nothing)")
        elif isinstance(report.answer, Allow) and report.answer.note:
            texts.append(bounded(report.answer.note, _MOST_OF_ONE))
        if report.warning:
            warn(f"{report.gate}: {report.warning}")
        if report.tell_user:  # it is for the user, not for the agent (F14)
            warn(f"{report.gate} says: {report.tell_user}")
    return bounded(joined(texts), _MOST)


def _arguments(hook: StartHook, event: StartEvent) -> tuple[Any, ...]:
    speaks = hook.starter.check.speaks
    return write_start(event) if speaks == DIALECT else (event.__copy__(),)


def _command(
    starter: Starter, event: StartEvent, remote: Remote | None, transcripts: Transcripts | None
) -> GateCommand:
    check = starter.check
    assert isinstance(check, Command)
    dialect = start_dialect(check.speaks)

    def read(ended: Exit) -> HookAnswer:
        reading = dialect.read_context(ended, event.scope)
        if isinstance(reading.answer, Problem):
            return reading
        return variant(reading, {"answer": Allow(note=reading.context)})

    return gate_command(
        check,
        event,
        dialect.write_start,
        read,
        name=f"start hook {starter.name}",
        remote=remote,
        folder=project_of(starter),
        timeout=starter.timeout,
        transcripts=transcripts,
    )
