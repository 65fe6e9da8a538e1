"""End processes that gates left behind outside their process groups (Linux: subreaper)."""

from __future__ import annotations

import time

from notyet import light
from notyet.run.groups import reap_deferred, send
from notyet.run.proc import children, command_line, is_zombie, variable
from notyet.run.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # without the enum that `signal` imports

_GRACE = 0.3
_AT_LEAST = 0.05


class Sweep:
    """End children of this process that come from gates."""

    def __init__(
        self, *, other_children: Collection[int], kept_alive: Collection[int | str]
    ) -> None:
        self._other_children = other_children
        self._kept_alive = kept_alive
        self._signalled: set[int] = set()

    def work(self, at_most: float) -> int:
        """End and reap them within about so many seconds; return how many there were."""
        at_most = max(_AT_LEAST, at_most)
        grace = min(_GRACE, at_most / 3)
        started = time.monotonic()
        ended = 0
        while not is_childless():
            left = [pid for pid in children() if pid in self._signalled or self._is_from_gate(pid)]
            reaped = [pid for pid in left if _reap(pid)]
            ended += len(reaped)
            waited = time.monotonic() - started
            is_done = (self._other_children or self._kept_alive) and not left
            if waited > at_most or is_done:
                break
            self._send(left, is_over=waited > grace)
            if not reaped:  # else we have just adopted its children: look again at once
                time.sleep(0.002)
        return ended

    def _send(self, pids: Collection[int], *, is_over: bool) -> None:
        for pid in pids:
            if is_over:
                send(pid, signal.SIGKILL)
            elif pid not in self._signalled:
                send(pid, signal.SIGTERM)
                send(pid, signal.SIGCONT)
            self._signalled.add(pid)

    def _is_from_gate(self, pid: int) -> bool:
        """Return True if a child comes from a gate.

        If this process had other children, whose orphans we adopt too, only our mark tells.
        """
        if self._kept_alive and self._is_kept_alive(pid):
            return False
        if not self._other_children:
            return True
        return pid not in self._other_children and variable(pid, MARK) not in (
            None,
            light.variables().get(MARK, "").encode(),
        )

    def _is_kept_alive(self, pid: int) -> bool:
        """Return True if a child must live on; False if it has exited."""
        if is_zombie(pid):
            return False
        try:
            if light.getsid(pid) in self._kept_alive:
                return True
            line = command_line(pid)
        except OSError:
            return False
        return any(words in line for words in self._kept_alive if isinstance(words, str))


def _reap(pid: int) -> bool:
    """Reap a child if it has exited; return True if so."""
    try:
        return light.waitpid(pid, light.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


# Ending processes that left their group is only for a process that starts nothing but gates, such
# as `notyet hook`.
#
# On Linux a process can ask to become the parent of every orphan among its descendants. A process
# of a gate then cannot escape, neither by a double fork nor by a new session.
#
# Such a process can still have other children: `bash -c 'server & notyet hook'` starts a server
# and then becomes the hook. They are left alone.


_SET_CHILD_SUBREAPER = 36
_AT_MOST = 2.0  # seconds

_adopted = False
_other_children: frozenset[int] = frozenset()  # children that were there before the first gate
# Connections to other machines, which the next stop reuses: sessions, and parts of command lines.
_kept_alive: set[int | str] = set()


def adopt_orphans() -> bool:
    """Become the parent of all our orphaned descendants; return False if that is impossible.

    Call it before the first gate starts: earlier orphans went to another process.
    """
    global _other_children, _adopted  # noqa: PLW0603  # it is a property of the process
    try:
        _other_children = frozenset() if is_childless() else frozenset(children())
        _adopted = _become_subreaper()
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return _adopted


def keep_alive(session: int, words: str) -> None:
    """Never end processes of a session, or with these words on their command line."""
    _kept_alive.update((session, words))


def sweep(at_most: float = _AT_MOST) -> int:
    """End and reap the children that come from gates; return how many there were.

    Takes at most `at_most` seconds, and never more than two.
    Does nothing without `adopt_orphans`: a program that embeds us has its own children.
    """
    reap_deferred()
    if not _adopted or is_childless():
        return 0
    return Sweep(other_children=_other_children, kept_alive=_kept_alive).work(
        min(at_most, _AT_MOST)
    )


def is_childless() -> bool:
    """Return True if this process has no child at all."""
    try:
        light.waitid(light.P_ALL, 0, light.WEXITED | light.WNOHANG | light.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _become_subreaper() -> bool:
    # Not `ctypes`: importing it costs as much as starting the interpreter.
    import _ctypes

    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program itself
    prctl = _ctypes.dlsym(program, "prctl")
    return bool(_ctypes.call_cdeclfunction(prctl, (_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
