"""Ending what a dead process of ours left behind: a program that we did not start, and its group.

A number alone names nobody: it may have been given to another program since. A group is still the
one we mean while its leader started when ours did, or while a member carries the mark that ours
was started with. As long as a group has a member, the system gives its number to nobody else.
"""

from __future__ import annotations

import asyncio
import os
import signal

from notyet.checks.groups import is_zombie, send, status
from notyet.checks.spawn import MARK

_LOOK_AGAIN = 0.02
_STARTED = 19  # the field that tells when a process started
# Politely, then less so, then by force; with the seconds that each is given.
STEPS = ((signal.SIGINT, 1.5), (signal.SIGTERM, 1.5), (signal.SIGKILL, 1.0))


def start_of(pid: int) -> str:
    """Return when a process started, in the system's own words; empty where it does not say."""
    return b"".join(status(pid)[_STARTED : _STARTED + 1]).decode("ascii", "replace")


async def end_orphan(pid: int, started: str, mark: str = "") -> bool:
    """End a group whose leader had this number; True when it was there, and nobody is left."""
    if pid <= 1 or not started:
        return False
    group = _Group(pid, started, mark)
    if not group.lives():
        return False
    loop = asyncio.get_running_loop()
    for number, patience in STEPS:
        group.send(number)
        ends = loop.time() + patience
        while group.lives():
            if loop.time() > ends:
                break
            if number == signal.SIGKILL:  # also for what was started a moment ago
                group.send(number)
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            return True
    return False


class _Group:
    """A process group, for as long as it is the one that was meant."""

    def __init__(self, pid: int, started: str, mark: str) -> None:
        self._pid, self._mark = pid, mark
        self._known = {(pid, started)}  # who was seen in it

    def lives(self) -> bool:
        """Tell whether anybody is left in it."""
        members = {(pid, start_of(pid)) for pid in _members(self._pid)}
        if not members:
            return False
        leader = (self._pid, start_of(self._pid))  # which may wait to be collected
        is_it = bool(self._known & (members | {leader}))
        if not is_it and not any(_carries(pid, self._mark) for pid, _ in members):
            return False
        self._known |= members
        return True

    def send(self, number: int) -> None:
        """Signal all of it."""
        send(-self._pid, number)
        send(-self._pid, signal.SIGCONT)


def _members(group: int) -> list[int]:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
    return [pid for pid in pids if _group_of(pid) == group and not is_zombie(pid)]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _carries(pid: int, mark: str) -> bool:
    """Tell whether a process was started with this mark, or by one that was."""
    if not mark:
        return False
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read().split(b"\0")
    except OSError:
        return False
    name = f"{MARK}=".encode()
    marks = [entry[len(name) :].split() for entry in environ if entry.startswith(name)]
    return any(mark.encode("utf-8", "replace") in found for found in marks)
