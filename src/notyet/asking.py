"""How the gates of one stop are asked: stage by stage, each in the words of its dialect."""

from __future__ import annotations

from notyet import system
from notyet.checks.drive import Call, Stage
from notyet.checks.function import Question
from notyet.core.gate import Function, place_of
from notyet.core.json_text import dumps
from notyet.core.record import replace
from notyet.core.settle import holds, needs_tree, settle, too_long
from notyet.dialects import command_face, function_face

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.checks.drive import Line, Progress
    from notyet.checks.elsewhere import Transcripts
    from notyet.checks.question import CommandQuestion
    from notyet.checks.spawn import Job
    from notyet.core.command import Command, Exit
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.remote import Remote
    from notyet.core.verdict import Decision, Report
    from notyet.deadline import Deadline
    from notyet.dialects.reading import Reading

    Keep = Callable[[Report], str]  # keeps a report's output, and returns where


_NOT_RUNNABLE = (126, 127)
_UNREACHED = ("cannot_start", "timeout")


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
        self,
        event: StopEvent,
        questions: Mapping[str, Question],
        deadline: Deadline,
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
    ) -> None:
        self.event = event  # once it is planned: as the gates see it
        self._progress = progress
        self._answers = answers or {}  # of gates that are not asked, because somebody answers
        self._questions = questions
        self.deadline = deadline
        self._calls: dict[str, Callable[[], tuple[Any, ...]]] = {}
        # Each dialect's form of the event is written once.
        self._payloads: dict[tuple[str, str], tuple[bytes, dict[str, str]]] = {}
        self._transcripts: Transcripts | None = None

    def decide(self, planned: Plan, keep: Keep) -> Line[Decision]:
        """Ask stage after stage, until one holds the agent, and settle what was said."""
        self.event = planned.event
        reports: list[Report] = []
        tree = ""
        is_held = False
        for stage in planned.stages:
            # Some run in any case, whatever another one said (A2, D3).
            asked = tuple(gate for gate in stage if gate.always) if is_held else stage
            if not asked:
                continue
            if self._transcripts is None and any(map(self._there, asked)):
                from notyet.checks.elsewhere import read_transcripts

                self._transcripts = yield Call(read_transcripts, (self.event,))
            answers = yield from self._ask(asked)
            reports += answers
            if not is_held and any(map(holds, asked, answers)):
                is_held = True
                if needs_tree(planned, asked, answers):
                    tree = yield from self._tree(asked, answers)
        decision = settle(planned, reports, tree)
        if decision.outcome == "blocked":
            logged = yield from _with_logs(planned, reports, tree, keep)
            decision = settle(planned, logged, tree) if logged else decision
        return decision

    def _ask(self, gates: Sequence[Gate]) -> Line[list[Report]]:
        """Ask gates together, but for those whose answer is known."""
        asked = [gate for gate in gates if gate.name not in self._answers]
        said = dict(self._answers)
        if asked:
            answers: list[Report] = yield self.stage(asked)
            said |= {report.gate: report for report in answers}
        return [said[gate.name] for gate in gates]

    def _there(self, gate: Gate) -> Remote | None:
        """Return where a gate's command runs; None: here, as functions always do (M1)."""
        return place_of(gate, self.event.workspace)

    def _tree(self, gates: Sequence[Gate], reports: Sequence[Report]) -> Line[str]:
        """Return what the files look like that this is about; empty if unknown.

        Those that the holding gates look at must be known. The agent's own count too, here and in
        its workspace: who changes them is not stuck, though a gate may not have got them yet.
        """
        own = self._workspace()
        places: dict[Remote | None, None] = {}
        for gate, report in zip(gates, reports, strict=True):
            if holds(gate, report):
                # What a function looks at, nobody knows; most likely at the agent's files.
                is_function = isinstance(gate.check, Function)
                places[own if is_function else self._there(gate)] = None
                if self._there(gate) is not None and _may_be_lost(report):
                    return ""  # another try could take long, and the agent's host waits
        from notyet.workspace import look  # most stops hold nobody

        trees = []
        for place in dict.fromkeys((*places, own, None)):
            wait = self.deadline.left(look.PATIENCE)
            if place is None:
                tree = yield Call(look.fingerprint, (self.event.cwd, wait))
            else:
                from notyet.workspace.remote import fingerprint_there

                tree = yield Call(fingerprint_there, (place, wait))
            if not tree and place in places:
                return ""
            trees.append(tree)
        return " ".join(filter(None, trees))

    def _workspace(self) -> Remote | None:
        """Return where the agent's files are, if elsewhere."""
        if not self.event.workspace:
            return None
        from notyet.core.remote import remote_from

        return remote_from(self.event.workspace)

    def stage(self, gates: Sequence[Gate]) -> Stage:
        """Return what asks these gates together."""
        functions = {}
        commands = {}
        for place, gate in enumerate(gates):
            if isinstance(gate.check, Function):
                functions[place] = (self._questions[gate.name], self._call(gate.check.speaks)())
            else:
                commands[place] = self._command(gate)
        return Stage(functions, commands, self.deadline.ends, self._progress)

    def _call(self, speaks: str) -> Callable[[], tuple[Any, ...]]:
        if speaks not in self._calls:
            self._calls[speaks] = function_face(speaks).write_call(self.event)
        return self._calls[speaks]

    def _command(self, gate: Gate) -> CommandQuestion:
        from notyet.checks.question import CommandQuestion

        check = gate.check
        assert not isinstance(check, Function)
        face = command_face(check.speaks)
        remote = self._there(gate)
        warning = ""
        if remote is None:
            job = self._job(gate, check)
        else:
            job, warning = self._job_there(gate, check, remote)
        if "refused" in check.options:  # why it must not even be tried
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


def _may_be_lost(report: Report) -> bool:
    """Tell whether the machine that a gate runs on may be out of reach."""
    return report.exit == "lost" or getattr(report.answer, "kind", "") in _UNREACHED


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
