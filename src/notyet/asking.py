"""How the gates of one stop are asked: stage by stage, each in the words of its dialect."""

from __future__ import annotations

import os

from notyet import workspace
from notyet.checks.drive import Call, Stage
from notyet.checks.function import Question
from notyet.core.gate import Function
from notyet.core.json_text import dumps
from notyet.core.record import replace
from notyet.core.settle import holds, needs_tree, settle, too_long
from notyet.dialects import command_face, function_face

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.checks.drive import Line
    from notyet.checks.question import CommandQuestion
    from notyet.core.command import Exit
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Decision, Report
    from notyet.deadline import Deadline
    from notyet.dialects.reply import Reading

    Keep = Callable[[Report], str]  # keeps a report's output, and returns where


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
        self, event: StopEvent, questions: Mapping[str, Question], deadline: Deadline
    ) -> None:
        self._event = event
        self._questions = questions
        self._deadline = deadline
        self._calls: dict[str, Callable[[], tuple[Any, ...]]] = {}
        # Each dialect's form of the event is written once.
        self._payloads: dict[tuple[str, str], tuple[bytes, dict[str, str]]] = {}

    def decide(self, planned: Plan, keep: Keep) -> Line[Decision]:
        """Ask stage after stage, until one holds the agent, and settle what was said."""
        reports: list[Report] = []
        tree = ""
        is_held = False
        for stage in planned.stages:
            # Some run in any case, whatever another one said (A2, D3).
            asked = tuple(gate for gate in stage if gate.always) if is_held else stage
            if not asked:
                continue
            answers: list[Report] = yield self.stage(asked)
            reports += answers
            if not is_held and any(map(holds, asked, answers)):
                is_held = True
                if needs_tree(planned, asked, answers):
                    wait = self._deadline.left(workspace.PATIENCE)
                    tree = yield Call(workspace.fingerprint, (self._event.cwd, wait))
        decision = settle(planned, reports, tree)
        if decision.outcome == "blocked":
            logged = yield from _with_logs(planned, reports, tree, keep)
            decision = settle(planned, logged, tree) if logged else decision
        return decision

    def stage(self, gates: Sequence[Gate]) -> Stage:
        """Return what asks these gates together."""
        functions = {}
        commands = {}
        for place, gate in enumerate(gates):
            if isinstance(gate.check, Function):
                functions[place] = (self._questions[gate.name], self._call(gate.check.speaks)())
            else:
                commands[place] = self._command(gate)
        return Stage(functions, commands, self._deadline.ends)

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


def _with_logs(
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
