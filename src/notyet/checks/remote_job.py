"""`RemoteJob`: a command that our client of ssh runs on another machine."""

from __future__ import annotations

from notyet.checks.spawn import Job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.remote import Remote


class RemoteJob(Job, kw_only=True):
    """One command to run elsewhere; what a Job has is about the client."""

    remote: Remote
    token: str
    program: str
    folder: str
    command: str  # for the login shell there
    log: str = ""  # where ssh writes what it has to say
    socket: str = ""  # of the connection that it shares
