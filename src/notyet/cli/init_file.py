"""The `notyet.toml` that `notyet init` writes: run each detected command once, write its gate."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from notyet.cli.schema import REFERENCE
from notyet.cli.terminal import waiting
from notyet.config.files import NAME
from notyet.config.native import read_native
from notyet.core import record
from notyet.core.event import StopEvent
from notyet.core.gate import Command
from notyet.core.text import bounded, visible
from notyet.core.verdict import Block, Halt, Problem
from notyet.engine.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.project.folder import Proposal

_SLOW = 5.0  # seconds from which on a gate runs after the others
_DEFAULT_TIMEOUT = 600.0  # seconds, of a gate that names none
_MAX_WHY = 200  # characters
_HEAD = f"""\
#:schema {REFERENCE}
#
# What must be true before an agent may stop here. `notyet init` wrote this file; it is yours now.
# After a change run `notyet trust`: until then what you looked at before stays in force.
# `notyet check` asks the gates now. `notyet schema` knows all keys.
"""
_EXAMPLE = """
# Nothing that checks this project was found. A gate is a command; an exit code other than 0 sends
# the agent back to work, with what the command printed:
#
# [gates.tests]
# run = "make test"
"""
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


@dataclass(frozen=True)
class Trial:
    """A detected command, and the result of running it once."""

    proposal: Proposal
    result: str = "not tried"  # passed, failed or left out
    seconds: float = 0.0
    why: str = ""  # it failed, or was left out


def run_once(folder: str, found: Sequence[Proposal]) -> Iterator[Trial]:
    """Run each command, one after another so that their times are right."""
    trials = [Trial(proposal) for proposal in found]
    # Parse all before the first one runs: it might write to our file.
    gates = read_native(file_text(trials), os.path.join(folder, NAME)).gates
    for number, (trial, gate) in enumerate(zip(trials, gates, strict=True), 1):
        words = f"trying {number} of {len(gates)}: {visible(trial.proposal.run)} ..."
        with waiting(words):
            report = _run_gate(gate, folder)
        yield judged(trial, report)


def _run_gate(gate: Gate, folder: str) -> Report:
    check = gate.check
    assert isinstance(check, Command)
    check = record.replace(check, env=(*check.env, *_ENVIRON))
    engine = Engine([record.replace(gate, priority=0, check=check)])
    event = StopEvent(host="notyet", session_id="init", cwd=folder)
    (report,) = engine.decide_sync(event, asked="all").reports
    return report


def judged(trial: Trial, report: Report) -> Trial:
    """Return a trial with its result: a gate that gives no answer is left out."""
    answer = report.answer
    trial = replace(trial, seconds=report.seconds)
    nothing = answer.detail if isinstance(answer, Problem) else _ran_nothing(report.output)
    if nothing or isinstance(answer, Problem):
        return replace(trial, result="left out", why=bounded(nothing, _MAX_WHY))
    if not isinstance(answer, Block | Halt):
        return replace(trial, result="passed")
    said = answer.prompt if isinstance(answer, Block) else answer.reason
    # The last line mostly sums it up.
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
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


def file_text(trials: Sequence[Trial]) -> str:
    """Return the text of the file."""
    if not trials:
        return _HEAD + _EXAMPLE
    return "\n".join([_HEAD, *("\n".join([*gate_lines(trial), ""]) for trial in trials)])


def gate_lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of one gate; those of one that was left out are comments."""
    proposal, took = trial.proposal, f"{trial.seconds:.1f} s"
    why = visible(" ".join(trial.why.split()))
    result = {
        "passed": f", passed in {took}",
        "failed": f", failed in {took} ({why})",
        "left out": f", left out: {why}" if why else "",
    }.get(trial.result, "")
    yield f"# {visible(proposal.file)}:{proposal.line}{result}"
    lines = [f"[gates.{proposal.name}]", f"run = {_quoted(proposal.run)}"]
    if proposal.dir:
        lines.append(f"dir = {_quoted(proposal.dir)}")
    if proposal.paths:
        lines.append(f"paths = [{', '.join(map(_quoted, proposal.paths))}]")
    if trial.seconds > _SLOW:
        lines.append("slow = true  # asked when the others passed")
    if 2 * trial.seconds > _DEFAULT_TIMEOUT:
        lines.append(f'timeout = "{ceil(trial.seconds / 30)}m"')
    if trial.result == "failed":
        fails = "it fails already: remove this line, and agents are held to it"
        lines.append(f"observe = true  # {fails}")
    comment = "# " if trial.result == "left out" else ""
    yield from (comment + line for line in lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
