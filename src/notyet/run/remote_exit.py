"""Explain how a command on another machine ended, from the script's record or ssh's messages."""

from __future__ import annotations

import errno

from notyet.run.spawn import start_problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.remote import Remote
    from notyet.run.remote import RemoteJob

_SIGNALLED = 128  # a shell adds it to the number of a signal
_MOST_SIGNALS = 64
_TOO_MUCH = 256  # no exit code
_DIGITS = 3
_NO_SIGNAL = ("running", "done", "exit", "stopped")
_NOT_UNDERSTOOD = "what was said about its end was not understood"
_LONGEST = 300  # characters of ssh's message


def ending(job: RemoteJob, said: bytes, jobs: bytes) -> tuple[int | None, int, str]:
    """Return the exit code, the signal, and the problem of a record.

    `jobs` is the output of `jobs -l` there, for a code that may be a signal.
    """
    word, _, pid = said.decode("ascii", "replace").partition(" ")
    if not word.isdecimal():
        return None, 0, f"on {job.remote.host}: {_cannot_start(job, word)}"
    code = int(word) if len(word) <= _DIGITS else _TOO_MUCH
    if code >= _TOO_MUCH:
        return None, 0, f"on {job.remote.host}: {_NOT_UNDERSTOOD}"
    signal = code - _SIGNALLED
    if 0 < signal <= _MOST_SIGNALS and _is_signal(pid, jobs.decode("ascii", "replace")):
        return None, signal, ""
    return code, 0, ""


def _is_signal(pid: str, jobs: str) -> bool:
    """Return True if the shell there reports a signal, not an exit code with the same number.

    In doubt it is an exit code: a command that failed must not pass (M1).
    """
    of_job = ""  # printed once for all processes of a pipeline
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
    """Return why a command did not start, in the same words as for commands here."""
    program = job.argv[0] if job.argv else ""
    folder, named = f"the folder to run in, {job.dir!r},", f"the program {program!r}"
    words = {
        "gone-folder": f"{folder} does not exist",
        "file-folder": f"{folder} is not a folder",
        "closed-folder": f"{folder} may not be entered",
        "barred-folder": f"{folder} cannot be reached: Permission denied",
        "no-program": f"{named} was not found on the PATH",
        "gone-program": f"{named} does not exist",
        "barred-program": f"{named} cannot be reached: Permission denied",
        "folder-program": f"{program!r} is a folder, not a program",
        "closed-program": f"{program!r} is not executable; chmod +x makes it so",
        "long": start_problem(OSError(errno.E2BIG, ""), (program,)),
        "room": "what it is given cannot be written to /tmp: there is no room, or no right to",
        "short": "what it is given did not arrive: the connection was lost",
    }
    return words.get(word, _NOT_UNDERSTOOD)


def no_connection(
    remote: Remote,
    said: str,
    seconds: float,
    *,
    is_late: bool = False,
    is_stuck: bool = False,
    has_begun: bool = False,
) -> str:
    """Return why there is no connection, from ssh's messages."""
    host = remote.host
    last = _last(said)
    if is_stuck:
        return (
            f"{host} did not begin to run it within {seconds:.1f} s; "
            "it may be stuck, or a file that its login shell reads waits for input"
        )
    if is_late:
        return f"there was no connection to {host} within {seconds:.1f} s"
    if has_begun:
        return f"the connection to {host} was lost while it ran{f': {last}' if last else ''}"
    if "IDENTIFICATION HAS CHANGED" in said:
        return f"the host key of {host} is not the one that is known"
    if "Host key verification failed" in said or "host key is known" in said:
        return f"the host key of {host} is not known here"
    last = last or "ssh did not say why"
    if "Permission denied" in said or "Too many authentication failures" in said:
        return f"{host} let nobody in: {last}"
    if "Could not resolve" in said:
        return f"{host} is not known: {last}"
    return f"there is no connection to {host}: {last}"


def advice_for(remote: Remote, problem: str) -> str:
    """Return what a person can do if connecting failed.

    It is not part of the problem, which agents read: they would accept an unknown host key.
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
    """Return the last line that is not empty."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    lines = [line for line in lines if ": terminating, " not in line] or lines
    return lines[-1][:_LONGEST].rstrip(".") if lines else ""
