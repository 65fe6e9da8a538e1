"""Processes as the system lists them: /proc is parsed here and nowhere else.

A process id alone does not identify a process: a dead one may still be a zombie, and its id may
belong to another program by now. The start time tells them apart.

Without /proc, as on macOS, `ps` gives the parent and the program of a process; the rest is unknown.
"""

from __future__ import annotations

import time

from notyet import light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STATE, _PARENT, _STARTED = 0, 1, 19  # fields of /proc/PID/stat, counted after the program's name
_DEAD = frozenset({b"Z", b"X", b"x"})
_LONGEST = 65_536  # bytes; /proc/PID/stat has some 300
_LONGEST_START = 5.0  # seconds; a larger age of a new process is a wrong clock
_TICKS = 0.01  # seconds; start times are rounded down to a multiple of this
_MANY = 1000  # to look at so many process ids one by one is quicker than to list them all
_MOST_ANCESTORS = 64

_own_start: dict[int, str] = {}  # by process id, since a child is another process
_own_machine: dict[int, str] = {}


def read(path: str) -> bytes:
    """Return a small file of /proc. Raises OSError."""
    fd = light.open(path, light.O_RDONLY | light.O_CLOEXEC)  # fewer system calls than `open`
    try:
        return light.read(fd, _LONGEST)
    finally:
        light.close(fd)


# State and start time


def start_time(pid: int) -> str:
    """Return when a process started, in the system's ticks; empty if unknown."""
    return b"".join(_stat(pid)[_STARTED : _STARTED + 1]).decode("ascii", "replace")


def own_start() -> str:
    """Return when this process started, in the system's ticks; empty if unknown."""
    pid = light.getpid()
    if pid not in _own_start:
        _own_start.clear()
        _own_start[pid] = start_time(pid)
    return _own_start[pid]


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


def birth(pid: int) -> float | None:
    """Return when a process started, by the clock and never too early; None if unknown."""
    started = start_time(pid)
    if not started.isdecimal():
        return None
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(started) / light.sysconf("SC_CLK_TCK")
    return time.time() - age + _TICKS


def is_gone(pid: int, started: str) -> bool:
    """Return True if the process that started then has ended."""
    try:
        light.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass  # alive, of another user
    fields = _stat(pid)
    if len(fields) <= _STARTED:
        return False
    now = fields[_STARTED].decode("ascii", "replace")
    return fields[_STATE] in _DEAD or bool(started and started != now)


def is_zombie(pid: int) -> bool:
    """Return True if a process has exited; also if /proc does not list it."""
    fields = _stat(pid)
    return not fields or fields[_STATE] in _DEAD


def is_stopped(pid: int) -> bool:
    """Return True if a signal suspended a process."""
    return _stat(pid)[:1] == [b"T"]


def own_machine() -> str:
    """Return an id of this machine and of this process-id namespace: a container has its own.

    Process ids mean something only where this id is the same.
    """
    pid = light.getpid()
    if pid not in _own_machine:
        machine = _id_in("/etc/machine-id") or f"{light.uname().nodename} {own_boot()}"
        try:
            space = light.readlink("/proc/self/ns/pid")  # the same on every bare Linux machine
        except OSError:
            space = ""
        _own_machine.clear()
        _own_machine[pid] = f"{machine} {space}"
    return _own_machine[pid]


def own_boot() -> str:
    """Return the id of this boot; empty if unknown."""
    return _id_in("/proc/sys/kernel/random/boot_id")


def _id_in(path: str) -> str:
    try:
        return read(path).decode("ascii").strip()
    except (OSError, ValueError):
        return ""


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on; empty if it is gone."""
    try:
        # The program's name, in brackets, may hold anything.
        return read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


# Lists of processes


def all_pids() -> list[int]:
    """Return the ids of all processes. Raises OSError without /proc."""
    return [int(name) for name in light.listdir("/proc") if name.isdecimal()]


def pids_after(oldest: int) -> Iterable[int]:
    """Return the ids of processes that may have started after this one.

    Raises OSError, ValueError or IndexError without /proc.
    """
    last = int(read("/proc/loadavg").split()[-1])  # the id that was given away last
    if oldest <= last < oldest + _MANY:
        return range(oldest + 1, last + 1)
    return all_pids()


def group_of(pid: int) -> int:
    """Return the process group of a process; 0 if it is gone."""
    try:
        return light.getpgid(pid)
    except OSError:
        return 0


def group_members(group: int) -> list[int]:
    """Return the processes of a group that have not exited; empty without /proc."""
    try:
        pids = all_pids()
    except OSError:
        return []
    return [pid for pid in pids if group_of(pid) == group and not is_zombie(pid)]


def children() -> list[int]:
    """Return the children of this process."""
    try:
        threads = light.listdir("/proc/self/task")
        found = [read(f"/proc/self/task/{thread}/children").split() for thread in threads]
        return [int(pid) for pids in found for pid in pids]
    except OSError:  # a kernel without these lists
        own = str(light.getpid()).encode()
        return [pid for pid in all_pids() if _stat(pid)[_PARENT : _PARENT + 1] == [own]]


# What a process was started with


def variable(pid: int, name: str) -> bytes | None:
    """Return a variable of a process, empty if not set; None if its environment is unknown."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
    except OSError:
        return None
    _, _, value = (b"\0" + environ).partition(b"\0" + name.encode() + b"=")
    return value.partition(b"\0")[0] if environ else None


def command_line(pid: int) -> str:
    """Return the words of a command line, each with a NUL behind it. Raises OSError."""
    return light.fsdecode(read(f"/proc/{pid}/cmdline"))


# Ancestors


def ancestors(pid: int) -> Iterator[int]:
    """Yield the parent of a process, its parent, and so on; without the system's first process."""
    for _ in range(_MOST_ANCESTORS):
        pid = parent(pid)
        if pid <= 1:
            return
        yield pid


def parent(pid: int) -> int:
    """Return the parent of a process; 0 if unknown."""
    fields = _stat(pid)
    if len(fields) > _PARENT:
        return int(fields[_PARENT])
    found = _ps(pid, "ppid")
    return int(found) if found.isdecimal() else 0


def program_names(pid: int) -> list[str]:
    """Return the names of a process's program: its first word, and the second for scripts."""
    try:
        words = command_line(pid).split("\0")[:2]
    except OSError:
        words = _ps(pid, "command").split()[:2]
    return [light.basename(word) for word in words]


def _ps(pid: int, column: str) -> str:
    import subprocess

    argv = ["ps", "-o", f"{column}=", "-p", str(pid)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603  # ps, with a number
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
