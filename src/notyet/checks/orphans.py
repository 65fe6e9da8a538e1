"""Ending what left its process group: only for a process that starts nothing but gates, as `hook`.

On Linux a process can ask to become the parent of every orphan among its descendants. What a
gate started then cannot get away, not with a double fork and not with a session of its own.

Such a process can have children all the same: `bash -c 'server & notyet hook'` starts a server
and then becomes the hook. They are somebody else's, and are left alone.
"""

from __future__ import annotations

import time

from notyet import system
from notyet.checks.groups import is_zombie, read, send, status
from notyet.checks.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enum that `signal` imports

_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37
_C_CALLS = 1  # FUNCFLAG_CDECL

_GRACE = 0.3
_AT_MOST = 2.0
_AT_LEAST = 0.05
_adopted = False
_theirs: frozenset[int] = frozenset()  # children that were there before the first gate
_spared: set[int] = set()  # what a gate leaves behind for the next one: processes, and sessions


def adopt_orphans() -> bool:
    """Become the parent of all our orphaned descendants; False where that is impossible."""
    global _adopted, _theirs  # noqa: PLW0603  # it is a property of the process
    try:
        _theirs = frozenset() if _is_childless() else frozenset(_children())
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
    Does nothing unless `adopt_orphans` succeeded: a program that embeds us has its own children.
    """
    if not _adopted:
        return 0
    at_most = max(_AT_LEAST, min(at_most, _AT_MOST))
    grace = min(_GRACE, at_most / 3)
    started = time.monotonic()
    told: set[int] = set()
    ended = 0
    while not _is_childless():
        left = [pid for pid in _children() if pid in told or _is_ours(pid)]
        collected = [pid for pid in left if _collect(pid)]
        ended += len(collected)
        waited = time.monotonic() - started
        if waited > at_most or ((_theirs or _spared) and not left):
            break
        for pid in left:
            if waited > grace:
                send(pid, signal.SIGKILL)
            elif pid not in told:
                told.add(pid)
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
        if not collected:  # else its own children are ours now: look again at once
            time.sleep(0.002)
    return ended


def _become_subreaper() -> bool:
    # Not `ctypes`: to import it costs as much as starting the interpreter.
    import _ctypes

    class Function(_ctypes.CFuncPtr):
        _flags_ = _C_CALLS

    class Number(_ctypes._SimpleCData):  # type: ignore[type-arg]  # noqa: SLF001  # ctypes.c_int
        _type_ = "i"

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program itself
    prctl = Function(_ctypes.dlsym(program, "prctl"))
    now = Number()
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(_GET_CHILD_SUBREAPER, _ctypes.byref(now), 0, 0, 0)
    return bool(now.value == 1)


def _is_childless() -> bool:
    try:
        system.waitid(system.P_ALL, 0, system.WEXITED | system.WNOHANG | system.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _is_ours(pid: int) -> bool:
    """Tell whether a child comes from a gate.

    Next to children of somebody else, whose orphans come to us as well, only our mark tells.
    """
    if _spared and _is_spared(pid):
        return False
    if not _theirs:
        return True
    return pid not in _theirs and _mark_of(pid) not in (
        None,
        system.variables().get(MARK, "").encode(),
    )


def _is_spared(pid: int) -> bool:
    """Tell whether a child is wanted; one that has exited is not."""
    if is_zombie(pid):
        return False
    try:
        return pid in _spared or system.getsid(pid) in _spared
    except OSError:
        return False


def _mark_of(pid: int) -> bytes | None:
    """Return the mark that a process carries; None when it has no environment any more."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
    except OSError:
        return None
    _, _, value = (b"\0" + environ).partition(b"\0" + MARK.encode() + b"=")
    return value.partition(b"\0")[0] if environ else None


def _collect(pid: int) -> bool:
    """Collect a child if it has exited."""
    try:
        return system.waitpid(pid, system.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


def _children() -> list[int]:
    try:
        threads = system.listdir("/proc/self/task")
        found = [read(f"/proc/self/task/{thread}/children").split() for thread in threads]
        return [int(pid) for pids in found for pid in pids]
    except OSError:  # a kernel without these lists
        mine = str(system.getpid()).encode()
        pids = [int(name) for name in system.listdir("/proc") if name.isdecimal()]
        return [pid for pid in pids if status(pid)[1:2] == [mine]]
