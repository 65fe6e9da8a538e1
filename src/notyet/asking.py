"""How the gates of one stop are asked: each dialect's form of the event is written once."""

from __future__ import annotations

import os

from notyet.checks.drive import Stage
from notyet.checks.function import Question
from notyet.core.gate import Function
from notyet.core.json_text import dumps
from notyet.dialects import command_face, function_face

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.checks.question import CommandQuestion
    from notyet.core.command import Exit
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.dialects.reply import Reading


def question_for(gate: Gate, engine: int) -> Question | None:
    """Return how a gate's function is asked, made once; None for a command."""
    if not isinstance(gate.check, Function):
        return None
    return Question(
        gate.name,
        gate.check.call,
        function_face(gate.check.speaks).read_return,
        timeout=gate.timeout,
        observed=gate.observe,
        engine=engine,
    )


class Asking:
    """One stop, as its gates get to see it."""

    def __init__(
        self, event: StopEvent, questions: Mapping[str, Question], deadline: float | None
    ) -> None:
        self._event = event
        self._questions = questions
        self._deadline = deadline
        self._calls: dict[str, Callable[[], tuple[Any, ...]]] = {}
        self._payloads: dict[tuple[str, str], tuple[bytes, dict[str, str]]] = {}

    def stage(self, gates: Sequence[Gate]) -> Stage:
        """Return what asks these gates together."""
        functions = {}
        commands = {}
        for place, gate in enumerate(gates):
            if isinstance(gate.check, Function):
                functions[place] = (self._questions[gate.name], self._call(gate.check.speaks)())
            else:
                commands[place] = self._command(gate)
        return Stage(functions, commands, self._deadline)

    def _call(self, speaks: str) -> Callable[[], tuple[Any, ...]]:
        if speaks not in self._calls:
            self._calls[speaks] = function_face(speaks).write_call(self._event)
        return self._calls[speaks]

    def _command(self, gate: Gate) -> CommandQuestion:
        from notyet.checks.question import CommandQuestion, job_for

        check = gate.check
        assert not isinstance(check, Function)
        folder = folder_of(gate)
        face = command_face(check.speaks)
        written = (check.speaks, folder)
        if written not in self._payloads:
            payload, environ = face.write_event(self._event, folder)
            self._payloads[written] = dumps(payload).encode(), environ
        stdin, environ = self._payloads[written]
        job = job_for(
            check,
            folder=folder or self._event.cwd,
            cwd=self._event.cwd,
            stdin=stdin,
            environ=environ,
            timeout=gate.timeout,
        )
        return CommandQuestion(
            name=gate.name,
            job=job,
            read=lambda exit: _silent(gate, exit) or face.read_reply(gate, exit),  # noqa: A006  # its name in our words
            observed=gate.observe,
        )


def _silent(gate: Gate, exit: Exit) -> Reading | None:  # noqa: A002  # its name in our words
    """Return the problem of a Python gate whose process ended before it could answer (N4)."""
    if "python" not in gate.check.options:  # type: ignore[union-attr]  # a Command
        return None
    if exit.code is None or exit.problem or exit.timed_out or exit.stdout.strip():
        return None
    from notyet.core.verdict import Problem
    from notyet.dialects.reply import Reading

    said = f"its process ended with exit code {exit.code} and no answer"
    return Reading(answer=Problem("crashed", said))


def folder_of(gate: Gate) -> str:
    """Return the folder of the file that a gate is written in; empty for one made in code."""
    return os.path.dirname(gate.source.file) if gate.source is not None else ""
