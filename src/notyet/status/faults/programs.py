"""Whether hooks start by a launcher of this notyet, and as quickly as they can."""

from __future__ import annotations

import os
import re
import shutil
import sys

from notyet.core.record import Record
from notyet.core.text import clean, first_line, visible
from notyet.hosts.own_line import own_line
from notyet.install.launcher import has_pack, installation, is_launcher_of, own_root
from notyet.run.spawn import Job
from notyet.run.stage import run_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from notyet.install.registered import Registration
    from notyet.status.faults.fault import Fault
    from notyet.status.faults.look import Look


def launching_faults(look: Look, entries: Iterable[Registration]) -> Iterator[Fault]:
    """Judge each launcher that these entries have started and that is there."""
    from notyet.status.faults.entries import install_again

    told = set()
    for entry in entries:
        ours = own_line(entry.command)
        if ours is None or ours.launcher in told or not os.path.isfile(ours.launcher):
            continue
        told.add(ours.launcher)
        folder, fix = os.path.dirname(ours.launcher), install_again(look, entry)
        name, is_ours = visible(ours.launcher), os.path.basename(folder) == installation(own_root())
        if not is_ours:
            what = f"{name} belongs to another installation of notyet, and starts that one."
            yield look.fault("launcher-other", what, where=entry.where, fix=fix)
        elif not is_launcher_of(folder, own_root()):
            what = f"{name} is not as this notyet writes it, as after an upgrade."
            yield look.fault("launcher-other", what, where=entry.where, fix=fix)
        is_same_python = os.path.realpath(ours.program) == os.path.realpath(sys.executable)
        if is_ours and is_same_python and not has_pack(folder):
            what = "The pack of modules is missing or out of date, so hooks start slower."
            yield look.fault("pack-outdated", what, where=visible(folder), fix=fix)


_FIRST_LINE = 256  # bytes; the kernel reads no more of it


def program_fault(look: Look, entry: Registration, fix: str = "") -> Fault | None:
    """Judge the program of an entry; None when nothing is wrong that can be seen.

    `fix` is what writes the entry anew.
    """
    ours = own_line(entry.command)
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
