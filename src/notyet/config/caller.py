"""Detect that an agent calls: `trust` and `off` are for people (N5).

This keeps honest agents honest, and no more: a program that wants to hide can.
"""

from __future__ import annotations

import os

from notyet.hosts.signs import PROGRAMS
from notyet.run import proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_ACP = "acp:"  # in place of a session
_OURS = ("NOTYET_INSIDE", "NOTYET_SUPERVISED")


def inside_agent(environ: Mapping[str, str]) -> str:
    """Return the sign by which an agent runs this process; empty for a person."""
    from notyet.hosts.known_programs import every_program  # not for hooks

    for name in sorted({*_OURS, *(name for host in every_program() for name in host.inside)}):
        if environ.get(name):
            return f"{name} is set"
    for program in _ancestors(os.getpid()):
        if program.split("-")[0] in PROGRAMS or program in PROGRAMS:  # as in claude-2.1
            return f"{program} is among the programs that started this one"
    return ""


def host_began_at(program: str) -> float | None:
    """Return when the host that called this process began, by the clock; None if unknown.

    That is the outermost program of this name above us, or else of any host.
    """
    above = [(pid, proc.program_names(pid)) for pid in (*proc.ancestors(os.getpid()), 1)]
    for names in ({program}, PROGRAMS):
        for pid, known in reversed(above):
            if any(name in names or name.split("-")[0] in names for name in known):
                return proc.birth(pid)
    return None


def is_supervised(mark: str, session: str, state: str = "", *, is_helper: bool = False) -> bool:
    """Return True if a supervisor above us gates this session; `mark` is its process and session.

    A mark that was set by hand, or left behind, names no ancestor of this process. An agent that
    the supervised one starts inherits the mark, but has another session. A proxy of `notyet acp`
    has many sessions, and keeps their names below the `state` folder; a `helper` of a session, as
    codex-acp has for titles, is the proxy's business too: no user sees its answers.
    """
    pid, _, named = mark.partition(":")
    if not pid.isdecimal():
        return False
    if named == _ACP:
        if not is_helper and not _is_of_proxy(pid, session, state):
            return False
    elif named not in {"", session}:
        return False
    return int(pid) in proc.ancestors(os.getpid())


def acp_mark(pid: int) -> str:
    """Return the mark of a proxy."""
    return f"{pid}:{_ACP}"


def _is_of_proxy(pid: str, session: str, state: str) -> bool:
    """Return True if a proxy has marked this session as its own."""
    from notyet.core.gate import digest_of

    try:
        with open(f"{state}/acp/{digest_of(session)}", encoding="utf-8", errors="replace") as file:
            return file.readline().strip() == pid
    except OSError:
        return False


def _ancestors(pid: int) -> Iterator[str]:
    """Yield the names of the programs above a process, nearest first."""
    for ancestor in proc.ancestors(pid):
        yield from proc.program_names(ancestor)
