"""How the gates of one stop run: what each is given, and how its answer is read.

Observers and start hooks that are commands are prepared here too.
"""

from __future__ import annotations

from notyet.core.gate import Command, file_of, machine_of, project_of
from notyet.core.record import replace
from notyet.core.verdict import Problem
from notyet.hosts import command_dialect, function_dialect
from notyet.light import dumps
from notyet.run.drive import Call, Stage, call_progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Exit, Function, Gate
    from notyet.core.remote import Remote
    from notyet.core.verdict import Report
    from notyet.engine.stop import Deadline
    from notyet.hosts.hook_answers import HookAnswer
    from notyet.run.drive import Ends, Progress, Steps
    from notyet.run.functions import GateFunction, Writer
    from notyet.run.gate_command import GateCommand
    from notyet.run.ssh_job import Transcripts

    E = TypeVar("E", StartEvent, StopEvent)
    # Writes an event for a project in a folder: what goes to stdin, and into the environment.
    Write = Callable[[E, str], tuple[Mapping[str, Any], Mapping[str, str]]]
    Written = dict[tuple[str, str], tuple[bytes, Mapping[str, str]]]  # by dialect and folder

_NOT_RUNNABLE = (126, 127)  # how a shell says that a program is missing
_NO_LIMIT = 86_400.0  # seconds
_WITH_FILES = "run"  # the kind of a command with `fix` or `{files}`, which prints for itself


