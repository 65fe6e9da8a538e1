"""How a command elsewhere ended: what its script said, or why we did not hear of it.

What ssh itself exits with is never a command's answer (M3).
"""

from __future__ import annotations

from notyet.checks.kept import Framed
from notyet.checks.sharing import LOG, forget
from notyet.core.record import variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.checks.process import Process
    from notyet.checks.remote_job import RemoteJob
    from notyet.core.command import Exit
    from notyet.core.remote import Remote

_SIGNALLED = 128  # a shell adds it to the number of a signal
_MOST_SIGNALS = 64
_OTHER_SHELLS = 256  # as ksh does
_MOST_LOG = 16 * 1024
_LONGEST = 300  # characters of what somebody else said


def told(process: Process) -> Exit:
    """Return how the command there ended."""
    job: RemoteJob = process.job  # type: ignore[assignment]  # only theirs say so
    stdout = process.wrote[0]
    assert isinstance(stdout, Framed)
    known: dict[str, object] = {"code": None, "signal": 0, "problem": process.problem}
    said = _said(job)
    if stdout.is_complete and not process.timed_out and not process.cancelled:
        known |= _ending(job, stdout.told or b"")
    elif process.before is not None and not process.is_started and not process.cancelled:
        known["problem"] = _no_connection(job.remote, said, process)
    elif not process.problem and not process.cancelled and not stdout.is_complete:
        known["problem"] = _broken(job.remote, said, process, stdout)
    process.problem = str(known["problem"])  # what ssh said is read once
    return variant(process.own_exit(), known)


def _ending(job: RemoteJob, words: bytes) -> dict[str, object]:
    """Read the word that the script there said at the end."""
    first, _, jobs = words.partition(b"\n")
    word = first.decode("ascii", "replace")
    if not word.isdecimal():
        return {"problem": _cannot_start(job, word)}
    code = int(word)
    signal = code - (_OTHER_SHELLS if code > _OTHER_SHELLS else _SIGNALLED)
    # A shell that says so itself knows the exit code 143 from the signal 15.
    if 0 < signal <= _MOST_SIGNALS and b"Done(%d)" % code not in jobs:
        return {"signal": signal}
    return {"code": code}


def _cannot_start(job: RemoteJob, word: str) -> str:
    """Say why, in the words that are used here too."""
    host, folder = job.remote.host, f"the folder to run in, {job.folder!r},"
    program = f"the program {job.program!r}"
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
        "room": "what it is given cannot be written to /tmp: there is no room, or no right to",
        "short": "what it is given did not arrive: the connection was lost",
    }
    return f"on {host}: {words.get(word, f'it could not be started ({word})')}"


def _said(job: RemoteJob) -> str:
    """Return what ssh has to say, and remove it."""
    logs = [job.socket + LOG] if job.socket else []
    texts = [_content(path) for path in (*logs, job.log) if path]
    forget(job.log)
    return "\n".join(text for text in texts if text)


def _content(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST_LOG).decode("utf-8", "replace")
    except OSError:
        return ""


def _no_connection(remote: Remote, said: str, process: Process) -> str:
    first = process.before
    assert first is not None
    if first.problem:
        return f"there is no connection to {remote.host}: {first.problem}"
    if process.timed_out or first.timed_out:
        return f"there was no connection to {remote.host} within {process.seconds:.1f} s"
    return _words(remote, said)


def _broken(remote: Remote, said: str, process: Process, stdout: Framed) -> str:
    if process.timed_out:
        if stdout.has_begun:
            return ""
        forget(process.job.socket)  # type: ignore[attr-defined]  # as above; it may be dead
        return f"{remote.host} did not begin to run it within {process.seconds:.1f} s"
    if stdout.has_begun:
        why = f": {_last(said)}" if _last(said) else ""
        return f"the connection to {remote.host} was lost while it ran{why}"
    heard = b"\n".join(stream.preamble for stream in process.wrote if isinstance(stream, Framed))
    return _words(remote, said or heard.decode("utf-8", "replace"))


def _words(remote: Remote, said: str) -> str:
    """Say why a machine could not be used, and what to do."""
    host, line = remote.host, _line(remote)
    if "IDENTIFICATION HAS CHANGED" in said:
        return (
            f"the host key of {host} is not the one that is known; if it was changed on purpose, "
            f"remove the old one with `ssh-keygen -R`, and connect once with: {line}"
        )
    if "Host key verification failed" in said or "host key is known" in said:
        return f"the host key of {host} is not known here; connect once with: {line}"
    last = _last(said) or "ssh did not say why"
    if "Permission denied" in said or "Too many authentication failures" in said:
        return f"{host} let nobody in: {last}; a key or an agent is needed, as for: {line}"
    if "Could not resolve" in said:
        return f"{host} is not known: {last}"
    return f"there is no connection to {host}: {last}; try: {line}"


def _line(remote: Remote) -> str:
    port = f" -p {remote.port}" if remote.port else ""
    return f"ssh{port} {remote.destination}"


def _last(said: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if ": terminating, " not in line] or lines
    return lines[-1][:_LONGEST].rstrip(".") if lines else ""
