"""What a machine elsewhere is told to run: one POSIX script around the command.

It is sent on the client's stdin, which stays open as a lifeline: its end means that nobody here
waits any more, and the command and all that it started are ended. Once the command has run for a
moment, the lifeline also says how long it may take: for connections that die without a word. The
script prints how the command ended, in a frame that its output and a login shell's greeting cannot
be taken for: what marks it is a secret that comes on stdin, and that only the script knows. The
mark that the command and all its children carry is another word.

Programs cost more than anything else here, so the shell does what it can by itself.
"""

from __future__ import annotations

import os

from notyet.checks.remote_parts import BEGIN, FIND, RECEIVE, RUN
from notyet.checks.spawn import MARK
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = "/tmp/notyet-"  # noqa: S108  # made there, private, under a name that nobody can guess
_SHORT = 16 * 1024  # a payload that is written into the script; what is longer goes into a file
_PAYLOAD = "stdin"
_SPARE = 10  # seconds; by then we would have ended it ourselves
_AGES = 10**9
_LONGEST_WORD = 128 * 1024  # that Linux hands over to a program, with the byte that ends it
# What some shell does not hand on as it is, or not without harm to itself. These go through `env`,
# where everybody on that machine can read them in the list of processes; all others do not.
_PECULIAR_ONES = """
_ A__z ARGV0 BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND
BASH_COMPAT BASH_LINENO BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO BASH_XTRACEFD COLUMNS DIRSTACK EGID
EPOCHREALTIME EPOCHSECONDS ERRNO EUID FUNCNAME FUNCNEST GID GROUPS HISTCMD HISTSIZE JOBMAX
KEYBOARD_HACK KSHEGID KSHGID KSHUID KSH_VERSION LANG LINENO LINES MAILCHECK OPTIND PGRP PIPESTATUS
PPID RANDOM SAVEHIST SECONDS SHELLOPTS SHLVL SRANDOM TMOUT TRY_BLOCK_ERROR TRY_BLOCK_INTERRUPT
TTYIDLE UID USERNAME USER_ID ZLE_RPROMPT_INDENT ZSH_EVAL_CONTEXT ZSH_SUBSHELL signals
"""
PECULIAR = frozenset(_PECULIAR_ONES.split())
_FOR_LOADERS = ("LC_", "LD_", "DYLD_")  # of languages and libraries: not for `setsid`

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
    secret: str,
    *,
    argv: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    stdin: bytes,
    uploads: Sequence[Upload],
    timeout: float | None = None,
) -> tuple[str, bytes, tuple[bytes, ...]]:
    """Return the command for the login shell there, the script for it, and what follows that.

    `token` is the mark that the command carries, `secret` is that of the frame. Raises ValueError
    for what no system could pass on.
    """
    parts = [*uploads]
    if not _fits_script(stdin):
        parts.append(Upload(name=_PAYLOAD, content=stdin))
    contents = tuple(part.content for part in parts)
    script = b"".join(
        (
            # In braces: what arrives in part is not run in part.
            b"{\nunset ny_s ny_t\nny_t=%s ny_m=%s" % (secret.encode(), token.encode()),
            b" ny_z=%d" % (_AGES if timeout is None else min(timeout + 1 + _SPARE, _AGES)),
            BEGIN.encode(),
            _enter(folder),
            _receive(token, parts, sum(map(len, contents))),
            _arguments(token, argv, folder, environ),
            _run(stdin),
            b"}\n",
        )
    )
    if b"\0" in script:
        raise ValueError("embedded null byte")
    size = len(script)
    line = _LINE % (_EXACT % size if any(contents) else _WHOLE % (size, size))
    return line, script, contents


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
        pieces.append(b"ny_cut %d %d %s\n" % (at, length, path))
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
    odd = [quoted(f"{name}={variables[name]}") for name in variables if _is_peculiar(name)]
    path = quoted(environ["PATH"]) if "PATH" in environ else b"$PATH"
    words = b"ny_path=%s\nset -- %s" % (path, b" ".join(map(quoted, argv)))
    lines = [words, FIND.encode()]
    if any(map(_is_too_long, (*argv, *(f"{name}={variables[name]}" for name in variables)))):
        lines.append(b"[ -d /proc/self ] && ny_no long\n")
    if odd:
        # What has a `=` in its name would be a variable to `env`.
        lines.append(b'case $1 in\n*=*) set -- /bin/sh -c \'exec "$0" "$@"\' "$@";;\nesac\n')
        lines.append(b'ny_seek env "$PATH"\nset -- "${ny_x:-env}" %s "$@"\n' % b" ".join(odd))
    # Last of all, when everything has been found: one of them may be the PATH.
    lines.append(b"ny_go() {\n")
    lines += [
        b"export %s=%s\n" % (name.encode(), quoted(value))
        for name, value in variables.items()
        if not _is_peculiar(name)
    ]
    return b"".join((*lines, b'exec "$@"\n}'))


def _is_peculiar(name: str) -> bool:
    is_plain = name.isascii() and name.isidentifier()
    return not is_plain or name in PECULIAR or name.startswith(_FOR_LOADERS)


def _is_too_long(word: str) -> bool:
    return len(word.encode("utf-8", "replace")) >= _LONGEST_WORD


def _run(stdin: bytes) -> bytes:
    if not _fits_script(stdin):
        given = {"input": "", "from": f"<$ny_f/{_PAYLOAD} "}
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
