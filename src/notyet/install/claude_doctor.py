"""Asks the installed Claude Code which settings files it drops: `claude doctor`, read as text.

It knows far more keys than we do, and one wrong value can cost a whole file. It only reads, and
needs no login; what it says in other words than we know is left aside.
"""

from __future__ import annotations

import re

from notyet.checks.command import Job, run_together
from notyet.core.record import Record
from notyet.core.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.install.versions import Version

SINCE = (2, 1, 325)  # older ones draw on a terminal, and wait for a key that nobody presses
PATIENCE = 10.0  # seconds; it takes half of one
_QUIETLY = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
_TITLE = "Invalid settings"
_COMPLAINT = re.compile(r"- (?P<path>/.+?) › (?P<key>[^:]+): (?P<why>.+)")  # noqa: RUF001  # its own sign


class Complaint(Record, kw_only=True):
    """Something that makes Claude Code drop a whole file."""

    path: str
    key: tuple[str, ...]
    why: str


def dropped(
    program: str, version: Version, cwd: str, environ: Mapping[str, str]
) -> list[Complaint]:
    """Return why files are dropped; nothing where it cannot be asked."""
    if version.parts < SINCE:
        return []
    job = Job(argv=(program, "doctor"), dir=cwd, environ={**environ, **_QUIETLY}, timeout=PATIENCE)
    (done,) = run_together([job])
    return complaints(clean(done.stdout.decode("utf-8", "replace")))


def complaints(text: str) -> list[Complaint]:
    """Read what the doctor says about settings."""
    _, _, section = text.partition(f"\n{_TITLE}\n")
    found = []
    for line in section.split("\n\n")[0].splitlines():
        said = _COMPLAINT.fullmatch(line.strip())
        if said and " ignored" not in said["why"]:  # else only that entry is dropped
            why = said["why"].strip().rstrip(".")
            found.append(Complaint(path=said["path"], key=tuple(said["key"].split(".")), why=why))
    return found
