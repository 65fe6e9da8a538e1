"""The `notyet.toml` that `notyet init` writes: what was found, and what came of trying it."""

from __future__ import annotations

from math import ceil

from notyet.cli.schema import REFERENCE
from notyet.core.record import Record
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

    from notyet.project.folder import Proposal

    Result = Literal["passed", "failed", "left out", "not tried"]

_SLOW = 5.0  # seconds from which on a gate is asked after the others
_PATIENCE = 600.0  # seconds: the `timeout` of a gate that names none
_HEAD = f"""\
#:schema {REFERENCE}
#
# What must be true before an agent may stop here. `notyet init` wrote this file; it is yours now.
# After a change run `notyet trust`: until then what you looked at before stays in force.
# `notyet check` asks the gates now. `notyet schema` knows all keys.
"""
_EXAMPLES = """
# Nothing that checks this project was found. A gate is a command; an exit code other than 0 sends
# the agent back to work, with what the command printed:
#
# [gates.tests]
# run = "make test"
"""


class Trial(Record, kw_only=True):
    """What was found, and what came of trying it."""

    proposal: Proposal
    result: Result = "not tried"
    seconds: float = 0.0
    why: str = ""  # it failed, or was left out


def file_text(trials: Sequence[Trial]) -> str:
    """Return the file; every gate says where it was found, and what came of it."""
    if not trials:
        return _HEAD + _EXAMPLES
    return "\n".join([_HEAD, *("\n".join([*lines(trial), ""]) for trial in trials)])


def lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of one gate; of one that was left out they are comments."""
    proposal = trial.proposal
    yield f"# {visible(proposal.file)}:{proposal.line}{_told(trial)}"
    comment = "# " if trial.result == "left out" else ""
    for line in _gate(trial):
        yield comment + line


def _told(trial: Trial) -> str:
    took = f"{trial.seconds:.1f} s"
    if trial.result == "passed":
        return f", passed in {took}"
    if trial.result == "failed":
        return f", failed in {took} ({_bare(trial.why)})"
    return f", left out: {_bare(trial.why)}" if trial.why else ""


def _gate(trial: Trial) -> Iterator[str]:
    proposal = trial.proposal
    yield f"[gates.{proposal.name}]"
    yield f"run = {_quoted(proposal.run)}"
    if proposal.dir:
        yield f"dir = {_quoted(proposal.dir)}"
    if proposal.paths:
        yield f"paths = [{', '.join(map(_quoted, proposal.paths))}]"
    if trial.seconds > _SLOW:
        yield "slow = true  # asked when the others passed"
    if 2 * trial.seconds > _PATIENCE:
        yield f'timeout = "{ceil(trial.seconds / 30)}m"'
    if trial.result == "failed":
        yield "observe = true  # it fails already: remove this line, and agents are held to it"


def _bare(text: str) -> str:
    """Return a text that can stand in a comment."""
    return visible(" ".join(text.split()))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
