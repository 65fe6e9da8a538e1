"""Jobs that run in a workspace on another machine, and their input.

A command there sees only paths of that machine: the event's folder is the workspace, and
transcripts are copies that are uploaded and removed afterwards (M1, M5). It gets none of our
environment variables, which may hold secrets.
"""

from __future__ import annotations

import os
import stat

from notyet.core.record import Record, variant
from notyet.light import dumps
from notyet.run.command_runner import run_together
from notyet.run.gate_command import INSIDE, valid_variables
from notyet.run.python_gate import archive, argv_there
from notyet.run.spawn import HEAD, Job, shell_argv, start_failure
from notyet.run.ssh_script import Upload, conversation, upload_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeVar

    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Command, Exit
    from notyet.core.remote import Remote

    E = TypeVar("E", StartEvent, StopEvent)
    # Returns stdin and environment for an event as seen there, and the project's folder there.
    Write = Callable[[E, str], tuple[Mapping[str, Any], Mapping[str, str]]]

MOST_COPIED = 16 * 1024 * 1024  # bytes of the end of one transcript
_COPIES = {
    "transcript_path": "transcript.jsonl",
    "agent_transcript_path": "agent_transcript.jsonl",
}
_ARCHIVE = "notyet.zip"


class RemoteJob(Job, kw_only=True):
    """One command to run on another machine; `environ` is added to that machine's environment."""

    remote: Remote
    token: str  # names the folder of its uploads
    uploads: tuple[Upload, ...] = ()


def new_token() -> str:
    """Return a random word that cannot be guessed."""
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
    """Return a command that runs in a folder of that machine.

    `environ` is added to the environment there. The timeout includes connecting. Uploads are at
    `upload_path(token, name)` while it runs.
    """
    job = RemoteJob(
        argv=argv,
        dir=dir,
        environ=environ,
        stdin=stdin,
        timeout=timeout,
        head=head,
        remote=remote,
        token=token or new_token(),
        uploads=tuple(uploads),
    )
    try:
        conversation("", [job], None)
    except ValueError as error:
        return variant(job, {"refused": start_failure(error, argv)})
    return job


def run_there(remote: Remote, argv: tuple[str, ...], *, patience: float, head: int = HEAD) -> Exit:
    """Run one command of ours on that machine, in its root folder."""
    job = remote_job(remote, argv=argv, dir="/", environ={}, timeout=patience, head=head)
    return run_together([job])[0]


class Transcripts(Record, kw_only=True):
    """The transcripts of a stop, read once for all gates on other machines."""

    contents: Mapping[str, bytes] = {}  # by the field of the event that names them
    warning: str = ""
    token: str = ""  # names the folder for the copies; one for the commands that run together

    def in_new_folder(self) -> Transcripts:
        """Return the same for commands that run later: their folder may still be in use."""
        return variant(self, {"token": new_token()})


def read_transcripts(event: StopEvent | StartEvent) -> Transcripts:
    """Read the transcripts that an event names; omit those that cannot be read."""
    contents = {}
    cut = []
    for field in _COPIES:
        path: str | None = getattr(event, field, None)
        found = _read(path) if path else None
        if found is not None:
            contents[field], left_out = found
            if left_out:
                cut.append(f"{field} without its first {left_out} bytes")
    warning = f"it was given a shortened copy: {', '.join(cut)}" if cut else ""
    return Transcripts(contents=contents, warning=warning, token=new_token())


def job_there(
    command: Command,
    remote: Remote,
    event: E,
    write: Write[E],
    *,
    transcripts: Transcripts,
    timeout: float | None,
) -> RemoteJob:
    """Return the job of a command in a workspace on another machine."""
    token = transcripts.token or new_token()
    uploads = [
        Upload(name=_COPIES[field], content=content)
        for field, content in transcripts.contents.items()
    ]
    payload, environ = write(_seen_there(event, remote, token, transcripts), remote.path)
    argv = shell_argv(command.script, command.shell) if command.script else command.argv
    if "python" in command.options:
        uploads.append(Upload(name=_ARCHIVE, content=archive()))
        argv = argv_there(command.options, remote.path, upload_path(token, _ARCHIVE))
    return remote_job(
        remote,
        argv=argv,
        dir=os.path.join(remote.path, command.dir) if command.dir else remote.path,
        environ=valid_variables(environ) | valid_variables(dict(command.env)) | {INSIDE: "1"},
        stdin=dumps(payload).encode(),
        timeout=timeout,
        token=token,
        uploads=uploads,
    )


def _seen_there(event: E, remote: Remote, token: str, transcripts: Transcripts) -> E:
    changes: dict[str, Any] = {"cwd": remote.path}
    for field, name in _COPIES.items():
        if hasattr(event, field):
            is_sent = field in transcripts.contents
            changes[field] = upload_path(token, name) if is_sent else None
    return variant(event, changes)


def _read(path: str) -> tuple[bytes, int] | None:
    """Return the end of a file, from the beginning of a line, and the bytes that are missing."""
    try:
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        fd = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                return None
            first = max(0, found.st_size - MOST_COPIED)
            # One byte more, so that a line that begins just there is kept.
            file.seek(max(0, first - 1))
            content = file.read(found.st_size - file.tell())
    except (OSError, ValueError):  # ValueError: a NUL or a lone surrogate in the path
        return None
    if not first:
        return content, 0
    content = content.partition(b"\n")[2]
    return content, found.st_size - len(content)