class GateRuns:
    """Runs the gates of one stop; each dialect's form of the event is made once."""

    def __init__(
        self,
        event: StopEvent,
        deadline: Deadline,
        functions: Mapping[str, GateFunction],
        progress: Progress | None = None,
        answers: Mapping[str, Report] | None = None,
        *,
        before_commands: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
        jobs: int | None = None,
    ) -> None:
        self.event = event  # once it is planned: as the gates see it
        self.share: float | None = None  # seconds that each command should have (E9)
        self.gates: Sequence[Gate] = ()  # all of this stop
        self.reports: Sequence[Report] = ()  # of earlier stages
        self._deadline = deadline
        self._functions = functions  # of gates that are functions, by name
        self._progress = progress
        self._answers = answers  # of gates that do not run, because the caller answers
        self._before_commands = before_commands
        self._on_wait = on_wait
        self._jobs = jobs
        self._calls: dict[Writer, Callable[[], tuple[Any, ...]]] = {}
        self._written: Written = {}
        self._transcripts: Transcripts | None = None

    def use_wait(self) -> None:
        """Do what the caller wants done while something else works, unless it was done."""
        if self._on_wait is not None:
            do, self._on_wait = self._on_wait, None
            do()

    def before_first(self) -> None:
        """Do what the caller wants done before the first command, unless it was done."""
        if self._before_commands is not None:
            do, self._before_commands = self._before_commands, None
            do()

    def steps(self, stages: Sequence[Sequence[Gate]]) -> list[tuple[Sequence[Gate], bool]]:
        """Return what runs in one go: a stage, or functions that follow one another.

        Those run in one thread, unless a caller wants to hear of each.
        """
        planned = getattr(self._progress, "planned", None)
        if planned is not None:
            names = [gate.name for stage in stages for gate in stage]
            known = self._answers or {}
            call_progress(planned, [name for name in names if name not in known])
        if len(stages) == 1 or self._progress is not None or self._answers:
            return [(stage, False) for stage in stages]
        steps: list[tuple[Sequence[Gate], bool]] = []
        row: list[Gate] = []
        is_async: bool | None = None
        for stage in stages:
            question = self._functions.get(stage[0].name) if len(stage) == 1 else None
            if question is None:
                steps.append((stage, False))
                is_async = None
                continue
            if question.is_async is not is_async:  # plain and async functions run differently
                row, is_async = [], question.is_async
                steps.append((row, True))
            row += stage
        return steps

    def run(self, gates: Sequence[Gate], ends: Ends | None = None) -> Steps[list[Report]]:
        """Run gates together, except those whose answer is known."""
        running = gates
        if self._answers:
            running = [gate for gate in gates if gate.name not in self._answers]
        if self._transcripts is None:
            commands = [gate for gate in running if gate.name not in self._functions]
            machines = [machine_of(gate, self.event.workspace) for gate in commands]
            self._transcripts = yield from transcripts_for(self.event, machines)
        else:
            self._transcripts = self._transcripts.in_new_folder()
        reports: list[Report] = []
        if running:
            is_compared = any(map(compares, running))
            stage = self._stage(running, ends)
            if is_compared:
                from notyet.engine.new_failures import compared

                reports = yield from compared(self, stage, running, self._deadline)
            else:
                reports = yield stage
            self._on_wait = None  # it is called once
        if not self._answers:
            return reports
        known = {**self._answers, **{report.gate: report for report in reports}}
        return [known[gate.name] for gate in gates]

    def _stage(self, gates: Sequence[Gate], ends: Ends | None) -> Stage:
        functions = {}
        commands = {}
        for index, gate in enumerate(gates):
            question = self._functions.get(gate.name)
            if question is None:
                commands[index] = self._command(gate)
            else:
                functions[index] = (question, self._arguments(question))
        if commands:
            self.before_first()
        return Stage(
            functions,
            commands,
            self._deadline.ends,
            self._progress,
            ends=ends,
            while_waiting=self._on_wait if commands else None,
            jobs=self._jobs,
        )

    def _arguments(self, question: GateFunction) -> tuple[Any, ...]:
        write = question.write
        assert write is not None  # a gate's
        call = self._calls.get(write)
        if call is None:
            call = self._calls[write] = write(self.event)
        return call()

    def _command(self, gate: Gate) -> GateCommand:
        check = gate.check
        assert isinstance(check, Command)
        dialect = command_dialect(check.speaks)
        if "kind" in check.options:
            return self.question(gate, gate.timeout)
        remote = machine_of(gate, self.event.workspace)
        question = gate_command(
            check,
            self.event,
            dialect.write_event,
            lambda ended: _no_answer(check, ended, remote) or dialect.read_reply(gate, ended),
            name=gate.name,
            remote=remote,
            folder=project_of(gate),
            timeout=gate.timeout,
            observed=gate.observe,
            transcripts=self._transcripts,
            written=self._written,
        )
        if self.share is not None:
            question = replace(question, share=self.share)
        if "refused" not in check.options:  # why it must not run
            return question
        job = replace(question.job, refused=check.options["refused"])
        return replace(question, job=job)

    def question(
        self, gate: Gate, timeout: float | None, now: Mapping[str, Any] | None = None
    ) -> GateCommand:
        """Return the command of a gate of notyet's own, which gets its question on stdin.

        `now` says how the gate's command just failed, if that is to be compared.
        """
        check = gate.check
        assert isinstance(check, Command)
        dialect = command_dialect(check.speaks)

        def write(event: StopEvent, folder: str) -> tuple[Mapping[str, Any], Mapping[str, str]]:
            payload, environ = dialect.write_event(event, folder)
            return {
                "event": payload,
                "gate": gate.name,
                "options": dict(check.options),
                "folder": folder,
                "reports": [_summary(report) for report in self.reports],
                "commands": [runs_of(one) for one in self.gates if isinstance(one.check, Command)],
                "command": {
                    "script": check.script,
                    "argv": list(check.argv),
                    "shell": check.shell,
                    "dir": check.dir,
                },
                "now": dict(now or {}),
                "seconds": timeout if timeout is not None else _NO_LIMIT,
            }, environ

        question = gate_command(
            check,
            self.event,
            write,
            lambda ended: _no_answer(check, ended, None) or dialect.read_reply(gate, ended),
            name=gate.name,
            remote=None,
            folder=project_of(gate),
            timeout=timeout,
            observed=gate.observe,
        )
        question = replace(question, prints_answer=check.options["kind"] != _WITH_FILES)
        return question if self.share is None else replace(question, share=self.share)


