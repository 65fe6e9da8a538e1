"""Running commands on other machines, over OpenSSH: like here, in `run_together` and the like."""

from __future__ import annotations

import os

from notyet.checks.command import run_together
from notyet.checks.kept import HEAD
from notyet.checks.remote_exit import told
from notyet.checks.remote_job import RemoteJob
from notyet.checks.remote_script import Upload, conversation, upload_path
from notyet.checks.spawn import why

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.command import Exit
    from notyet.core.remote import Remote

__all__ = ["Upload", "new_token", "remote_job", "run_there", "upload_path"]


def new_token() -> str:
    """Return what tells one command from all others; nobody can guess it."""
    return os.urandom(12).hex()


def remote_job(
    remote: Remote,
    *,
    argv: tuple[str, ...],
    dir: str,  # noqa: A002  # as in a Job
    environ: Mapping[str, str],
    stdin: bytes = b"",
    timeout: float | None = None,
    token: str = "",
    uploads: Sequence[Upload] = (),
    head: int = HEAD,
) -> RemoteJob:
    """Return a command that runs in a folder of that machine, with these variables on top of its.

    Its time includes the connecting. Uploads lie at `upload_path(token, name)` while it runs.
    """
    token, secret = token or new_token(), new_token()
    refused = command = ""
    script, parts = b"", tuple[bytes, ...]()
    try:
        command, script, parts = conversation(
            token,
            secret,
            argv=argv,
            folder=dir,
            environ=environ,
            stdin=stdin,
            uploads=uploads,
            timeout=timeout,
        )
    except ValueError as error:
        refused = why(error, argv)
    return RemoteJob(
        # No process of ours runs it (see `Session`), and nothing of our environment goes there.
        argv=("ssh",),
        dir="/",
        environ={},
        stdin=script,
        parts=parts,
        timeout=timeout,
        head=head,
        machine=remote.machine,
        refused=refused,
        lifeline=True,
        framed=secret.encode(),
        told=told,
        remote=remote,
        token=token,
        program=argv[0] if argv else "",
        folder=dir,
        command=command,
    )


def run_there(
    remote: Remote,
    argv: tuple[str, ...],
    *,
    stdin: bytes = b"",
    patience: float,
    head: int = HEAD,
) -> Exit:
    """Run one command of our own on that machine, from the root folder on."""
    job = remote_job(
        remote, argv=argv, dir="/", environ={}, stdin=stdin, timeout=patience, head=head
    )
    return run_together([job])[0]
