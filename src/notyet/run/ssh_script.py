"""The parts of the script that runs a command elsewhere, in the language of a POSIX shell.

All names in it begin with `ny_`, and none is exported, so that the command sees nothing of it. It
has to mean the same to dash, bash, busybox, mksh, ksh and zsh. Descriptor 3 is the lifeline.

A command is told once, by a TERM to its group, and has half a second; then it is ended by force,
together with all that carries the mark and has left the group.

| name | what it is |
|---|---|
| `ny_t` | the secret of the frame: on no command line, and only built-in commands print it |
| `ny_m` | the mark that all carry that the command starts |
| `ny_z` | seconds after which nobody can want the command any more |
| `ny_f` | the private folder, once it is made |
| `ny_path` | the PATH on which the program is looked for |
| `ny_e`, `ny_i` | `setsid`, where there is one; the input, if it is short |
| `ny_p`, `ny_c` | the command: its process, and how it ended |
| `ny_w`, `ny_g` | who watches the lifeline; who guards the time |
| `ny_k`, `ny_q` | the file that lists our children; groups to end |
| `ny_n` | 1 once somebody was there to be told |
| `ny_o`, `ny_s`, `ny_u` | of the guard: `$!` before, seconds of a step (or all), seconds so far |
| `ny_a`, `ny_d`, `ny_l`, `ny_r`, `ny_x` | of use for a few lines only |
"""

from __future__ import annotations

import os

from notyet.core.record import Record
from notyet.run.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# `ny_lost`: why a path is of no use. `ny_mine`: who carries the mark; only those can that are
# younger than the command, unless the numbers have begun anew. `ny_guard`: ends everything when
# the time is over, or when the script is gone and did not send it away. In steps, so that no
# `sleep` stays for long if somebody kills the guard. It is nobody's child, so that a command which
# ends its parent and all of its parent's children does not end it. (`exec`, because a shell keeps
# what it redirects for one command only, and would hold the channel open; `ulimit`, because ksh
# does the same in a subshell, unless it has to make it a process.)
BEGIN = r"""
exec 3<&0 </dev/null
echo $ny_t
echo $ny_t >&2
ny_f= ny_g= ny_p= ny_q= ny_k=/proc/$$/task/$$/children
ny_say() {
trap "" PIPE
if [ "$1" -gt 128 ] 2>/dev/null; then
echo "
$ny_t $1 $ny_p"
jobs -l 2>/dev/null
echo "
$ny_t"
else
echo "
$ny_t $1
$ny_t"
fi
echo "
$ny_t -
$ny_t" >&2
}
ny_leave() {
[ -z "$ny_g" ] || kill $ny_g 2>/dev/null
[ -z "$ny_f" ] || rm -rf $ny_f
exit 0
}
ny_no() {
ny_say "$1"
ny_leave
}
ny_lost() {
[ -d "$1" ] && ny_no closed-$2
[ -e "$1" ] && ny_no file-$2
ny_d=$1
while ny_d=${ny_d%/*}; [ "$ny_d" ]; do
if [ -d "$ny_d" ]; then
[ -x "$ny_d" ] || ny_no barred-$2
break
fi
done
ny_no gone-$2
}
ny_mine() {
ny_l= ny_a=0
read -r ny_x ny_x ny_x ny_x ny_x </proc/loadavg
[ "${ny_x:-0}" -gt $$ ] && ny_a=$$
for ny_x in /proc/[0-9]*; do
[ ${ny_x#/proc/} -lt $ny_a ] || ny_l="$ny_l $ny_x/environ"
done
if command -v grep >/dev/null; then
grep -lsF -e $ny_m $ny_l
else
for ny_x in $ny_l; do
case $(tr -d "\000" <$ny_x) in *$ny_m*) echo $ny_x;; esac
done
fi
}
ny_know() {
ny_x=
read -r ny_x <$ny_k
[ "$ny_x" ] && ny_q=$ny_x
}
ny_end() {
for ny_x in $ny_q; do
kill -s $1 -- -$ny_x && ny_n=1
done
[ $1$ny_n = TERM1 ] && return
for ny_x in $(ny_mine); do
ny_x=${ny_x%/environ}
kill -s $1 ${ny_x#/proc/} && ny_n=1
done
}
ny_all() {
ny_n=0
kill -s CONT $$
if ny_know || kill -s 0 $$; then
for ny_x in $ny_q; do
kill -s 0 -- -$ny_x || { kill $ny_x && ny_n=1; }
done
fi
ny_end TERM
if [ $ny_n = 1 ]; then
sleep 0.5 || sleep 1
ny_end KILL
ny_end KILL
fi
[ -z "$ny_f" ] || rm -rf $ny_f
}
ny_guard() {
exec </dev/null >/dev/null 2>&1 3<&-
ny_o=$! ny_s=1 ny_u=0
trap '[ "$!" = "$ny_o" ] || { kill -s KILL $!; wait $!; }; exit' TERM
while kill -s 0 $$ && [ $ny_u -lt $1 ]; do
[ $((ny_u + ny_s)) -le $1 ] || ny_s=$(($1 - ny_u))
sleep $ny_s &
wait $! || exit
ny_u=$((ny_u + ny_s))
[ $ny_s -gt 15 ] || ny_s=$((ny_s * 2))
done
trap "" TERM
ny_all
kill -s KILL $$
}
ny_begin() {
ny_g=$(ulimit -c >/dev/null 2>&1; ny_guard $ny_z & echo $!)
}
ny_seek() {
ny_x= ny_r= IFS=:
set -f
for ny_d in $2; do
ny_d=${ny_d:-.}/$1
if [ -f "$ny_d" ]; then
[ -x "$ny_d" ] && ny_x=$ny_d && break
ny_r=${ny_r:-$ny_d}
fi
done
unset IFS
set +f
}
"""

