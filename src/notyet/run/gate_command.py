"""Run gates that are commands: prepare a command's input, and report how it ended."""

from __future__ import annotations

from notyet import light
from notyet.core.record import Record, variant
from notyet.core.text import clean
from notyet.core.verdict import Problem, Report
from notyet.errors import attempt
from notyet.run.command_runner import run_processes
from notyet.run.process import NEVER
from notyet.run.spawn import Job, shell_argv

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from notyet.core.gate import Command, Exit
    from notyet.core.remote import Remote
    from notyet.hosts.hook_answers import HookAnswer
    from notyet.run.process import Process

    Reader = Callable[[Exit], HookAnswer]

_LONGEST_VALUE = 100_000  # bytes of one variable; the system refuses more than 128 KiB
INSIDE = "NOTYET_INSIDE"  # set for what a gate starts: agents among it are not gated (E11)


class GateCommand(Record, kw_only=True):
    """A gate's command at one stop, and the function that parses its result."""

    name: str
    job: Job
    read: Reader
    observed: bool = False
    warning: str = ""  # about its input
    prints_answer: bool = False  # its stdout is for us alone
    share: float = NEVER  # seconds after which its timeout is its own, not the host's (E9)

    def broken(self, problem: Problem) -> Report:
        """Return the report of a command that could not run."""
        return variant(self._blank(), {"answer": self._with_machine(problem)})

    def report(self, exit: Exit, *, cut: bool) -> Report:  # noqa: A002
        """Return the report of a command; `cut` if its timeout was the host's deadline."""
        blank = self._blank()
        known = {
            "seconds": exit.seconds,
            "output": _output(exit, is_answer=self.prints_answer),
            "exit": exit_words(exit),
        }
        if exit.timed_out and cut and exit.seconds < self.share:
            ended = f"the agent's host waits no longer; it was ended after {exit.seconds:.1f} s"
            return variant(
                blank, known | {"answer": self._with_machine(Problem("deadline", ended))}
            )
        reading, error = attempt(self.read, exit)
        if error is not None:  # no output of a command may crash the hook
            from notyet.run.functions import crashed

            problem = Problem("internal", crashed(error).detail)
            return variant(blank, known | {"answer": self._with_machine(problem)})
        answer, warning = reading.answer, reading.warning
        if not exit.problem:  # a problem names the machine itself
            answer = self._with_machine(answer) if isinstance(answer, Problem) else answer
            warning = f"{self._prefix}{warning}" if warning else ""
        told = {
            "answer": answer,
            "warning": "; ".join(said for said in (self.warning, warning) if said),
            "tell_user": " | ".join(said for said in (reading.tell_user, exit.advice) if said),
            "hidden": reading.hidden,
            "tokens": reading.tokens,
        }
        return variant(blank, known | told)

    @property
    def _remote(self) -> Remote | None:
        """The machine it runs on; None for this one."""
        remote: Remote | None = getattr(self.job, "remote", None)
        return remote

    @property
    def _prefix(self) -> str:
        return f"on {self._remote.destination}: " if self._remote else ""

    def _with_machine(self, problem: Problem) -> Problem:
        """Add its machine to a problem, so that people look on the right one (M3)."""
        if self._remote is None:
            return problem
        return Problem(problem.kind, f"{problem.detail} (on {self._remote.destination})")

    def _blank(self) -> Report:
        workspace = self._remote.url if self._remote else ""
        return Report(gate=self.name, observed=self.observed, workspace=workspace)


def job_for(
    command: Command,
    *,
    folder: str,
    cwd: str,
    stdin: bytes,
    environ: Mapping[str, str],
    timeout: float | None,
) -> Job:
    """Return the job of a gate's command."""
    return Job(
        argv=_argv(command, folder),
        dir=command.dir or cwd or light.getcwd(),
        environ=inherited()
        | valid_variables(environ)
        | valid_variables(dict(command.env))
        | {INSIDE: "1"},
        stdin=stdin,
        timeout=timeout,
    )


def inherited() -> dict[str, str]:
    """Return a copy of this process's environment."""
    return dict(light.variables())


def valid_variables(environ: Mapping[str, Any]) -> dict[str, str]:
    """Return variables that the system accepts: without NUL, and not too long."""
    return {name: _fit(value.replace("\0", "")) for name, value in environ.items()}


def _fit(value: str) -> str:
    if value.isascii():
        return value[:_LONGEST_VALUE]
    try:
        content = light.fsencode(value)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold
        content = value.encode("utf-8", "replace")
    return light.fsdecode(content[:_LONGEST_VALUE])


def _argv(command: Command, folder: str) -> tuple[str, ...]:
    if "kind" in command.options:
        from notyet.run.python_gate import argv_of_kind

        return argv_of_kind(command.options["kind"])
    if "python" in command.options:
        from notyet.run.python_gate import argv_for

        return argv_for(command.options, folder)
    if command.script:
        return shell_argv(command.script, command.shell)
    return command.argv


def run_commands(
    commands: Sequence[GateCommand],
    deadline: float | None,
    cancel: int | None = None,
    *,
    answered: Callable[[int, Report], None] | None = None,
    meanwhile: Callable[[], None] | None = None,
    while_waiting: Callable[[], None] | None = None,
    watch: Callable[[int, bytes], None] | None = None,
    jobs: int | None = None,
) -> list[Report]:
    """Run the commands of a stage together, in this thread, and return their reports.

    `answered` is called with the index and the report of each as soon as it ends; output that it
    prints while it is being killed may be missing then. `meanwhile` is called from time to time
    while they run, `while_waiting` once, when they have started, and `watch` with the index of each
    that starts, and with what it prints. At most `jobs` run at a time; by default as many as there
    are cores.
    """
    on_end = None
    if answered is not None:

        def on_end(index: int, process: Process) -> None:
            answered(index, commands[index].report(process.exit(), cut=process.cut))

    ended = run_processes(
        [command.job for command in commands],
        deadline=deadline,
        cancel=cancel,
        on_end=on_end,
        meanwhile=meanwhile,
        while_waiting=while_waiting,
        watch=watch,
        at_once=jobs or cores(),
    )
    reports = []
    for command, process in zip(commands, ended, strict=True):
        reports.append(command.report(process.exit(), cut=process.cut))
        process.forget_output()  # a hundred gates may print a lot
    return reports


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(light, "sched_getaffinity"):
        return len(light.sched_getaffinity(0))
    return light.cpu_count() or 1  # macOS


def exit_words(exit: Exit) -> str:  # noqa: A002
    """Return in a word or two how a command ended."""
    if exit.problem:
        return "lost" if exit.lost else "not started"
    if exit.timed_out:
        return "timed out"
    if exit.cancelled:
        return "cancelled"
    return f"signal {exit.signal}" if exit.code is None else f"exit {exit.code}"


def _output(exit: Exit, *, is_answer: bool = False) -> str:  # noqa: A002
    """Return the output of a command as text without control characters (E5)."""
    streams = (exit.stderr,) if is_answer else (exit.stdout, exit.stderr)
    parts = [clean(part.decode("utf-8", "replace")).rstrip() for part in streams]
    return "\n".join(part for part in parts if part)
