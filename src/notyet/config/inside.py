"""Detect that an agent calls: `trust` and `off` are for people (N5).

This keeps honest agents honest, and no more: a program that wants to hide can.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OURS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED")
_MOST_ANCESTORS = 64


def inside_agent(environ: Mapping[str, str]) -> str:
    """Return the sign by which an agent runs this process; empty for a person."""
    from notyet.hosts.others import every_program

    programs = every_program()
    for name in sorted({*_OURS, *(name for host in programs for name in host.inside)}):
        if environ.get(name):
            return f"{name} is set"
    names = {host.program for host in programs} - {""}
    for program in _ancestors(os.getpid()):
        if program.split("-")[0] in names or program in names:  # as in claude-2.1
            return f"{program} is among the programs that started this one"
    return ""


def is_supervised(mark: str, session: str) -> bool:
    """Return True if a supervisor above us gates this session; `mark` is its process and session.

    A mark that somebody set by hand, or left behind, names no process that started this one. And
    an agent that the supervised one starts by itself inherits it, with another's session.
    """
    pid, _, named = mark.partition(":")
    if not pid.isdecimal() or named not in {"", session}:
        return False
    above = os.getpid()
    for _ in range(_MOST_ANCESTORS):
        above = _parent(above)[0]
        if above <= 1:
            break
        if above == int(pid):
            return True
    return False


def _ancestors(pid: int) -> Iterator[str]:
    """Yield the names of the programs above a process, nearest first."""
    for _ in range(_MOST_ANCESTORS):
        parent, names = _parent(pid)
        if parent <= 1:
            return
        yield from names
        pid = parent


def _parent(pid: int) -> tuple[int, list[str]]:
    """Return the parent of a process, and the names of its program."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in brackets may hold anything; the state and the parent come after it.
            parent = int(file.read().rpartition(b")")[2].split()[1])
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            words = file.read(65_536).split(b"\0")[:2]  # a script's name comes second
    except (OSError, ValueError, IndexError):
        return _parent_by_ps(pid)
    return parent, [os.path.basename(os.fsdecode(word)) for word in words]


def _parent_by_ps(pid: int) -> tuple[int, list[str]]:
    """Ask `ps`, where there is no /proc."""
    import subprocess

    def ask(number: int, what: str) -> str:
        try:
            asked = ["ps", "-o", f"{what}=", "-p", str(number)]
            done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603  # ps, with numbers
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return done.stdout.strip()

    parent = ask(pid, "ppid")
    if not parent.isdecimal():
        return 0, []
    words = ask(int(parent), "command").split()[:2]
    return int(parent), [os.path.basename(word) for word in words]
