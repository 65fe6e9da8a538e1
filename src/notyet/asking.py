"""How the gates of one stop are asked: stage by stage, each in the words of its dialect."""

from __future__ import annotations

from notyet import system
from notyet.checks.drive import Call, Stage
from notyet.core.command import Command
from notyet.core.gate import place_of
from notyet.core.json_text import dumps
from notyet.core.record import replace
from notyet.core.verdict import Allow
from notyet.dialects import command_face

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.checks.drive import Ends, Line, Progress
    from notyet.checks.elsewhere import Transcripts
    from notyet.checks.function import Question, Writer
    from notyet.checks.question import CommandQuestion
    from notyet.checks.spawn import Job
    from notyet.core.command import Exit
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Decision, Report
    from notyet.deadline import Deadline
    from notyet.dialects.reading import Reading

    Keep = Callable[[Report], str]  # keeps a report's output, and returns where


_NOT_RUNNABLE = (126, 127)


class Asking:
    """One stop, as its gates get to see it."""

    def __init__(
        self,
        event: StopEvent,
        questions: Mapping[str, Question],
        deadline: Deadline,
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
        *,
        while_waiting: Callable[[], None] | None = None,
    ) -> None:
        self.event = event  # once it is planned: as the gates see it
        self._progress = progress
        self._answers = answers  # of gates that are not asked, because somebody answers
        self._while_waiting = while_waiting
        self._questions = questions
        self.deadline = deadline
        self._calls: dict[Writer, Callable[[], tuple[Any, ...]]] = {}
        # Each dialect's form of the event is written once.
        self._payloads: dict[tuple[str, str], tuple[bytes, dict[str, str]]] = {}
        self._transcripts: Transcripts | None = None

    def use_wait(self) -> None:
        """Do what is to be done while somebody is at work, if that was not done yet."""
        if self._while_waiting is not None:
            do, self._while_waiting = self._while_waiting, None
            do()

    def decide(self, planned: Plan, keep: Keep) -> Line[Decision]:
        """Ask stage after stage, until one holds the agent, and settle what was said."""
        self.event = planned.event
        reports: list[Report] = []
        tree = ""
        is_held = False
        for stage, in_order in self._steps(planned.stages):
            # Some run in any case, whatever another one said (A2, D3).
            asked = [gate for gate in stage if gate.always] if is_held else stage
            while asked:
                ends = _until_held(asked, is_held=is_held) if in_order else None
                answers: list[Report] = yield from self._ask(asked, ends)
                reports += answers
                left = asked[len(answers) :]
                if not is_held and _is_one_holding(asked, answers):
                    is_held = True
                    tree = yield from self._tree(planned, asked, answers)
                    left = [gate for gate in left if gate.always]
                asked = left
        from notyet.core import settle  # which a hook loads while it waits

        decision = settle.settle(planned, reports, tree)
        if decision.outcome == "blocked":
            from notyet.holding import with_logs

            logged = yield from with_logs(planned, reports, tree, keep)
            decision = settle.settle(planned, logged, tree) if logged else decision
        return decision

    def _tree(self, planned: Plan, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:
        """Return what the files look like that this is about; empty if unknown, or nobody asks."""
        from notyet.holding import tree_of  # most stops hold nobody

        return (yield from tree_of(self, planned, gates, reports))

    def _steps(self, stages: Sequence[Sequence[Gate]]) -> list[tuple[Sequence[Gate], bool]]:
        """Return who is asked in one go: a stage, or functions that come one after another.

        Those are handed over to one thread; but somebody who listens wants to hear of each.
        """
        if len(stages) == 1 or self._progress is not None or self._answers:
            return [(stage, False) for stage in stages]
        steps: list[tuple[Sequence[Gate], bool]] = []
        row: list[Gate] = []
        is_async: bool | None = None
        for stage in stages:
            question = self._questions.get(stage[0].name) if len(stage) == 1 else None
            if question is None:
                steps.append((stage, False))
                is_async = None
                continue
            if question.is_async is not is_async:  # another kind needs another way
                row, is_async = [], question.is_async
                steps.append((row, True))
            row += stage
        return steps

    def _ask(self, gates: Sequence[Gate], ends: Ends | None) -> Line[list[Report]]:
        """Ask gates in one go, but for those whose answer is known."""
        asked = gates
        if self._answers:
            asked = [gate for gate in gates if gate.name not in self._answers]
        if self._transcripts is None and self._is_elsewhere(asked):
            from notyet.checks.elsewhere import read_transcripts

            self._transcripts = yield Call(read_transcripts, (self.event,))
        answers: list[Report] = []
        if asked:
            answers = yield self._stage(asked, ends)
            self._while_waiting = None  # it is called once
        if not self._answers:
            return answers
        said = {**self._answers, **{report.gate: report for report in answers}}
        return [said[gate.name] for gate in gates]

    def _is_elsewhere(self, gates: Sequence[Gate]) -> bool:
        """Tell whether one of these gates runs on another machine; a function never does."""
        for gate in gates:
            if gate.name not in self._questions and self.place(gate) is not None:
                return True
        return False

    def place(self, gate: Gate) -> Remote | None:
        """Return where a gate's command runs; None: here, as functions always do (M1)."""
        return place_of(gate, self.event.workspace)

    def _stage(self, gates: Sequence[Gate], ends: Ends | None) -> Stage:
        """Return what asks these gates."""
        functions = {}
        commands = {}
        for place, gate in enumerate(gates):
            question = self._questions.get(gate.name)
            if question is None:
                commands[place] = self._command(gate)
            else:
                functions[place] = (question, self._arguments(question))
        meanwhile = self._while_waiting if commands else None
        return Stage(
            functions,
            commands,
            self.deadline.ends,
            self._progress,
            ends=ends,
            while_waiting=meanwhile,
        )

    def _arguments(self, question: Question) -> tuple[Any, ...]:
        write = question.write
        assert write is not None  # a gate's
        call = self._calls.get(write)
        if call is None:
            call = self._calls[write] = write(self.event)
        return call()

    def _command(self, gate: Gate) -> CommandQuestion:
        from notyet.checks.question import CommandQuestion

        check = gate.check
        assert isinstance(check, Command)
        face = command_face(check.speaks)
        remote = self.place(gate)
        warning = ""
        if remote is None:
            job = self._job(gate, check)
        else:
            job, warning = self._job_there(gate, check, remote)
        if "refused" in check.options:  # why it must not even be tried
            from notyet.checks.linked import LinkedJob

            if not isinstance(job, LinkedJob):
                job = LinkedJob(**job.__dict__)
            job = replace(job, refused=check.options["refused"])
        return CommandQuestion(
            name=gate.name,
            job=job,
            read=lambda exit: _silent(check, exit, remote) or face.read_reply(gate, exit),  # noqa: A006  # its name in our words
            observed=gate.observe,
            warning=warning,
        )

    def _job(self, gate: Gate, check: Command) -> Job:
        from notyet.checks.question import job_for

        folder = folder_of(gate)
        written = (check.speaks, folder)
        if written not in self._payloads:
            payload, environ = command_face(check.speaks).write_event(self.event, folder)
            self._payloads[written] = dumps(payload).encode(), environ
        stdin, environ = self._payloads[written]
        return job_for(
            check,
            folder=folder or self.event.cwd,
            cwd=self.event.cwd,
            stdin=stdin,
            environ=environ,
            timeout=gate.timeout,
        )

    def _job_there(self, gate: Gate, check: Command, remote: Remote) -> tuple[Job, str]:
        """Return what asks a gate elsewhere, and what is to be said about that."""
        from notyet.checks.elsewhere import Transcripts, job_there

        transcripts = self._transcripts or Transcripts()
        job = job_there(
            check,
            remote,
            self.event,
            command_face(check.speaks).write_event,
            transcripts=transcripts,
            timeout=gate.timeout,
        )
        return job, transcripts.warning


def _until_held(gates: Sequence[Gate], *, is_held: bool) -> Ends:
    """Return what tells, by place and report, that gates which come later are not asked."""
    return lambda place, report: not is_held and _is_one_holding(gates[place:], (report,))


def _is_one_holding(gates: Sequence[Gate], reports: Sequence[Report]) -> bool:
    """Tell whether one of these reports ends the questioning; most have nothing against it."""
    for gate, report in zip(gates, reports, strict=False):
        if not isinstance(report.answer, Allow):
            from notyet.core.settle import holds

            if holds(gate, report):
                return True
    return False


def _silent(check: Command, exit: Exit, remote: Remote | None) -> Reading | None:  # noqa: A002  # its name in our words
    """Return the problem of a Python gate whose process ended before it could answer (N4)."""
    if "python" not in check.options:
        return None
    if remote is not None and exit.code in _NOT_RUNNABLE:
        return None  # the shell there says why
    if exit.code is None or exit.problem or exit.timed_out or exit.stdout.strip():
        return None
    from notyet.core.verdict import Problem
    from notyet.dialects.reading import Reading

    said = f"its process ended with exit code {exit.code} and no answer"
    return Reading(answer=Problem("crashed", said))


def folder_of(gate: Gate) -> str:
    """Return the folder of the file that a gate is written in; empty for one made in code."""
    return system.path.dirname(gate.source.file) if gate.source is not None else ""