FIND = r"""
ny_x=$1
case $1 in
*/*) [ -e "$1" ] || case $1 in
/*) ny_lost "$1" program;;
*) ny_no gone-program;;
esac;;
*) ny_seek "$1" "$ny_path"
[ "$ny_x" ] || ny_x=$ny_r
[ "$ny_x" ] || ny_no no-program;;
esac
[ -d "$ny_x" ] && ny_no folder-program
[ -x "$ny_x" ] || ny_no closed-program
shift
set -- "$ny_x" "$@"
"""

# The guard is there before the first byte is kept. A file comes in one piece; or there are
# several, of which only the last may be read too far.
RECEIVE = r"""
ny_f=%(folder)s
ny_begin
(umask 077; mkdir $ny_f) 2>/dev/null || { ny_f=; ny_no room; }
ny_has() {
[ $(wc -c <"$2") -eq $1 ]
}
ny_get() {
(umask 077
[ "$3" ] || head -c $1 <&3 >"$2"
ny_c=$?
[ -s "$2" ] || { dd bs=1 count=$1 <&3 >"$2"; ny_c=$?; }
exit $ny_c) 2>/dev/null
ny_c=$?
ny_has $1 "$2" && return
[ $ny_c = 0 ] && ny_no short
ny_no room
}
ny_cut() {
(umask 077; tail -c +$1 $ny_f/all | head -c $2 >"$3") 2>/dev/null
ny_has $2 "$3" || ny_no room
}
"""

# In a session of its own, where that can be had, or else in a group. Who watches the lifeline is
# there before the command, where it can see from outside which one that is. What is left when the
# command ends may still say something for a moment. dash forgets how a command ended as soon as it
# starts another program. bash, mksh and zsh never tell a signal from a code; a trap of bash could,
# but then it complains on the stderr of the command now and then.
RUN = r"""
ny_watch() {
exec </dev/null >/dev/null 2>&1
ny_q=$ny_p
while read -r ny_s <&3; do
ny_know
[ -z "$ny_g" ] || kill $ny_g
ny_guard $ny_s &
ny_g=$!
done
trap "" TERM
[ -z "$ny_g" ] || { kill $ny_g; wait $ny_g; }
ny_all
}
[ "$ny_g" ] || ny_begin
if [ -r $ny_k ]; then
ny_watch &
ny_w=$!
fi
ny_seek setsid "$PATH"
ny_e=$ny_x
[ "$ny_e" ] || ! command -v setsid >/dev/null 2>&1 || ny_e=setsid
if [ "$ny_e" ]; then
%(input)sny_go "$ny_e" "$@" %(from)s3<&- &
ny_p=$!
else
set -m 2>/dev/null
(%(input)sny_go "$@" %(from)s) 3<&- &
ny_p=$!
set +m
fi
if [ ! -r $ny_k ]; then
ny_watch &
ny_w=$!
fi
while :; do
wait $ny_p 2>/dev/null
ny_c=$? ny_n=0
[ $ny_c -gt 128 ] && kill -s 0 $ny_p 2>/dev/null || break
done
ny_x=0
if kill -s 0 -- -$ny_p; then
if [ $ny_c -gt 128 ]; then
while [ $ny_x -lt 300 ] && kill -s 0 -- -$ny_p; do ny_x=$((ny_x + 1)); done
else
sleep 0.05
fi
kill -s TERM -- -$ny_p && ny_n=1
fi 2>/dev/null
ny_say $ny_c
exec >/dev/null 2>&1
if [ $ny_n = 1 ]; then
sleep 0.3 || sleep 1
kill -s KILL -- -$ny_p
fi
kill -s CONT $ny_w || ny_all
ny_leave
"""


# What a machine elsewhere is told to run: one POSIX script around the command.
#
# It is sent on the client's stdin, which stays open as a lifeline: its end means that nobody here
# waits any more, and the command and all that it started are ended. Once the command has run for a
# moment, the lifeline also says how long it may take: for connections that die without a word. The
# script prints how the command ended, in a frame that its output and a login shell's greeting
# cannot
# be taken for: what marks it is a secret that comes on stdin, and that only the script knows. The
# mark that the command and all its children carry is another word.
#
# Programs cost more than anything else here, so the shell does what it can by itself.


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
