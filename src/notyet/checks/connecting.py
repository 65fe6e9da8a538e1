"""Putting a connection before the commands that need one.

sshd takes ten sessions at a time over one connection, so that many commands share several.
"""

from __future__ import annotations

import os

from notyet.checks import orphans
from notyet.checks.remote_job import RemoteJob
from notyet.checks.sharing import LOG, forget, holder, listens, publish, tidy
from notyet.checks.spawn import Job
from notyet.checks.ssh import client_argv, control_folder, master_argv, socket_name
from notyet.core.record import variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.checks.process import Process

_SESSIONS = 8  # over one connection at a time
_PATIENCE = 20.0  # seconds, for a machine to answer at all
_AT_MOST = 60.0  # and to let us in


def connected(jobs: Sequence[Job]) -> list[Job]:
    """Return the commands with those elsewhere put behind a connection, which may be there."""
    folder = control_folder(os.environ)
    groups: dict[str, list[RemoteJob]] = {}
    for job in jobs:
        if isinstance(job, RemoteJob) and not job.refused:
            groups.setdefault(job.machine, []).append(job)
    shared = {}
    for group in groups.values():
        for number in range(0, len(group), _SESSIONS):
            some = group[number : number + _SESSIONS]
            for job, linked in zip(some, _linked(folder, some, number // _SESSIONS), strict=True):
                shared[id(job)] = linked
    return [shared.get(id(job), job) for job in jobs]


def _linked(folder: str, jobs: Sequence[RemoteJob], number: int) -> list[RemoteJob]:
    """Put one connection before these."""
    if not folder:
        return [_over(job, "", "", None) for job in jobs]
    name = os.path.join(folder, socket_name(jobs[0].remote, number, os.environ))
    if listens(name):
        return [_over(job, folder, name, None) for job in jobs]
    forget(name)
    tidy(folder)
    own = f"{name}.{os.urandom(4).hex()}"
    first = _connection(jobs, name, own)
    return [_over(job, folder, own, first) for job in jobs]


def _over(job: RemoteJob, folder: str, socket: str, first: Job | None) -> RemoteJob:
    log = os.path.join(folder, f"{job.token}.{os.urandom(4).hex()}{LOG}") if folder else ""
    options = client_argv(
        job.remote,
        socket=socket,
        log=log,
        patience=min(job.timeout or _PATIENCE, _PATIENCE),
        environ=os.environ,
    )
    argv = (*options, job.command)
    return variant(job, {"argv": argv, "log": log, "socket": socket, "after": first})


def _connection(jobs: Sequence[RemoteJob], name: str, socket: str) -> Job:
    """Return what connects; how long it may take is up to those that wait for it."""
    longest = max(job.timeout or _AT_MOST for job in jobs)
    argv = master_argv(
        jobs[0].remote,
        socket=socket,
        log=socket + LOG,
        patience=min(longest, _PATIENCE),
        environ=os.environ,
    )

    def leave(process: Process) -> None:
        publish(socket, name)
        if orphans.adopts():
            orphans.spare(holder(socket), process.pid)

    return Job(
        argv=argv,
        dir="/",  # where it stays, and is in nobody's way
        environ=dict(os.environ),
        timeout=min(longest, _AT_MOST),
        leaves=leave,
    )