def compares(gate: Gate) -> bool:
    """Return True if only new failures of a gate's command count."""
    return isinstance(gate.check, Command) and bool(gate.check.options.get("new_failures_only"))


def _summary(report: Report) -> dict[str, Any]:
    """Return what a judge reads about a gate."""
    return {
        "gate": report.gate,
        "status": report.status,
        "exit": report.exit,
        "seconds": report.seconds,
        "observed": report.observed,
    }


def runs_of(gate: Gate) -> dict[str, Any]:
    """Return what a gate runs, so that a guard knows which files are its scripts."""
    check = gate.check
    assert isinstance(check, Command)
    return {
        "gate": gate.name,
        "line": check.line,
        "dir": check.dir,
        "python": check.options.get("python", ""),
        "fix": check.options.get("fix", ""),
        "uses": check.options.get("uses", ""),
        "file": file_of(gate),
    }


def gate_command(
    check: Command,
    event: E,
    write: Write[E],
    read: Callable[[Exit], HookAnswer],
    *,
    name: str,
    remote: Remote | None,
    folder: str,
    timeout: float | None,
    observed: bool = False,
    transcripts: Transcripts | None = None,
    written: Written | None = None,
) -> GateCommand:
    """Return what runs a command, here or on another machine, and reads how it ended.

    `folder` is its project's, or that of the file which names it; `written` keeps the event's
    forms for others.
    """
    from notyet.run.gate_command import GateCommand, job_for

    warning = ""
    if remote is None:
        key = (check.speaks, folder)
        if written is None or key not in written:
            payload, environ = write(event, folder)
            written = {} if written is None else written
            written[key] = dumps(payload).encode(), environ
        stdin, environ = written[key]
        job = job_for(
            check,
            folder=folder or event.cwd,
            cwd=event.cwd,
            stdin=stdin,
            environ=environ,
            timeout=timeout,
        )
    else:
        from notyet.run.ssh_job import job_there

        assert transcripts is not None  # read before
        warning = transcripts.warning
        job = job_there(check, remote, event, write, transcripts=transcripts, timeout=timeout)
    return GateCommand(name=name, job=job, read=read, observed=observed, warning=warning)


def transcripts_for(
    event: StopEvent | StartEvent, machines: Sequence[Remote | None]
) -> Steps[Transcripts | None]:
    """Read the transcripts that are sent along, if one of these is another machine."""
    if not any(machines):
        return None
    from notyet.run.ssh_job import read_transcripts

    read: Transcripts = yield Call(read_transcripts, (event,))
    return read


def gate_function(gate: Gate, check: Function, engine: int) -> GateFunction:
    """Return how a gate's function is called by this engine."""
    from notyet.run.functions import GateFunction

    dialect = function_dialect(check.speaks)
    return GateFunction(
        gate.name,
        check.call,
        dialect.read_return,
        write=dialect.write_call,
        timeout=gate.timeout,
        observed=gate.observe,
        engine=engine,
    )


def _no_answer(check: Command, ended: Exit, remote: Remote | None) -> HookAnswer | None:
    """Return the problem of a Python gate whose process ended before it could answer (N4)."""
    if "python" not in check.options and check.options.get("kind", _WITH_FILES) == _WITH_FILES:
        return None
    if remote is not None and ended.code in _NOT_RUNNABLE:
        return None  # the shell there says why
    if ended.code is None or ended.problem or ended.timed_out or ended.stdout.strip():
        return None
    from notyet.hosts.hook_answers import HookAnswer

    text = f"its process ended with exit code {ended.code} and no answer"
    return HookAnswer(answer=Problem("crashed", text))
