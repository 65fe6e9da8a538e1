"""Processes by their number and the time they started.

A process id alone is not enough: a dead process may still be a zombie, and its number may belong to
another program by now.
"""

from __future__ import annotations

import time

from notyet import light

_DEAD = frozenset({"Z", "X", "x"})
_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat, counted after the name of the program
_LONGEST_STAT = 4096  # bytes; they are some 300
_LONGEST_START = 5.0  # seconds; a larger age of a new process is a wrong clock
_TICKS = 0.02  # seconds; the precision of start times

_own: dict[int, str] = {}  # by process id, since a child is another process


def own_start() -> str:
    """Return when this process started, in the system's ticks; empty if unknown."""
    process = light.getpid()
    if process not in _own:
        _own.clear()
        _own[process] = _stat(process)[1]
    return _own[process]


def own_birth() -> float:
    """Return when this new process was started, by the clock; never too early.

    On a busy system, that is a while before its first line of Python runs.
    """
    now = time.time()
    started = own_start()
    if not started.isdecimal():
        return now
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / light.sysconf("SC_CLK_TCK")
    return now - min(max(age - _TICKS, 0.0), _LONGEST_START)


def is_gone(process: int, started: str) -> bool:
    """Return True if the process that started then has ended."""
    try:
        light.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # alive, of another user
    state, now = _stat(process)
    return state in _DEAD or bool(started and now and started != now)


def _stat(process: int) -> tuple[str, str]:
    try:
        # Not `open`, which makes several more system calls.
        file = light.open(f"/proc/{process}/stat", light.O_RDONLY | light.O_CLOEXEC)
        try:
            fields = light.read(file, _LONGEST_STAT).rpartition(b")")[2].decode("ascii").split()
        finally:
            light.close(file)
        return fields[_STATE], fields[_STARTED]
    except (OSError, ValueError, IndexError):
        return "", ""
