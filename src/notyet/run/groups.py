"""Process groups: signal them, find what is left of them, and end them if this process dies."""

from __future__ import annotations

from time import sleep

from notyet import light
from notyet.run.proc import group_of, is_zombie, pids_after
from notyet.run.spawn import SH, launch, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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
