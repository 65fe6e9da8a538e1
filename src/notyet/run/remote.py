"""How a command elsewhere ended: what its script said, or why we did not hear of it.

What ssh itself exits with is never a command's answer (M3).
"""

from __future__ import annotations

import errno
import os

from notyet.core.record import variant
from notyet.run import ssh as unreachable
from notyet.run.linked import RemoteJob
from notyet.run.output import HEAD, Framed
from notyet.run.spawn import why
from notyet.run.ssh import LOG, forget
from notyet.run.ssh_script import Upload, conversation, upload_path
from notyet.run.stage import run_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.gate import Exit
    from notyet.core.remote import Remote
    from notyet.run.linked import LinkedProcess

__all__ = ["Upload", "new_token", "remote_job", "run_there", "upload_path"]

_SIGNALLED = 128  # a shell adds it to the number of a signal
_MOST_SIGNALS = 64
_OTHER_SHELLS = 256  # as ksh does, which adds this
_DIGITS = 3
_NO_SIGNAL = ("running", "done", "exit", "stopped")
_NOT_UNDERSTOOD = "what was said about its end was not understood"
_MOST_LOG = 16 * 1024
_LONGEST = 300  # characters of what somebody else said


def told(process: LinkedProcess) -> Exit:
    """Return how the command there ended."""
    job: RemoteJob = process.job  # type: ignore[assignment]  # only theirs say so
    stdout = process.wrote[0]
    assert isinstance(stdout, Framed)
    known: dict[str, object] = {"code": None, "signal": 0, "problem": process.problem}
    said = _said(job)
    was_ended = process.timed_out or process.cancelled  # by us
    known["lost"] = stdout.has_begun and not stdout.is_complete and not was_ended
    if stdout.is_complete and not was_ended:
        known |= ending(job, stdout.told or b"")
    elif process.before is not None and not process.is_started and not process.cancelled:
        lost = _no_connection(job.remote, said, process)
        known["problem"] = lost
        unreachable.note(job.reach, lost, patience=job.patience, seconds=process.seconds)
    elif not process.problem and not process.cancelled and not stdout.is_complete:
        known["problem"] = _broken(job.remote, said, process, stdout)
    process.problem = str(known["problem"])  # what ssh said is read once
    known["advice"] = _advice(job.remote, process.problem)
    return variant(process.own_exit(), known)


def ending(job: RemoteJob, words: bytes) -> dict[str, object]:
    """Read the word that the script there said at the end."""
    first, _, jobs = words.decode("ascii", "replace").partition("\n")
    word, _, pid = first.partition(" ")
    if not word.isdecimal():
        return {"problem": f"on {job.remote.host}: {_cannot_start(job, word)}"}
    code = int(word) if len(word) <= _DIGITS else _OTHER_SHELLS
    if code > _OTHER_SHELLS and code - _OTHER_SHELLS <= _MOST_SIGNALS:
        return {"signal": code - _OTHER_SHELLS}
    if code >= _OTHER_SHELLS:
        return {"problem": f"on {job.remote.host}: {_NOT_UNDERSTOOD}"}
    if 0 < code - _SIGNALLED <= _MOST_SIGNALS and _is_signal(pid, jobs):
        return {"signal": code - _SIGNALLED}
    return {"code": code}


def _is_signal(pid: str, jobs: str) -> bool:
    """Tell whether the shell there knows that it was a signal, and not an exit code like that.

    It is a code unless a shell says otherwise: a command that failed must not be let go (M1).
    """
    of_job = ""  # what is said once for all processes of a pipeline
    for line in jobs.splitlines():
        is_first = line.startswith("[")
        _, _, rest = line.partition("]") if is_first else ("", "", line)
        number, _, state = rest.strip(" +-").partition(" ")
        of_job = state.strip(" |") if is_first else of_job
        if pid and number == pid:
            said = (state.strip(" |") or of_job).lower()
            return bool(said) and not said.startswith(_NO_SIGNAL)
    return False


