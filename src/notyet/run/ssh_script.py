"""Compose the script that runs commands on another machine, with all of their input.

`ssh_script.sh` is the part that is the same for all. The script is sent on ssh's stdin, and files
follow it; then stdin stays open as the lifeline.
"""

from __future__ import annotations

import os
import re
from functools import cache

from notyet.core.record import Record
from notyet.run.process import TAIL
from notyet.run.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.run.ssh_job import RemoteJob

_FOLDER = "/tmp/notyet-"  # noqa: S108  # made there, private, under a name that cannot be guessed
_SHORT = 16 * 1024  # bytes of stdin that fit into the script; a longer one becomes a file
_AGES = 10**9
_SPARE = 10  # seconds added to the timeout, after which the script ends everything by itself
# Names that some shell does not pass on unchanged. Only these go through `env`, where every user
# of that machine can read them in the list of processes.
_ODD = re.compile(
    r"_|(BASH|KSH|HIST|EPOCH|LC_|LD_|DYLD_).*|COLUMNS|DIRSTACK|E?UID|FUNCN\w+|GROUPS|LANG|LINENO|"
    r"LINES|MAILCHECK|OPTIND|PGRP|PIPESTATUS|PPID|S?RANDOM|SECONDS|SHELLOPTS|SHLVL|TMOUT|USER_ID"
)
# These lines mean the same to every login shell, and start a POSIX shell. If files follow on stdin,
# the script must be read exactly to its end.
_LINE = "exec /bin/sh"
_EXACT = "exec /bin/sh -c 'ny_x=$(dd ibs=1 obs=4096 count=%d 2>/dev/null);eval \"$ny_x\"'"
_HERE = "# Here follow"


class Upload(Record, kw_only=True):
    """A file that is at `upload_path` while a command runs, and removed afterwards."""

    name: str
    content: bytes


def upload_path(token: str, name: str) -> str:
    """Return the path of an uploaded file."""
    return f"{_FOLDER}{token}/{name}"


def conversation(
    secret: str, jobs: Sequence[RemoteJob], seconds: float | None
) -> tuple[str, bytes, list[bytes]]:
    """Return the command for the login shell, the script, and the files that follow on stdin.

    `secret` marks the records; everything is ended after so many `seconds`. Raises ValueError for
    input that no system can pass to a program.
    """
    token = jobs[0].token  # of the session
    files = {upload_path(job.token, one.name): one.content for job in jobs for one in job.uploads}
    inputs: dict[bytes, str] = {b"": "/dev/null"}  # each is sent once
    lines: list[bytes] = []
    for job in jobs:
        if job.stdin not in inputs:
            path = inputs[job.stdin] = upload_path(token, f"{len(inputs)}.in")
            if len(job.stdin) > _SHORT or b"\0" in job.stdin:
                files[path] = job.stdin
            else:
                lines.append(b"printf %%s %s >%s || fail" % (_quoted(job.stdin), path.encode()))
    place = 1
    for path, content in files.items():
        lines.append(b"cut_out %d %d %s" % (place, len(content), quoted(path)))
        place += len(content)
    if files:
        lines.insert(0, b"receive %d" % (place - 1))
        lines.append(b"rm $ny_folder/all")
    lines += [_command(token, *one, inputs) for one in enumerate(jobs, 1)]
    variables = {
        "secret": secret,
        "mark": token,
        "folder": _FOLDER + token,
        "folders": " ".join(dict.fromkeys(_FOLDER + job.token for job in jobs)),
        "numbers": " ".join(str(number) for number, _ in enumerate(jobs, 1)),
        "seconds": _AGES if seconds is None else min(int(seconds) + 1 + _SPARE, _AGES),
        "head": max(job.head for job in jobs),
        "tail": TAIL,
    }
    before, after = _parts()
    # In braces, so that a script that arrives in part does not run.
    script = b"\n".join(
        (
            b"{ unset ny_x",
            *(f"ny_{name}='{value}'".encode() for name, value in variables.items()),
            *(before, *lines, after, b"}\n"),
        )
    )
    if b"\0" in script:
        raise ValueError("embedded null byte")
    return _EXACT % len(script) if files else _LINE, script, list(files.values())


@cache
def _parts() -> tuple[bytes, bytes]:
    """Return the script before and after what belongs to the commands, without comments."""
    with open(os.path.splitext(__file__)[0] + ".sh", encoding="utf-8") as file:
        parts = file.read().split(_HERE)
    lines = ([line.strip() for line in part.splitlines()] for part in parts)
    before, after = (
        "\n".join(line for line in part if line and not line.startswith("#")).encode()
        for part in lines
    )
    return before, after


def _command(token: str, number: int, job: RemoteJob, inputs: Mapping[bytes, str]) -> bytes:
    """Return the shell function that becomes a command with its arguments and variables."""
    if not job.argv:
        raise ValueError("there is nothing to run")
    marks = f"{job.environ.get(MARK, '')} {token}.{number}.".strip()
    variables = {**job.environ, "PWD": job.dir, MARK: marks}
    if any(not name or "=" in name for name in variables):
        raise ValueError("illegal environment variable name")
    odd = [quoted(f"{name}={variables[name]}") for name in variables if _is_odd(name)]
    exports = [
        b"export %s=%s" % (name.encode(), quoted(value))
        for name, value in variables.items()
        if not _is_odd(name)
    ]
    argv = [b"start", *([b'"$ny_env"', *odd] if odd else ()), *map(quoted, job.argv)]
    lines = [b"enter " + quoted(job.dir), *exports, b" ".join(argv)]
    if odd:
        lines.insert(0, b"ny_env=$(command -v env)")  # before PATH is set
    given = inputs[job.stdin].encode()
    return b"command_%d() {\nexec <%s\n%s\n}" % (number, given, b"\n".join(lines))


def _is_odd(name: str) -> bool:
    is_plain = name.isascii() and name.isidentifier()
    return not is_plain or _ODD.fullmatch(name) is not None


def quoted(text: str) -> bytes:
    """Return a text as one word of a POSIX shell."""
    try:
        return _quoted(os.fsencode(text))
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold
        return _quoted(text.encode("utf-8", "replace"))


def _quoted(content: bytes) -> bytes:
    return b"'%s'" % content.replace(b"'", b"'\\''")
