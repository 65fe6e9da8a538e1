"""Process groups: signal them, find what is left of them, and end them if this process dies."""

from __future__ import annotations

from notyet import light
from notyet.run.proc import group_of, is_zombie, pids_after
from notyet.run.spawn import SH, launch, pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# Reads group ids until its input ends, which is when we die, however we die. After a good end it
# is killed before that. What left its group is found by our mark, where there is a /proc.
_WATCH = """
token=$1 groups= wanted=" "
cd /
while read -r group; do
  case $group in
    wanted*) wanted="$wanted${group#wanted } " ;;
    *) groups="$groups $group" ;;
  esac
done
end() {
  for group in $groups; do
    case $wanted in *" $group "*) continue ;; esac
    kill -s "$1" -- "-$group"
  done
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
_killed: list[int] | None = None


class Watchdog:
    """A small shell that ends the groups it was told of when this process dies.

    It is there before the first command is, and goes by our mark until it is told of the groups
    (where there is no /proc, that little while is not covered).
    It has a session of its own, so it outlives a SIGKILL to our group. If a fork of this program
    also holds the pipe, it is only late: it acts when the last holder is gone.
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
        except (OSError, ValueError):  # too many files or processes: then without one
            pass
        finally:
            for end in ends:
                if end != self.pipe:
                    light.close(end)

    def watch(self, groups: Iterable[int]) -> None:
        """Tell it of the groups that were started."""
        self._tell(" ".join(map(str, groups)))

    def leave(self, group: int) -> None:
        """Tell it that what is left of a group is wanted."""
        self._tell(f"wanted {group}")

    def _tell(self, line: str) -> None:
        if self.pid:
            try:  # noqa: SIM105  # contextlib is not free
                light.write(self.pipe, b"%s\n" % line.encode())
            except OSError:  # somebody killed it, or it is stopped
                pass

    def end(self) -> None:
        """Send it away, before it sees that it is not needed; whoever does so then reaps it."""
        if self.pid:
            send(self.pid, 9)
            light.close(self.pipe)

    def stop(self) -> None:
        """Send it away, and wait until it is gone."""
        self.end()
        reap(self.pid)
        self.pid = 0


def send(target: int, number: int) -> None:
    """Signal a process, or a group when negative; one that is gone or not ours is fine."""
    try:  # noqa: SIM105  # as above
        light.kill(target, number)
    except (ProcessLookupError, PermissionError):
        pass


def reap(pid: int) -> bool:
    """Collect a child that was killed, unless the system cannot end it now."""
    import time

    for attempt in range(200):
        try:
            if light.waitpid(pid, light.WNOHANG)[0]:
                return True
        except ChildProcessError:  # collected by somebody else, or by the system
            return True
        time.sleep(0.0001 if attempt < 20 else 0.005)  # noqa: PLR2004  # 2 ms, then 900 ms
    return False


def reap_later() -> None:
    """Say that this process will end soon, and reaps before that whom it need not wait for now."""
    global _killed  # noqa: PLW0603  # it is a property of the process
    _killed = []


def reap_in_time(pid: int) -> None:
    """Collect a child that was killed: now, or later if this process does so."""
    if _killed is None:
        reap(pid)
    else:
        _killed.append(pid)


def reap_killed() -> None:
    """Collect whom that was put off for."""
    while _killed:
        reap(_killed.pop())


def living(groups: set[int]) -> set[int]:
    """Return which of these groups, whose leaders have exited, still have a running process."""
    left = set()
    try:
        pids = pids_after(min(groups))
    except (OSError, ValueError, IndexError):  # no /proc
        return {group for group in groups if _answers(-group)}
    for pid in pids:
        if pid in groups:
            continue
        group = group_of(pid)
        if group in groups and group not in left and not is_zombie(pid):
            left.add(group)
    return left


def _answers(target: int) -> bool:
    try:
        light.kill(target, 0)
    except OSError:  # macOS says EPERM where only the exited leader is left
        return False
    return True
