"""Ending what gates left behind outside their groups; see `orphans`."""

from __future__ import annotations

import time

from notyet import system
from notyet.checks.groups import is_zombie, read, send, status
from notyet.checks.orphans import is_childless
from notyet.checks.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Collection
else:
    import _signal as signal  # without the enum that `signal` imports

_GRACE = 0.3
_AT_LEAST = 0.05


class Sweep:
    """Whom we may end: children of ours that come from gates."""

    def __init__(self, *, theirs: Collection[int], spared: Collection[int]) -> None:
        self._theirs = theirs
        self._spared = spared
        self._told: set[int] = set()

    def work(self, at_most: float) -> int:
        """End and collect them, in about so many seconds at most; return how many there were."""
        at_most = max(_AT_LEAST, at_most)
        grace = min(_GRACE, at_most / 3)
        started = time.monotonic()
        ended = 0
        while not is_childless():
            left = [pid for pid in children() if pid in self._told or self._is_ours(pid)]
            collected = [pid for pid in left if _collect(pid)]
            ended += len(collected)
            waited = time.monotonic() - started
            is_done = (self._theirs or self._spared) and not left
            if waited > at_most or is_done:
                break
            self._tell(left, is_over=waited > grace)
            if not collected:  # else its own children are ours now: look again at once
                time.sleep(0.002)
        return ended

    def _tell(self, pids: Collection[int], *, is_over: bool) -> None:
        for pid in pids:
            if is_over:
                send(pid, signal.SIGKILL)
            elif pid not in self._told:
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
            self._told.add(pid)

    def _is_ours(self, pid: int) -> bool:
        """Tell whether a child comes from a gate.

        Next to children of somebody else, whose orphans come to us as well, only our mark tells.
        """
        if self._spared and self._is_spared(pid):
            return False
        if not self._theirs:
            return True
        return pid not in self._theirs and _mark_of(pid) not in (
            None,
            system.variables().get(MARK, "").encode(),
        )

    def _is_spared(self, pid: int) -> bool:
        """Tell whether a child is wanted; one that has exited is not."""
        if is_zombie(pid):
            return False
        try:
            return pid in self._spared or system.getsid(pid) in self._spared
        except OSError:
            return False


def children() -> list[int]:
    """Return the processes that this one is the parent of."""
    try:
        threads = system.listdir("/proc/self/task")
        found = [read(f"/proc/self/task/{thread}/children").split() for thread in threads]
        return [int(pid) for pids in found for pid in pids]
    except OSError:  # a kernel without these lists
        mine = str(system.getpid()).encode()
        pids = [int(name) for name in system.listdir("/proc") if name.isdecimal()]
        return [pid for pid in pids if status(pid)[1:2] == [mine]]


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
