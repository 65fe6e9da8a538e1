"""Run each detected command once: does it pass, what does it lack, which files does it change?"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from notyet.config.compile import compile_text
from notyet.config.find import FILE_NAME, root_of
from notyet.config.lint import first_program
from notyet.core import record
from notyet.core.event import StopEvent
from notyet.core.gate import Command
from notyet.core.text import bounded
from notyet.core.verdict import Block, Halt, Problem
from notyet.engine.engine import Engine
from notyet.git.run import HARMLESS, QUIET, own_environ
from notyet.project import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from notyet.cli.progress import Jobs
    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.project.folder import Proposal
    from notyet.run.drive import Progress

    Files: TypeAlias = dict[str, tuple[bool, str]]  # whether git does not know it, and its digest

_MAX_WHY = 200  # characters
_MAX_NAMED = 5  # files
_MAX_FILES = 5000
_MAX_BYTES = 200_000  # of a file that is read
_GIT_TIMEOUT = 30  # seconds
# English output of tools, and of a make that no other make started.
_ENVIRON = (("LANGUAGE", "en"), ("MAKEFLAGS", ""), ("GNUMAKEFLAGS", ""), ("MAKELEVEL", "0"))
# What unittest and pytest print about no tests, and about some.
_NO_TESTS = re.compile(r"^Ran 0 tests in |^NO TESTS RAN|\bno tests ran\b", re.MULTILINE)
_TESTS = re.compile(r"^Ran [1-9]|\b\d+ (?:passed|failed|skipped|errors?)\b", re.MULTILINE)
# What make prints if there is nothing to do, and about the folders that it goes through.
_MOVES = re.compile(r"g?make(?:\[\d+\])?: (?:Entering|Leaving) directory ")
_IDLE = re.compile(
    rf"{_MOVES.pattern}|g?make(?:\[\d+\])?: (?:.* is up to date\.$|Nothing to be done for .*\.$)"
)
# What tools and runtimes print if a dependency is missing.
_MISSING = re.compile(
    r"\bNo module named |\b(?:ERR_)?MODULE_NOT_FOUND\b|\bCannot find (?:module|package) "
    r"|\b[Cc]ommand not found\b|: not found$|\bfixture '\w+' (?:not found|detected)\b"
    r"|\w is not installed\b|\bCould not find .* in (?:any of the sources|locally installed gems)"
    r"|\bUnchecked dependencies for environment\b|\bvendor/autoload\.php\b"
    r"|\bcould not determine executable to run\b|\bcanceled due to missing packages\b"
    # uv and pre-commit install by themselves, unless the network or the versions forbid it.
    r"|\bFailed to (?:fetch|download):? `|\bNo solution found when resolving\b"
    r"|\bfatal: unable to access '|\bCould not resolve host"
)
_RUNNERS = frozenset(("just", "make", "npx", "task"))  # no project installs them
_MAX_LINE = 1000  # characters of a line that is searched
# Lines that say nothing about the failure.
_NOISE = re.compile(
    r"npm (?:notice|warn|error|ERR!)|g?make(?:\[\d+\])?: |\W*ELIFECYCLE|info Visit |\W*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Trial:
    """A detected command, and the result of running it once."""

    proposal: Proposal
    result: str = "not tried"  # passed, failed, not installed or left out
    seconds: float = 0.0
    why: str = ""  # it did not pass


class _Output:
    """Shows what the gate of a trial prints; its job is named otherwise than the gate."""

    def __init__(self, jobs: Jobs, job: str) -> None:
        self._jobs = jobs
        self._job = job

    def __call__(self, _gate: str, _report: Report | None) -> None:
        """Show nothing more: a trial may judge otherwise than its gate."""

    def printed(self, _gate: str, chunk: bytes) -> None:
        self._jobs.printed(self._job, chunk)


def run_once(
    folder: str,
    found: Mapping[str, Proposal],
    text: str,
    jobs: Jobs,
    note: Callable[[str], None],
) -> Iterator[Trial]:
    """Run each command, one after another so that their times are right.

    They are jobs of these names. `text` is a file with a gate for each of them.
    """
    # Parse all before the first one runs: it might write to our file.
    gates = compile_text(text, os.path.join(folder, FILE_NAME)).gates
    before = _files(folder)
    for (job, proposal), gate in zip(found.items(), gates, strict=True):
        trial = Trial(proposal)
        missing = missing_before(folder, proposal)
        if missing:
            jobs.end(job, 0.0)
            yield replace(trial, result="not installed", why=missing)
            continue
        rewritten: list[str] = []
        try:
            jobs.begin(job)
            report = _run_gate(gate, folder, _Output(jobs, job))
        finally:  # also if the user breaks it off
            jobs.end(job, 0.0)
            after = _files(folder)
            rewritten, new = _changes(before, after)
            if rewritten:
                note(f"{proposal.shown} changed {_listed(rewritten)}; review or restore them")
            if new:
                note(f"{proposal.shown} left new files: {_listed(new)}")
            before = after
        trial = judged(trial, report)
        if rewritten:
            why = f"it writes: it changed {_listed(rewritten)}"
            trial = replace(trial, result="left out", why=why)
        yield trial


def missing_before(folder: str, proposal: Proposal) -> str:
    """Return what has to be installed before a command can run; empty for nothing."""
    program = first_program(proposal.run) if proposal.run else ""
    place = os.path.join(folder, proposal.dir, program) if "/" in program else program
    if program and not shutil.which(place):
        return _with_install(f"{program} is not installed", proposal, program)
    return "" if proposal.is_installed else _with_install("it is not set up yet", proposal)


def _with_install(what: str, proposal: Proposal, program: str = "") -> str:
    if not proposal.install or program in _RUNNERS:
        return f"{what}; install {program or 'what it needs'}"
    first = f"install {program}, then run" if proposal.install.split()[0] == program else "run"
    return f"{what}; {first}: {proposal.install}"


def _run_gate(gate: Gate, folder: str, progress: Progress) -> Report:
    check = gate.check
    assert isinstance(check, Command)
    check = record.replace(check, env=(*check.env, *_ENVIRON))
    engine = Engine([record.replace(gate, priority=0, check=check, if_broken="allow")])
    event = StopEvent(host="notyet", session_id="init", cwd=folder)
    (report,) = engine.decide_sync(event, asked="all", progress=progress).reports
    return report


def judged(trial: Trial, report: Report) -> Trial:
    """Return a trial with its result: a gate that gives no answer is left out."""
    answer = report.answer
    trial = replace(trial, seconds=report.seconds)
    if isinstance(answer, Problem):
        is_missing = answer.kind == "cannot_start"
        why = _with_install(answer.detail, trial.proposal) if is_missing else answer.detail
        result = "not installed" if is_missing else "left out"
        return replace(trial, result=result, why=bounded(why, _MAX_WHY))
    nothing = _ran_nothing(report.output)
    if nothing:
        return replace(trial, result="left out", why=nothing)
    if not isinstance(answer, Block | Halt):
        return replace(trial, result="passed")
    said = answer.prompt if isinstance(answer, Block) else answer.reason
    lines = [line.strip() for line in (report.output or said).splitlines()]
    short = (line for line in lines if len(line) < _MAX_LINE)
    missing = next(filter(_MISSING.search, short), "")
    if missing:
        why = _with_install(bounded(missing, _MAX_WHY), trial.proposal)
        return replace(trial, result="not installed", why=why)
    # The last line mostly sums it up.
    lines = [line.strip() for line in said.splitlines()]
    last = next((line for line in reversed(lines) if not _NOISE.match(line)), "")
    why = f"{report.exit}: {last}" if last else report.exit
    return replace(trial, result="failed", why=bounded(why, _MAX_WHY))


def _ran_nothing(output: str) -> str:
    """Return why a command checked nothing, by the words of its tool; empty if that is not sure."""
    if _NO_TESTS.search(output) and not _TESTS.search(output):
        return "it ran no tests"
    said = [line for line in output.splitlines() if line.strip()]
    if said and all(map(_IDLE.match, said)) and not all(map(_MOVES.match, said)):
        return "make ran nothing: it has no recipe, or is a file's name and not .PHONY"
    return ""


def _changes(before: Files, after: Files) -> tuple[list[str], list[str]]:
    """Return the files that were changed or removed, and the new ones."""
    new = {path for path, (is_unknown, _) in after.items() if is_unknown and path not in before}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return sorted(changed - new), sorted(new)


def _files(folder: str) -> Files:
    """Return the files that differ from the last commit; outside git, all files."""
    argv = ["git", "-C", folder, *HARMLESS, "status", "--porcelain", "-z", "--no-renames", "-uall"]
    try:
        done = subprocess.run(  # noqa: S603  # git, with fixed options
            argv,
            env=own_environ() | QUIET,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return {path: (True, _digest(folder, path)) for path in _walked(folder)}
    root = root_of(os.path.realpath(folder))
    lines = os.fsdecode(done.stdout).split("\0")[:_MAX_FILES]
    return {line[3:]: (line[:2] == "??", _digest(root, line[3:])) for line in lines if line}


def _walked(folder: str) -> list[str]:
    found: list[str] = []
    for place, folders, names in os.walk(folder):
        skipped = LEFT_OUT - {"test", "testing", "tests"}
        folders[:] = [name for name in folders if name[0] != "." and name not in skipped]
        found += [os.path.relpath(os.path.join(place, name), folder) for name in names]
        if len(found) > _MAX_FILES:
            break
    return found[:_MAX_FILES]


def _digest(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    try:
        known = os.stat(path)
        # Our own output, or a pipe, which would block.
        if os.path.samestat(known, os.fstat(1)) or not stat.S_ISREG(known.st_mode):
            return ""
        if known.st_size > _MAX_BYTES:
            return f"{known.st_size} {known.st_mtime_ns}"
        with open(path, "rb") as file:
            return hashlib.blake2b(file.read()).hexdigest()
    except OSError:  # removed, or a folder of another repository
        return ""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