def _cannot_start(job: RemoteJob, word: str) -> str:
    """Say why, in the words that are used here too."""
    folder, program = f"the folder to run in, {job.folder!r},", f"the program {job.program!r}"
    words = {
        "gone-folder": f"{folder} does not exist",
        "file-folder": f"{folder} is not a folder",
        "closed-folder": f"{folder} may not be entered",
        "barred-folder": f"{folder} cannot be reached: Permission denied",
        "no-program": f"{program} was not found on the PATH",
        "gone-program": f"{program} does not exist",
        "barred-program": f"{program} cannot be reached: Permission denied",
        "folder-program": f"{job.program!r} is a folder, not a program",
        "closed-program": f"{job.program!r} is not executable; chmod +x makes it so",
        "long": why(OSError(errno.E2BIG, ""), (job.program,)),
        "room": "what it is given cannot be written to /tmp: there is no room, or no right to",
        "short": "what it is given did not arrive: the connection was lost",
    }
    return words.get(word, _NOT_UNDERSTOOD)


def _said(job: RemoteJob) -> str:
    """Return what ssh has to say."""
    if not job.socket:  # there was no connection to be had
        return ""
    try:
        with open(job.socket + LOG, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST_LOG))  # the last is wanted
            return file.read(_MOST_LOG).decode("utf-8", "replace")
    except OSError:
        return ""


def _no_connection(remote: Remote, said: str, process: LinkedProcess) -> str:
    first = process.before
    assert first is not None
    if first.problem:
        return f"there is no connection to {remote.host}: {first.problem}"
    if process.timed_out or first.timed_out:
        return f"there was no connection to {remote.host} within {process.seconds:.1f} s"
    return _words(remote, said)


def _broken(remote: Remote, said: str, process: LinkedProcess, stdout: Framed) -> str:
    if process.timed_out:
        if stdout.has_begun:
            return ""
        forget(process.job.socket)  # type: ignore[attr-defined]  # as above; it may be dead
        return (
            f"{remote.host} did not begin to run it within {process.seconds:.1f} s; "
            "it may be stuck, or a file that its login shell reads waits for input"
        )
    if stdout.has_begun:
        why = f": {_last(said)}" if _last(said) else ""
        return f"the connection to {remote.host} was lost while it ran{why}"
    heard = b"\n".join(stream.preamble for stream in process.wrote if isinstance(stream, Framed))
    return _words(remote, said or heard.decode("utf-8", "replace"))


def _words(remote: Remote, said: str) -> str:
    """Say why a machine could not be used."""
    host = remote.host
    if "IDENTIFICATION HAS CHANGED" in said:
        return f"the host key of {host} is not the one that is known"
    if "Host key verification failed" in said or "host key is known" in said:
        return f"the host key of {host} is not known here"
    last = _last(said) or "ssh did not say why"
    if "Permission denied" in said or "Too many authentication failures" in said:
        return f"{host} let nobody in: {last}"
    if "Could not resolve" in said:
        return f"{host} is not known: {last}"
    return f"there is no connection to {host}: {last}"


def _advice(remote: Remote, problem: str) -> str:
    """Say what a person can do where nobody could connect.

    It is no part of the problem: an agent that reads it would get past an unknown host key.
    """
    host, port = remote.host, f" -p {remote.port}" if remote.port else ""
    line = f"ssh{port} {remote.destination}"
    known = {
        f"the host key of {host} is not the one": "if it was changed on purpose, remove the old "
        f"one with `ssh-keygen -R`, and connect once with: {line}",
        f"the host key of {host} is not known": f"connect once with: {line}",
        f"{host} let nobody in": f"a key or an agent is needed, as for: {line}",
        f"{host} is not known": f"try: {line}",
        f"there is no connection to {host}": f"try: {line}",
        f"there was no connection to {host}": f"try: {line}",
    }
    return next((then for said, then in known.items() if problem.startswith(said)), "")


def _last(said: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if ": terminating, " not in line] or lines
    return lines[-1][:_LONGEST].rstrip(".") if lines else ""


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
