"""Ending what left its process group: only for a process that starts nothing but gates, as `hook`.

On Linux a process can ask to become the parent of every orphan among its descendants. What a
gate started then cannot get away, not with a double fork and not with a session of its own.

Such a process can have children all the same: `bash -c 'server & notyet hook'` starts a server
and then becomes the hook. They are somebody else's, and are left alone.
"""

from __future__ import annotations

from notyet import system
from notyet.checks.groups import reap_killed

_SET_CHILD_SUBREAPER = 36
_AT_MOST = 2.0  # seconds

_adopted = False
_theirs: frozenset[int] = frozenset()  # children that were there before the first gate
_spared: set[int] = set()  # what a gate leaves behind for the next one: processes, and sessions


def adopt_orphans() -> bool:
    """Become the parent of all our orphaned descendants; False where that is impossible.

    Before the first gate starts: what lost its parent earlier went to somebody else.
    """
    global _theirs, _adopted  # noqa: PLW0603  # it is a property of the process
    try:
        _theirs = frozenset() if is_childless() else _children()
        _adopted = _become_subreaper()
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return _adopted


def adopts() -> bool:
    """Tell whether orphans come to this process."""
    return _adopted


def spare(*pids: int) -> None:
    """Let processes live on, and what is in the sessions that they lead or led."""
    _spared.update(pid for pid in pids if pid)


def sweep(at_most: float = _AT_MOST) -> int:
    """End and collect every child of this process that is ours; return how many there were.

    Takes at most so many seconds, and never long.
    Does nothing unless we adopt orphans: a program that embeds us has its own children.
    """
    reap_killed()
    if not _adopted or is_childless():
        return 0
    from notyet.checks.sweeping import Sweep

    return Sweep(theirs=_theirs, spared=_spared).work(min(at_most, _AT_MOST))


def is_childless() -> bool:
    """Tell whether this process has no child at all."""
    try:
        system.waitid(system.P_ALL, 0, system.WEXITED | system.WNOHANG | system.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _children() -> frozenset[int]:
    from notyet.checks.sweeping import children

    return frozenset(children())


def _become_subreaper() -> bool:
    # Not `ctypes`: to import it costs as much as starting the interpreter.
    import _ctypes

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program itself
    prctl = _ctypes.dlsym(program, "prctl")
    return bool(_ctypes.call_cdeclfunction(prctl, (_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
