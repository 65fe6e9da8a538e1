"""Ending what left its process group: only for a process that starts nothing but gates, as `hook`.

On Linux a process can ask to become the parent of every orphan among its descendants. What a
gate started then cannot get away, not with a double fork and not with a session of its own.

Such a process can have children all the same: `bash -c 'server & notyet hook'` starts a server
and then becomes the hook. They are somebody else's, and are left alone.
"""

from __future__ import annotations

import sys

from notyet import system
from notyet.checks.first_command import once_started
from notyet.checks.groups import newest_process, read, reap_killed, reap_later
from notyet.checks.spawn import MARK, begins_token

_SET_CHILD_SUBREAPER = 36
_AT_MOST = 2.0  # seconds
_FEW = 32  # processes to look at one by one

_sweeps = False
_adopted = False
_is_late = False  # something may have lost its parent before; then it is looked for in the end
_theirs: frozenset[int] = frozenset()  # children that were there before the first gate
_spared: set[int] = set()  # what a gate leaves behind for the next one: processes, and sessions


def adopt_orphans() -> bool:
    """Become the parent of all our orphaned descendants; False where that is impossible."""
    global _sweeps, _adopted  # noqa: PLW0603  # it is a property of the process
    try:
        _note_theirs()
        _sweeps = _adopted = _become_subreaper()
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return _adopted


def adopt_once_started() -> None:
    """Do the same as soon as the first command is started, while it starts.

    Its descendants come to us all the same, but for what lost its parent before that.
    """
    global _sweeps  # noqa: PLW0603  # as above
    _note_theirs()
    _sweeps = sys.platform == "linux"  # also if we are interrupted before we adopt any
    once_started(_adopt_late)
    reap_later()


def _adopt_late(pids: tuple[int, ...]) -> None:
    global _adopted, _is_late  # noqa: PLW0603  # as above
    try:
        _adopted = _become_subreaper()
        _is_late = _has_descendants(pids)
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        _is_late = True


def _has_descendants(pids: tuple[int, ...]) -> bool:
    """Tell whether these may have started others already, which are known by our mark."""
    first = seen = min(pids)
    while (newest := newest_process()) != seen:  # until nothing came into being while we looked
        if not seen < newest < first + _FEW:
            return True
        if any(_has_mark(pid) for pid in range(seen, newest + 1) if pid not in pids):
            return True
        seen = newest
    return False


def _has_mark(pid: int) -> bool:
    try:
        environ = read(f"/proc/{pid}/environ")
    except OSError:  # it is gone, or somebody else's
        return False
    return MARK.encode() in environ and begins_token().encode() in environ


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
    if not _sweeps or (not _is_late and is_childless()):
        return 0
    from notyet.checks.sweeping import Sweep

    sweep = Sweep(theirs=_theirs, spared=_spared, is_late=_is_late or not _adopted)
    return sweep.work(min(at_most, _AT_MOST))


def is_childless() -> bool:
    """Tell whether this process has no child at all."""
    try:
        system.waitid(system.P_ALL, 0, system.WEXITED | system.WNOHANG | system.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _note_theirs() -> None:
    global _theirs  # noqa: PLW0603  # as above
    if hasattr(system, "waitid") and not is_childless():
        from notyet.checks.sweeping import children

        _theirs = frozenset(children())


def _become_subreaper() -> bool:
    # Not `ctypes`: to import it costs as much as starting the interpreter.
    import _ctypes

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program itself
    prctl = _ctypes.dlsym(program, "prctl")
    return bool(_ctypes.call_cdeclfunction(prctl, (_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
