"""Asks the installed Claude Code which settings it leaves out: `claude doctor`, read as text.

It knows far more keys than we do, and one wrong value can cost a whole file. It needs no login,
and leaves no settings changed; but like every start of Claude Code it may write its own
`~/.claude.json`. Whatever it does ends in an answer or in a reason why there is none.
"""

from __future__ import annotations

import os
import re

from notyet.checks.command import Job, run_together
from notyet.core.record import Record
from notyet.core.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from notyet.report.faults.look import Look

SINCE = (2, 1, 325)  # older ones draw on a terminal, and wait for a key that nobody presses
PATIENCE = 10.0  # seconds; it takes half of one
_QUIETLY = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
_HEADING = "Claude Code doctor"
_TITLE = "Invalid settings"
_SIGN = " \u203a "  # between a file and a key
_PART = re.compile(
    r"\b(?:entry|matcher) ignored\b|(?<!\bfile )\b(?:is|was) (?:ignored|skipped|removed)\b"
)


class Complaint(Record, kw_only=True):
    """Something that Claude Code leaves out: a whole file, or a part of it."""

    path: str
    key: tuple[str, ...]
    why: str
    is_whole: bool


class Diagnosis(Record, kw_only=True):
    """What the doctor said, or in `problem` why it said nothing."""

    complaints: tuple[Complaint, ...] = ()
    problem: str = ""


def examined(look: Look) -> Diagnosis:
    """Ask what is left out of the settings that are there."""
    if not any(content.is_there for content in look.contents):
        return Diagnosis()
    if not look.program:
        return Diagnosis(problem="its program is not on the PATH")
    if look.version.parts < SINCE:
        return Diagnosis(problem=f"{look.title} {look.version.text} cannot be asked")
    job = Job(
        argv=(look.program, "doctor"),
        dir=look.cwd,
        environ={**look.environ, **_QUIETLY},
        timeout=PATIENCE,
    )
    (done,) = run_together([job])
    if done.problem:
        return Diagnosis(problem=f"`claude doctor` could not be started: {done.problem}")
    if done.timed_out:
        return Diagnosis(problem=f"`claude doctor` did not answer within {PATIENCE:g} s")
    said = clean(done.stdout.decode("utf-8", "replace"))
    if done.code != 0 or not said.startswith(_HEADING):
        return Diagnosis(problem="`claude doctor` answered in words that this notyet does not know")
    return Diagnosis(complaints=tuple(complaints(said, (c.place.path for c in look.contents))))


def complaints(text: str, paths: Iterable[str]) -> Iterator[Complaint]:
    """Yield what the doctor says about these files, which it may call by another name."""
    names = {name: path for path in paths for name in (os.path.realpath(path), path)}
    _, _, section = text.partition(f"\n{_TITLE}\n")
    for line in section.split("\n\n")[0].splitlines():
        for name, path in names.items():
            start = f"- {name}{_SIGN}"
            if line.startswith(start):
                key, _, why = line.removeprefix(start).partition(": ")
                yield Complaint(
                    path=path,
                    key=tuple(key.split(".")),
                    why=why.strip().rstrip("."),
                    is_whole=not _PART.search(why),
                )
