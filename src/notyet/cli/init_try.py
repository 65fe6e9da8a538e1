"""Trying what `notyet init` found, once, just as a stop would ask it."""

from __future__ import annotations

import os
import re

from notyet.cli.init_text import Trial, file_text
from notyet.cli.waiting import waiting
from notyet.config.files import NAME
from notyet.config.native import read_native
from notyet.core.command import Command
from notyet.core.event import StopEvent
from notyet.core.record import replace
from notyet.core.text import bounded, visible
from notyet.core.verdict import Block, Halt, Problem
from notyet.engine import Engine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.project.proposal import Proposal

_MOST_WHY = 200  # characters
# So that we can read what its tools say: in English, and as if no other make had started us.
_LOUD = (("LANGUAGE", "en"), ("MAKEFLAGS", ""), ("GNUMAKEFLAGS", ""), ("MAKELEVEL", "0"))
# What unittest and pytest say of no tests, and of some.
_NO_TESTS = re.compile(r"^Ran 0 tests in |^NO TESTS RAN|\bno tests ran\b", re.MULTILINE)
_TESTS = re.compile(r"^Ran [1-9]|\b\d+ (?:passed|failed|skipped|errors?)\b", re.MULTILINE)
# What make says when there is nothing to do, and of the folders that it goes through.
_MOVES = re.compile(r"g?make(?:\[\d+\])?: (?:Entering|Leaving) directory ")
_IDLE = re.compile(
    rf"{_MOVES.pattern}|g?make(?:\[\d+\])?: (?:.* is up to date\.$|Nothing to be done for .*\.$)"
)


def tried(folder: str, found: Sequence[Proposal]) -> Iterator[Trial]:
    """Run each command, one after another so that their times tell something."""
    path = os.path.join(folder, NAME)
    untried = [Trial(proposal=proposal) for proposal in found]
    gates = read_native(file_text(untried), path).gates
    # All of them, before the first one runs: none may answer for another.
    asked = list(zip(untried, gates, strict=True))
    for number, (trial, gate) in enumerate(asked, 1):
        words = f"trying {number} of {len(gates)}: {visible(trial.proposal.run)} ..."
        with waiting(words):
            report = _asked(gate, folder)
        yield judged(trial, report)


def _asked(gate: Gate, folder: str) -> Report:
    check = gate.check
    if isinstance(check, Command):
        check = replace(check, env=(*check.env, *_LOUD))
    engine = Engine([replace(gate, priority=0, check=check)])
    event = StopEvent(host="notyet", session_id="init", cwd=folder)
    (report,) = engine.decide_sync(event, asked="all").reports
    return report


def judged(trial: Trial, report: Report) -> Trial:
    """Return what a gate's answer means for the file that is to be written."""
    answer = report.answer
    trial = replace(trial, seconds=report.seconds)
    if isinstance(answer, Problem):
        # What cannot be asked would only be noise at every stop.
        return replace(trial, result="left out", why=bounded(answer.detail, _MOST_WHY))
    nothing = _ran_nothing(report.output)
    if nothing:
        return replace(trial, result="left out", why=nothing)
    if isinstance(answer, Block):
        return replace(trial, result="failed", why=_why(report.exit, answer.prompt))
    if isinstance(answer, Halt):
        return replace(trial, result="failed", why=_why(report.exit, answer.reason))
    return replace(trial, result="passed")


def _ran_nothing(output: str) -> str:
    """Say that a tool had nothing to do, by its own words: whatever its exit code, nobody passed.

    Only what is certain: another tool in the same command may have had something to do.
    """
    if _NO_TESTS.search(output) and not _TESTS.search(output):
        return "it ran no tests"
    said = [line for line in output.splitlines() if line.strip()]
    if said and all(map(_IDLE.match, said)) and not all(map(_MOVES.match, said)):
        return "make ran nothing: it has no recipe, or is a file's name and not .PHONY"
    return ""


def _why(ended: str, said: str) -> str:
    """Return how it ended and its last line, which mostly sums it up."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    return bounded(f"{ended}: {last}" if last else ended, _MOST_WHY)
