"""Compare a command that failed with how it failed when the session began (`new_failures_only`).

The command runs like any other. Only if it fails, a process of its own finds out which failures are
new (`notyet.gates.new_failures`); its answer replaces the command's. Whatever goes wrong there
leaves the command's own answer, which blocks.
"""

from __future__ import annotations

from time import time

from notyet.core.gate import Command
from notyet.core.record import replace, variant
from notyet.core.verdict import Allow, Block, Problem
from notyet.engine.gate_runs import compares
from notyet.run.drive import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.engine.gate_runs import GateRuns
    from notyet.engine.stop import Deadline
    from notyet.run.drive import Progress, Steps
    from notyet.run.gate_command import GateCommand

_KIND = "new_failures"
_LEAST = 60.0  # seconds for the run on the files of the session's start
_TIMES = 2  # as long as the command took just now
_FOR_GIT = 60.0  # seconds for everything but the two runs
UNSURE = "notyet cannot say which of these failures are new"


def compared(
    runs: GateRuns, stage: Stage, gates: Sequence[Gate], deadline: Deadline
) -> Steps[list[Report]]:
    """Run a stage; replace the answers of commands whose failures are compared."""
    progress = stage.progress
    later = {gate.name for gate in gates if compares(gate)}
    if progress is not None:
        stage.progress = _Later(progress, later)
    began = time()
    reports: list[Report] = yield stage
    failed = {
        at: gate
        for at, (gate, report) in enumerate(zip(gates, reports, strict=False))
        if gate.name in later and isinstance(report.answer, Block)
    }
    if failed:
        commands = {at: _question(runs, gate, reports[at], began) for at, gate in failed.items()}
        again = Stage(
            {},
            dict(enumerate(commands.values())),
            deadline.ends,
            None if progress is None else _Later(progress, later),
            jobs=1,  # both runs of a command use the machine as the command did
        )
        answers: list[Report] = yield again
        for at, answer in zip(failed, answers, strict=True):
            reports[at] = _settled(reports[at], answer)
    if progress is not None:
        for report in reports:
            if report.gate in later:
                stage.progress = progress
                stage.report_progress(report.gate, report)
    return reports


def _question(runs: GateRuns, gate: Gate, report: Report, began: float) -> GateCommand:
    check = gate.check
    assert isinstance(check, Command)
    given: float | None = check.options.get("baseline_timeout")
    limit = given if given is not None else max(_LEAST, _TIMES * report.seconds)
    now = {
        "output": report.output,
        "exit": report.exit,
        "began": began,  # not later than this: other gates may have run after it
        "seconds": report.seconds,
        "limit": limit,
    }
    compare = replace(gate, check=replace(check, options={**check.options, "kind": _KIND}))
    return runs.question(compare, limit + 2 * report.seconds + _FOR_GIT, now)


def _settled(failed: Report, answer: Report) -> Report:
    """Return the report on a command that failed, with what the comparison says."""
    seconds = failed.seconds + answer.seconds
    said = answer.answer
    if isinstance(said, Allow):
        changed = {"answer": said, "is_relative": True}
    elif isinstance(said, Block):
        changed = {"answer": said}
    else:
        assert isinstance(failed.answer, Block)
        why = f"{UNSURE}: {said.detail}" if isinstance(said, Problem) else UNSURE
        changed = {"answer": Block(f"{failed.answer.prompt}\n{why}.", failed.answer.reason)}
    told = answer.tell_user or failed.tell_user
    return variant(failed, changed | {"seconds": seconds, "tell_user": told})


class _Later:
    """Progress that does not say how gates ended whose failures are compared first."""

    def __init__(self, progress: Progress, later: set[str]) -> None:
        self._progress = progress
        self._later = later
        self._started: set[str] = set()
        printed = getattr(progress, "printed", None)
        if printed is not None:
            self.printed = printed

    def __call__(self, name: str, report: Report | None) -> None:
        if name not in self._later:
            self._progress(name, report)
        elif report is None and name not in self._started:
            self._started.add(name)
            self._progress(name, None)
