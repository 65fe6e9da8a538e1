"""Ending what left its process group: only for a process that owns all its children, as `hook`.

On Linux a process can ask to become the parent of every orphan among its descendants. What a
gate started then cannot get away, not with a double fork and not with a session of its own.
"""

from __future__ import annotations

import os
import time

from notyet.checks.groups import read, send, status

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
_adopted = False


def adopt_orphans() -> bool:
    """Become the parent of all our orphaned descendants; False where that is impossible."""
    global _adopted  # noqa: PLW0603  # it is a property of the process
    try:
        _adopted = _become_subreaper()
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return _adopted


def sweep() -> int:
    """End and collect every child of this process that is left; return how many there were.

    Does nothing unless `adopt_orphans` succeeded: a program that embeds us has its own children.
    """
    if not _adopted:
        return 0
    started = time.monotonic()
    told: set[int] = set()
    ended = 0
    while True:
        collected = _collect()
        if collected is None:
            return ended
        ended += collected
        waited = time.monotonic() - started
        if waited > _AT_MOST:
            return ended
        for pid in _children():
            if waited > _GRACE:
                send(pid, signal.SIGKILL)
            elif pid not in told:
                told.add(pid)
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
        time.sleep(0.002)


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


def _collect() -> int | None:
    """Collect the children that have exited and count them; None when no child is left."""
    count = 0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return count or None
        if not pid:
            return count
        count += 1


def _children() -> list[int]:
    try:
        threads = os.listdir("/proc/self/task")
        found = [read(f"/proc/self/task/{thread}/children").split() for thread in threads]
        return [int(pid) for pids in found for pid in pids]
    except OSError:  # a kernel without these lists
        mine = str(os.getpid()).encode()
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        return [pid for pid in pids if status(pid)[1:2] == [mine]]
