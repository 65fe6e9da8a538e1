"""Whether the program that our entry names is there, and can be run."""

from __future__ import annotations

import os

from notyet.core.text import visible
from notyet.install.entry import parsed
from notyet.report.faults.versions import find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.install.registered import Registration
    from notyet.report.faults.fault import Fault
    from notyet.report.faults.look import Look

_FIRST_LINE = 256  # bytes; the kernel reads no more of it


def program_fault(look: Look, entry: Registration, fix: str = "") -> Fault | None:
    """Judge the program of an entry; None when nothing is wrong that can be seen.

    `fix` is what writes the entry anew.
    """
    ours = parsed(entry.command)
    if ours is None or not ours.program:  # only a shell can tell
        return None
    if "/" not in ours.program:
        if find_program(ours.program, look.environ_of_hooks):
            return None
        effect = "so the entry does nothing" if ours.is_portable else "so nothing is run"
        other = "" if ours.is_portable else f", or {fix}"
        return look.fault(
            "program-missing",
            f"`{visible(ours.program)}` is not on the PATH, {effect}.",
            where=entry.where,
            fix=f"put it on the PATH with which {look.title} is started{other}",
        )
    path = os.path.join(look.cwd, ours.program)
    shown = visible(ours.program)
    if not os.path.exists(path):
        return look.fault("program-missing", f"{shown} does not exist.", where=entry.where, fix=fix)
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        return look.fault(
            "program-not-executable",
            f"{shown} is not a program that can be run.",
            where=entry.where,
            fix=f"run: chmod +x {shown}",
        )
    interpreter = _interpreter(path)
    if interpreter and not os.access(interpreter, os.X_OK):
        return look.fault(
            "interpreter-missing",
            f"{shown} needs {visible(interpreter)}, which is gone.",
            where=entry.where,
            fix=f"install notyet again, and {fix}",
        )
    launcher = os.path.join(look.cwd, ours.launcher)
    if ours.launcher and not (os.path.isfile(launcher) and os.access(launcher, os.R_OK)):
        state = "cannot be read" if os.path.lexists(launcher) else "does not exist"
        what = f"{visible(ours.launcher)} {state}, so nothing is run."
        return look.fault("program-missing", what, where=entry.where, fix=fix)
    return None


def _interpreter(path: str) -> str:
    """Return the program that a script's first line names; empty for none."""
    try:
        with open(path, "rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError:  # a program may be executable and not readable
        return ""
    if not start.startswith(b"#!"):
        return ""
    words = start[2:].split(b"\n")[0].split()
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""
