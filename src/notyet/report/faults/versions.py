"""Which version of a host's program is installed: asked of the program, which may not answer."""

from __future__ import annotations

import re
import shutil

from notyet.checks.command import Job, run_together
from notyet.core.record import Record
from notyet.core.text import clean, first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE = 10.0  # seconds; the slowest real one takes less than one
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9}){1,3}")


class Version(Record, kw_only=True):
    """What a program says of its version, or why it did not say one."""

    text: str = ""
    problem: str = ""

    @property
    def parts(self) -> tuple[int, ...]:
        """The version as numbers that compare; empty when it is not known."""
        return tuple(int(part) for part in self.text.split(".")) if self.text else ()


def find_program(name: str, environ: Mapping[str, str]) -> str:
    """Return where a program is; empty when it is not on the PATH."""
    return shutil.which(name, path=environ.get("PATH", "")) or ""


def version_of(program: str, environ: Mapping[str, str]) -> Version:
    """Ask a program for its version; it is ended if it takes too long."""
    job = Job(argv=(program, "--version"), dir="/", environ=environ, timeout=PATIENCE)
    (done,) = run_together([job])
    if done.problem:
        return Version(problem=done.problem)
    if done.timed_out:
        return Version(problem=f"it did not answer within {PATIENCE:g} s")
    said = clean(done.stdout.decode("utf-8", "replace"))
    if done.code != 0:
        why = first_line(clean(done.stderr.decode("utf-8", "replace")) or said)
        ended = f"exit code {done.code}" if done.code is not None else f"signal {done.signal}"
        return Version(problem=f"it ended with {ended}" + (f": {why}" if why else ""))
    number = _NUMBER.search(said)
    if number is None:
        return Version(problem="it did not name a version")
    return Version(text=number[0])
