"""End processes: groups, what left its group, and all of them if this process dies."""

from __future__ import annotations

from time import monotonic, sleep

from notyet import light
from notyet.run.proc import (
    all_pids,
    children,
    command_line,
    group_of,
    is_zombie,
    pids_after,
    variable,
)
from notyet.run.spawn import MARK, SH, launch, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Collection, Iterable
else:
    import _signal as signal  # without the enum that `signal` imports

# Reads group ids until its input ends, which is when this process dies, for whatever reason. After
# a normal end it is killed before that. Processes that left their group are found by our mark, if
# there is a /proc.
_WATCH = """
token=$1 groups=
cd /
while read -r group; do groups="$groups $group"; done
end() {
  for group in $groups; do kill -s "$1" -- "-$group"; done
  for file in $(grep -lsF -e "$token" /proc/[0-9]*/environ); do
    file=${file%/environ}
    kill -s "$1" "${file#/proc/}"
  done
}
end TERM
sleep 0.5 || sleep 1
end KILL
end KILL
"""
_deferred: list[int] | None = None


class Watchdog:
    """A small shell that kills registered process groups when this process dies.

    It starts before the first command, and finds processes by our mark until their groups are
    registered (without /proc, that short time is not covered).
    It has its own session, so it outlives a SIGKILL to our group. If a fork of this program also
    holds the pipe, it acts only when the last holder is gone.
    """

    __slots__ = ("pid", "pipe")

    def __init__(self, token: str, close: Iterable[int]) -> None:
        self.pid, self.pipe = 0, -1
        ends: tuple[int, ...] = ()
        try:
            ends = pipe()
            null = light.open(light.devnull, light.O_RDWR | light.O_CLOEXEC)
            ends = (*ends, null)
            light.set_blocking(ends[1], False)
            environ = {"PATH": light.variables().get("PATH", light.defpath)}
            argv = [SH, "-c", _WATCH, "notyet-watchdog", token]
            self.pid = launch(argv, environ, (ends[0], null, null), close)
            self.pipe = ends[1]
        except (OSError, ValueError):  # too many files or processes: run without a watchdog
            pass
        finally:
            for end in ends:
                if end != self.pipe:
                    light.close(end)

    def watch(self, groups: Iterable[int]) -> None:
        """Register groups to kill."""
        if self.pid:
            try:  # noqa: SIM105  # contextlib is not free
                light.write(self.pipe, f"{' '.join(map(str, groups))}\n".encode())
            except OSError:  # it was killed, or is stopped
                pass

    def end(self) -> None:
        """Kill the watchdog before its input ends; the caller reaps it."""
        if self.pid:
            send(self.pid, 9)
            light.close(self.pipe)

    def stop(self) -> None:
        """Kill and reap the watchdog."""
        self.end()
        reap(self.pid)
        self.pid = 0


def send(target: int, number: int) -> None:
    """Signal a process, or a group if negative; ignore one that is gone or not ours."""
    try:  # noqa: SIM105  # contextlib is not free
        light.kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass


def reap(pid: int) -> bool:
    """Reap a child that was killed; return False if it does not end within a second."""
    for attempt in range(200):
        try:
            if light.waitpid(pid, light.WNOHANG)[0]:
                return True
        except ChildProcessError:  # reaped elsewhere
            return True
        sleep(0.0001 if attempt < 20 else 0.005)  # noqa: PLR2004  # 2 ms, then 900 ms
    return False


def defer_reaping() -> None:
    """Let `reap_or_defer` defer to `reap_deferred`, which this process calls before it exits."""
    global _deferred  # noqa: PLW0603  # it is a property of the process
    _deferred = []


def reap_or_defer(pid: int) -> None:
    """Reap a child that was killed: now, or in `reap_deferred` after `defer_reaping`."""
    if _deferred is None:
        reap(pid)
    else:
        _deferred.append(pid)


def reap_deferred() -> None:
    """Reap the children that `reap_or_defer` deferred."""
    while _deferred:
        reap(_deferred.pop())


def living(groups: set[int]) -> set[int]:
    """Return those of the groups, whose leaders have exited, that still have a running process."""
    left = set()
    try:
        pids = pids_after(min(groups))
    except (OSError, ValueError, IndexError):  # no /proc
        return {group for group in groups if _exists(-group)}
    for pid in pids:
        if pid in groups:
            continue
        group = group_of(pid)
        if group in groups and group not in left and not is_zombie(pid):
            left.add(group)
    return left


def _exists(target: int) -> bool:
    try:
        light.kill(target, 0)
    except OSError:  # macOS says EPERM where only the exited leader is left
        return False
    return True


def end_marked(token: str) -> None:
    """Kill the processes that inherited a mark, also those that left their group.

    Does nothing where there is no /proc, and gives up on what no signal ends.
    """
    mark, ends = token.encode(), monotonic() + _AT_MOST
    while monotonic() < ends:
        try:
            pids = [*all_pids()]
        except OSError:
            return
        marked = [pid for pid in pids if mark in (variable(pid, MARK) or b"")]
        left = [pid for pid in marked if not is_zombie(pid)]
        if not left:
            return
        for pid in left:
            send(pid, signal.SIGKILL)
        sleep(0.005)


# Ending processes that left their group is only for a process that starts nothing but gates, such
# as `notyet hook`.
#
# On Linux a process can ask to become the parent of every orphan among its descendants. A process
# of a gate then cannot escape, neither by a double fork nor by a new session.
#
# Such a process can still have other children: `bash -c 'server & notyet hook'` starts a server
# and then becomes the hook. They are left alone.

_GRACE = 0.3
_AT_LEAST = 0.05
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
        started = monotonic()
        ended = 0
        while not is_childless():
            left = [pid for pid in children() if pid in self._signalled or self._is_from_gate(pid)]
            reaped = [pid for pid in left if _reap(pid)]
            ended += len(reaped)
            waited = monotonic() - started
            is_done = (self._other_children or self._kept_alive) and not left
            if waited > at_most or is_done:
                break
            self._send(left, is_over=waited > grace)
            if not reaped:  # else we have just adopted its children: look again at once
                sleep(0.002)
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
