"""What a machine elsewhere is told to run: one POSIX script around the command.

It is sent on the client's stdin, which stays open as a lifeline: its end means that nobody here
waits any more, and the command and all that it started are ended. Once the command has run for a
moment, the lifeline also says how long it may take: for connections that die without a word. The
script prints how the command ended, in a frame that its output and a login shell's greeting cannot
be taken for.

Programs cost more than anything else here, so the shell does what it can by itself.
"""

from __future__ import annotations

import os

from notyet.checks.remote_parts import BEGIN, FIND, PIECE, RECEIVE, RUN
from notyet.checks.spawn import MARK
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "/tmp/notyet-"  # noqa: S108  # made there, private, under a name that nobody can guess
_SHORT = 16 * 1024  # a payload that is written into the script; what is longer goes into a file
_PAYLOAD = "stdin"
# A shell can set these for itself without harm, and nobody sees them in a list of processes.
_HARMLESS = ("NOTYET_", "CLAUDE_", "MUX_", "XUM_", "CONCLAUDE_")

# Every login shell takes this line to mean the same; what it runs is then a POSIX shell. While
# more follows on stdin, nothing may be read too far.
_LINE = "exec /bin/sh -c 'ny_s=%s;eval \"$ny_s\"'"
_WHOLE = '$(head -c %d 2>/dev/null);[ "$ny_s" ]||ny_s=$(dd bs=1 count=%d 2>/dev/null)'
_EXACT = "$(dd bs=1 count=%d 2>/dev/null)"


class Upload(Record, kw_only=True):
    """A file that a command elsewhere finds at `upload_path`, and that is removed afterwards."""

    name: str
    content: bytes


def upload_path(token: str, name: str) -> str:
    """Return where a file lies while the command runs."""
    return f"{FOLDER}{token}/{name}"


def conversation(
    token: str,
    *,
    argv: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    stdin: bytes,
    uploads: Sequence[Upload],
) -> tuple[str, bytes]:
    """Return the command for the login shell there, and all that is written to it.

    Raises ValueError for what no system could pass on.
    """
    parts = [*uploads]
    if not _fits_script(stdin):
        parts.append(Upload(name=_PAYLOAD, content=stdin))
    blob = b"".join(part.content for part in parts)
    script = b"".join(
        (
            b"ny_t=%s" % token.encode(),
            BEGIN.encode(),
            _enter(folder),
            _receive(token, parts, len(blob)),
            _arguments(token, argv, folder, environ),
            _run(token, stdin),
        )
    )
    if b"\0" in script:
        raise ValueError("embedded null byte")
    size = len(script)
    return _LINE % (_EXACT % size if blob else _WHOLE % (size, size)), script + blob


def _enter(folder: str) -> bytes:
    there = quoted(folder)
    return b"cd -P -- %s 2>/dev/null || ny_lost %s folder\nunset OLDPWD\n" % (there, there)


def _receive(token: str, parts: Sequence[Upload], size: int) -> bytes:
    if not parts:
        return b""
    begin = (RECEIVE % {"folder": FOLDER + token}).encode()
    files = [(len(part.content), quoted(upload_path(token, part.name))) for part in parts]
    if len(files) == 1:
        return begin + b"ny_get %d %s\n" % files[0]
    pieces, at = [], 1
    for length, path in files:
        pieces.append(PIECE % (at, length, path))
        at += length
    return b"".join(
        (
            begin,
            b"if { head -c 1 /dev/null && tail -c +1 /dev/null; } >/dev/null 2>&1; then\n",
            b"ny_get %d $ny_f/all\n" % size,
            *pieces,
            b"rm -f $ny_f/all\nelse\n",
            *(b"ny_get %d %s exactly\n" % file for file in files),
            b"fi\n",
        )
    )


def _arguments(token: str, argv: Sequence[str], folder: str, environ: Mapping[str, str]) -> bytes:
    """Find the program, make "$@" the whole command, and say how it gets its variables."""
    if not argv:
        raise ValueError("there is nothing to run")
    marks = f"{environ.get(MARK, '')} {token}".strip()
    variables = {**environ, "PWD": folder, MARK: marks}
    if any(not name or "=" in name for name in variables):
        raise ValueError("illegal environment variable name")
    own = [name for name in variables if _is_harmless(name)]
    others = [quoted(f"{name}={variables[name]}") for name in variables if name not in own]
    path = quoted(environ["PATH"]) if "PATH" in environ else b"$PATH"
    lines = [b"ny_path=%s\nset -- %s" % (path, b" ".join(map(quoted, argv))), FIND.encode()]
    if others:
        # What has a `=` in its name would be a variable to `env`.
        lines.append(b'case $1 in\n*=*) set -- /bin/sh -c \'exec "$0" "$@"\' "$@";;\nesac\n')
        lines.append(b'set -- env %s "$@"\n' % b" ".join(others))
    lines.append(b"ny_go() {\n")
    lines += [b"export %s=%s\n" % (name.encode(), quoted(variables[name])) for name in own]
    return b"".join((*lines, b'exec "$@"\n}'))


def _is_harmless(name: str) -> bool:
    is_one = name.startswith(_HARMLESS) or name == "PWD"
    return is_one and name.isascii() and name.isidentifier()


def _run(token: str, stdin: bytes) -> bytes:
    if not _fits_script(stdin):
        given = {"input": "", "from": f"<{FOLDER}{token}/{_PAYLOAD} "}
        return (RUN % given).encode()
    if not stdin:
        return (RUN % {"input": "", "from": "</dev/null "}).encode()
    given = {"input": 'printf %s "$ny_i" | ', "from": ""}
    return b"\nny_i=%s" % _quoted_bytes(stdin) + (RUN % given).encode()


def _fits_script(stdin: bytes) -> bool:
    return len(stdin) <= _SHORT and b"\0" not in stdin


def quoted(text: str) -> bytes:
    """Return a text as one word of a POSIX shell."""
    try:
        return _quoted_bytes(os.fsencode(text))
    except UnicodeEncodeError:  # half a character, as JSON can hold it
        return _quoted_bytes(text.encode("utf-8", "replace"))


def _quoted_bytes(content: bytes) -> bytes:
    return b"'%s'" % content.replace(b"'", b"'\\''")
