"""`RemoteJob`: a command that runs on another machine, over a connection of ssh."""

from __future__ import annotations

from notyet.checks.linked import LinkedJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.remote import Remote


class RemoteJob(LinkedJob, kw_only=True):
    """One command to run elsewhere."""

    remote: Remote
    token: str  # what it and its children carry there; not the secret that frames its output
    program: str
    folder: str
    command: str  # for the login shell there
    socket: str = ""  # of the connection that it shares; ssh writes into the log beside it
    number: int = 0  # of that connection, among those to the same machine
    patience: float = 0.0  # seconds that connecting may take
    reach: str = ""  # the machine as it is connected to now, by another name
