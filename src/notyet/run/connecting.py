"""Putting a connection before the commands that need one.

sshd takes ten sessions at a time over one connection, so that many commands share several. Others
use the same ones: who finds no room goes to the next, and in the end has one for itself.
"""

from __future__ import annotations

import os
from time import monotonic

from notyet.core.record import variant
from notyet.run import ssh as unreachable
from notyet.run import sweep as orphans
from notyet.run.linked import LinkedJob, RemoteJob
from notyet.run.ssh import (
    KEPT,
    LOG,
    control_folder,
    forget,
    holder,
    listens,
    master_argv,
    publish,
    socket_name,
    tidy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.run.linked import LinkedProcess
    from notyet.run.spawn import Job

_SESSIONS = 8  # over one connection at a time
_PATIENCE = 20.0  # seconds, for a machine to answer at all
_AT_MOST = 60.0  # and to let us in
_SHARE = 0.5  # of the time that is left; who cannot connect shall be able to say so
_SHARED = 3  # connections that one shares with others, one after the other
_TRIES = 6  # and all that are tried
_KEPT_ALONE = 20  # seconds
# sshd drops some when many connect in the same moment (MaxStartups), without a word.
_DROPPED = "_exchange_identification: "
_INSIST = 6.0  # seconds; it may as well be something else
_PAUSE = 0.1  # at least, and at most six times that
_NO_FOLDER = (
    "there is no private folder for a connection; let XDG_RUNTIME_DIR or HOME be a folder with a "
    "short path that only this user can write to"
)


class Connections:
    """The connections of one stage: those that were found, and those that are made for it.

    `deadline` is a time of `time.monotonic` after which nobody wants to know any more.
    """

    def __init__(self, deadline: float) -> None:
        self._folder = control_folder(os.environ)
        self._deadline = deadline
        # The last one that was taken to, and how many were, by machine and number.
        self._others: dict[tuple[str, int], tuple[RemoteJob, int]] = {}

    def before(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the commands with those elsewhere put behind a connection, which may be there."""
        groups: dict[str, list[RemoteJob]] = {}
        for job in jobs:
            if isinstance(job, RemoteJob) and not job.refused:
                groups.setdefault(job.machine, []).append(job)
        shared: dict[int, RemoteJob] = {}
        left = self._left()
        for group in groups.values():
            for number in range(0, len(group), _SESSIONS):
                some = group[number : number + _SESSIONS]
                patient = [
                    variant(job, {"patience": min(job.timeout or _PATIENCE, _PATIENCE, left)})
                    for job in some
                ]
                linked = self._linked(patient, number // _SESSIONS)
                shared |= zip(map(id, some), linked, strict=True)
        return [shared.get(id(job), job) for job in jobs]

    def another(self, process: LinkedProcess) -> RemoteJob:
        """Return the command over another connection than the one over which it was refused."""
        job: RemoteJob = process.job  # type: ignore[assignment]  # only they can be
        process.moves += 1
        if process.moves > _TRIES:
            return _refused(job, f"{job.remote.host} refuses to run one more command")
        if process.moves > _SHARED:
            return self._made([job], job.number, _KEPT_ALONE)[0]
        if not process.is_full:  # it is of no use to anybody
            forget(job.socket)
        number = job.number + process.is_full
        like, count = self._others.get((job.machine, number), (job, _SESSIONS))
        if like.socket == job.socket or count >= _SESSIONS:
            like, count = self._linked([job], number)[0], 0
        self._others[job.machine, number] = (like, count + 1)
        same = ("socket", "number", "after", "reach", "refused")
        return variant(job, {name: getattr(like, name) for name in same})

    def _left(self) -> float:
        return max(0.0, self._deadline - monotonic()) * _SHARE

    def _linked(self, jobs: list[RemoteJob], number: int) -> list[RemoteJob]:
        """Put one connection before these, unless it is known that there is none to be had."""
        if not self._folder:
            return [_refused(job, _NO_FOLDER) for job in jobs]
        name = os.path.join(self._folder, socket_name(jobs[0].remote, number, os.environ))
        if listens(name):
            found = {"socket": name, "number": number, "after": None}
            return [variant(job, found) for job in jobs]
        forget(name)
        return self._made(jobs, number, KEPT)

    def _made(self, jobs: list[RemoteJob], number: int, kept: int) -> list[RemoteJob]:
        reach = socket_name(jobs[0].remote, 0, os.environ)
        problem = unreachable.why_not(reach, max(job.patience for job in jobs))
        if problem:
            return [_refused(job, problem) for job in jobs]
        tidy(self._folder)
        name = os.path.join(self._folder, socket_name(jobs[0].remote, number, os.environ))
        own = f"{name}.{os.urandom(4).hex()}"
        first = _connection(jobs, name, own, left=self._left(), kept=kept)
        made = {"reach": reach, "socket": own, "number": number, "after": first}
        return [variant(job, made) for job in jobs]


def _refused(job: RemoteJob, problem: str) -> RemoteJob:
    return variant(job, {"refused": problem, "after": None})


def _connection(
    jobs: Sequence[RemoteJob], name: str, socket: str, *, left: float, kept: int
) -> LinkedJob:
    """Return what connects; how long it may take is up to those that wait for it."""
    longest = max(job.timeout or _AT_MOST for job in jobs)
    argv = master_argv(
        jobs[0].remote,
        socket=socket,
        log=socket + LOG,
        patience=max(job.patience for job in jobs),
        kept=kept,
        environ=os.environ,
    )

    def leave(process: LinkedProcess) -> None:
        if kept == KEPT:
            publish(socket, name)
        if orphans.adopts():
            orphans.spare(holder(socket), process.pid)

    def again(process: LinkedProcess) -> float | None:
        pause = _PAUSE * (1 + 5 * os.urandom(1)[0] / 255)
        ends = process.started + min(_INSIST, process.job.timeout or _INSIST)
        if monotonic() + pause >= ends or not _was_dropped(socket + LOG):
            return None
        forget(socket + LOG)
        return pause

    return LinkedJob(
        argv=argv,
        dir="/",  # where it stays, and is in nobody's way
        environ=dict(os.environ),
        timeout=min(longest, _AT_MOST, left),
        leaves=leave,
        again=again,
    )


def _was_dropped(log: str) -> bool:
    """Tell whether the other side hung up before anything was said."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            return _DROPPED in file.read()
    except OSError:
        return False
