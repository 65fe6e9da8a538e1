"""The POSIX shell script that runs commands on another machine, with all of their input.

One script runs all commands of a session at the same time. It is sent on the client's stdin, which
stays open as a lifeline (descriptor 3 of the script): a line with a number ends that command, the
end of the line ends everything. The script prints a record for each command when it has ended,
marked by a secret that only the script knows, so that no command can forge an ending.

Per command there is one shell that starts it, waits, and ends what is left of its process group.
The output of a command that ends at once fits into its pipes, and is read by copies of the shell
(which drop NUL bytes), or by `cat` where every byte counts; not by the shell itself, since a signal
that interrupts its `read` loses a line. For others, readers are started that keep the beginning and
the end of it.

The script must mean the same to dash, bash, busybox and mksh. All names in it begin with
`ny_` and none is exported. Starting programs is what costs time there, so the shell does what it
can with built-in commands. Only built-in commands print the secret.

| name | meaning |
|---|---|
| `ny_t` | the secret that marks records |
| `ny_m` | the mark in the environment of all commands; each adds its number |
| `ny_z` | seconds after which everything is ended, in case the connection dies silently |
| `ny_f`, `ny_u` | how the names of its files begin; the folders of uploads |
| `ny_e` | `setsid`, where there is one |
| `ny_g`, `ny_k`, `ny_k1` … | processes: the guard; those that run commands, by number |
| `ny_n`, `ny_p`, `ny_c`, `ny_q` | of one command: number, process, exit code, 1 once told to end |
| `ny_a`, `ny_b` | of one command: the readers of its output |
| `ny_h`, `ny_s` | of one command: how much of its output is kept, from its beginning and end |
| `ny_v` | of one command: 1 once a signal has come, which interrupts a `wait` |
| `ny_path` | the PATH on which its program is looked for |
| `ny_i` | of one command: the file with its input |
| `ny_d`, `ny_l`, `ny_o`, `ny_r`, `ny_w`, `ny_x` | temporary |
"""

from __future__ import annotations

import os

from notyet.core.record import Record
from notyet.run.spawn import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FOLDER = "/tmp/notyet-"  # noqa: S108  # made there, private, under a name that cannot be guessed
_SHORT = 16 * 1024  # bytes of stdin that fit into the script; a longer one becomes a file
_AGES = 10**9
_SPARE = 10  # seconds added to the timeout, after which the script ends everything by itself
_LONGEST_WORD = 128 * 1024  # bytes of one argument on Linux, with its NUL
# Names that some shell does not pass on unchanged. Only these go through `env`, where every user
# of that machine can read them in the list of processes.
_PECULIAR_ONES = """
_ BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_CMDS BASH_COMMAND BASH_COMPAT
BASH_LINENO BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO BASH_XTRACEFD COLUMNS DIRSTACK EPOCHREALTIME
EPOCHSECONDS EUID FUNCNAME FUNCNEST GROUPS HISTCMD HISTSIZE KSHEGID KSHGID KSHUID KSH_VERSION LANG
LINENO LINES MAILCHECK OPTIND PGRP PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM TMOUT UID
USER_ID
"""
PECULIAR = frozenset(_PECULIAR_ONES.split())
_FOR_LOADERS = ("LC_", "LD_", "DYLD_")  # of languages and libraries: not for `setsid`

# These lines mean the same to every login shell, and start a POSIX shell. If files follow on stdin,
# the script must be read exactly to its end.
_LINE = "exec /bin/sh"
_EXACT = "exec /bin/sh -c 'ny_s=$(dd ibs=1 obs=4096 count=%d 2>/dev/null);eval \"$ny_s\"'"

# `ny_say`: print the record of a command. `ny_mine`: list the processes with a mark. `ny_guard`:
# end everything after the timeout, or when the script was killed; it sleeps in steps, so that no
# `sleep` stays for long if the guard is killed.
_BEGIN = r"""
exec 3<&0 </dev/null 2>/dev/null
echo $ny_t
ny_g= ny_k=
ny_say() {
echo "
$ny_t $1 $2"
[ -s $ny_f.$1.O ] && cat $ny_f.$1.O
echo "
$ny_t"
[ -s $ny_f.$1.E ] && cat $ny_f.$1.E
echo "
$ny_t"
[ -s $ny_f.$1.j ] && cat $ny_f.$1.j
echo "
$ny_t"
}
ny_mine() {
ny_l= ny_r=0
read -r ny_x ny_x ny_x ny_x ny_x </proc/loadavg
[ "${ny_x:-0}" -gt $$ ] && ny_r=$$
for ny_x in /proc/[0-9]*; do
[ ${ny_x#/proc/} -lt $ny_r ] || ny_l="$ny_l $ny_x/environ"
done
if command -v grep >/dev/null; then
grep -lsF -e $1 $ny_l
else
for ny_x in $ny_l; do
case $(tr -d "\000" <$ny_x) in *$1*) echo $ny_x;; esac
done
fi
}
ny_sweep() {
ny_w=
for ny_x in $(ny_mine $2); do
ny_x=${ny_x%/environ}
kill -s $1 ${ny_x#/proc/} && ny_w=1
done
}
ny_all() {
trap "" TERM
ny_o=
for ny_i in $ny_k; do
eval "ny_x=\$ny_k$ny_i"
[ -e $ny_f.$ny_i.x ] || { kill $ny_x && kill -s CONT $ny_x && ny_o=1; }
done
if [ "$ny_o" ]; then
sleep 0.6 || sleep 1
else
ny_sweep TERM $ny_m
[ -z "$ny_w" ] || sleep 0.5 || sleep 1
fi
[ -z "$ny_o$ny_w" ] || { ny_sweep KILL $ny_m; ny_sweep KILL $ny_m; }
for ny_i in $ny_k; do
[ -e $ny_f.$ny_i.x ] || eval "kill -s KILL \$ny_k$ny_i"
done
rm -rf $ny_f.* $ny_u
}
ny_watch() {
exec >/dev/null 4>&-
while read -r ny_x <&3; do
eval "ny_x=\$ny_k$ny_x"
kill $ny_x
kill -s CONT $ny_x
done
trap "" TERM
kill $ny_g
ny_all
kill $$
}
ny_guard() {
exec </dev/null >/dev/null 2>&1 3<&- 4>&-
ny_o=$! ny_s=1 ny_r=0
trap '[ "$!" = "$ny_o" ] || { kill -s KILL $!; wait $!; }; exit' TERM
if [ "$ny_k" ]; then
sleep 0.1 &
wait $! || exit
for ny_x in $ny_k; do
eval "kill -s USR1 \$ny_k$ny_x"
done
fi
while kill -s 0 $$ && [ $ny_r -lt $1 ]; do
[ $((ny_r + ny_s)) -le $1 ] || ny_s=$(($1 - ny_r))
sleep $ny_s &
wait $! || exit
ny_r=$((ny_r + ny_s))
[ $ny_s -gt 15 ] || ny_s=$((ny_s * 2))
done
ny_all
kill -s KILL 0
}
ny_fail() {
for ny_x in %(numbers)s; do
ny_say $ny_x $1
done
[ -z "$ny_g" ] || kill $ny_g
rm -rf $ny_f.* $ny_u
exit 0
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
mkfifo -m 600 $ny_f.q %(fifos)s || ny_fail room
"""

# Receive one file, or several as one piece that is then split.
_RECEIVE = r"""
ny_guard $ny_z &
ny_g=$!
[ -z "$ny_u" ] || mkdir -m 700 $ny_u || { ny_u=; ny_fail room; }
ny_has() {
[ $(wc -c <"$2") -eq $1 ]
}
ny_get() {
(umask 077
[ "$3" ] || head -c $1 <&3 >"$2"
ny_c=$?
[ -s "$2" ] || { dd bs=1 count=$1 <&3 >"$2"; ny_c=$?; }
exit $ny_c)
ny_c=$?
ny_has $1 "$2" && return
[ $ny_c = 0 ] && ny_fail short
ny_fail room
}
ny_cut() {
(umask 077; tail -c +$1 $ny_f.all | head -c $2 >"$3")
ny_has $2 "$3" || ny_fail room
}
"""

# Run one command. `ny_no`: report why it cannot start. `ny_lost`: report why a path cannot be used.
# `ny_stop`: end a command; the rest of its group and all processes with its mark are killed after
# half a second, and then the readers, whose pipe an unknown process may hold open.
#
# A command runs in its own session if there is `setsid`, else in its own group. Background
# processes may print for a moment after it has exited. dash forgets how a command ended as soon as
# it starts another program; bash and mksh cannot tell a signal from an exit code.
_ONE = r"""
ny_no() {
: >$ny_f.$ny_n.x
echo $ny_n $1 >&4
exit 0
}
ny_lost() {
[ -d "$1" ] && ny_no closed-$2
[ -e "$1" ] && ny_no file-$2
ny_x=$1
while ny_x=${ny_x%/*}; [ "$ny_x" ]; do
if [ -d "$ny_x" ]; then
[ -x "$ny_x" ] || ny_no barred-$2
break
fi
done
ny_no gone-$2
}
ny_find() {
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
}
ny_stop() {
ny_v=1
[ -z "$ny_q" ] || return 0
ny_q=1
[ "$ny_p" ] || return 0
kill -s CONT -- -$ny_p
kill -s TERM -- -$ny_p || [ "$ny_c" ] || kill -s TERM $ny_p
ny_kill &
}
ny_kill() {
exec </dev/null 4>&- 7<&- 8<&-
trap - TERM
sleep 0.5 || sleep 1
kill -s KILL -- -$ny_p
ny_sweep KILL $ny_m.$ny_n.
ny_sweep KILL $ny_m.$ny_n.
sleep 0.1 || sleep 1
[ -z "$ny_a" ] || kill -s KILL $ny_a $ny_b
}
ny_await() {
ny_v=
wait $1
ny_r=$?
while [ "$ny_v" ]; do
ny_v=
wait $1
ny_x=$?
[ $ny_x = 127 ] && [ $ny_r -le 128 ] || ny_r=$ny_x
done
}
ny_one() {
trap ny_stop TERM
exec 3<&-
ny_n=$1 ny_p= ny_c= ny_q= ny_a= ny_b=
ny_do$1
}
ny_keep() {
while IFS= read -r ny_x; do
printf "%s\n" "$ny_x"
done
[ -z "$ny_x" ] || printf %s "$ny_x"
}
ny_reader() {
[ $ny_h = 0 ] || dd ibs=1 obs=4096 count=$ny_h
exec tail -c $ny_s
}
ny_readers() {
ny_v=1
ny_reader <&7 >$ny_f.$ny_n.O 4>&- 7<&- 8<&- &
ny_a=$!
ny_reader <&8 >$ny_f.$ny_n.E 4>&- 7<&- 8<&- &
ny_b=$!
exec 7<&- 8<&-
trap "" USR1
}
ny_run() {
exec 5<>$ny_f.$ny_n.o 6<>$ny_f.$ny_n.e 7<$ny_f.$ny_n.o 8<$ny_f.$ny_n.e
if [ "$ny_e" ]; then
ny_go "$ny_e" "$@" <$ny_i >&5 2>&6 4>&- 5>&- 6>&- 7<&- 8<&- &
ny_p=$!
else
set -m
(ny_go "$@" <$ny_i >&5 2>&6 5>&- 6>&- 7<&- 8<&-) 4>&- &
ny_p=$!
set +m
fi
exec 5>&- 6>&-
umask 077
trap ny_readers USR1
[ -z "$ny_q" ] || { ny_q=; ny_stop; }
ny_await $ny_p
ny_c=$ny_r
trap "" USR1
[ $ny_c -le 128 ] || jobs -l >$ny_f.$ny_n.j
echo $ny_n x $ny_c $ny_p >&4
ny_x=0
if kill -s 0 -- -$ny_p; then
if [ $ny_c -gt 128 ]; then
while [ $ny_x -lt 300 ] && kill -s 0 -- -$ny_p; do ny_x=$((ny_x + 1)); done
else
sleep 0.05 || sleep 1
fi
kill -s TERM -- -$ny_p && { sleep 0.05 || sleep 1; kill -s KILL -- -$ny_p; }
fi
if [ -z "$ny_a" ]; then
ny_r=ny_keep
[ $ny_h != 0 ] || ny_r=cat
$ny_r <&7 >$ny_f.$ny_n.O 4>&- 7<&- 8<&- &
ny_a=$!
$ny_r <&8 >$ny_f.$ny_n.E 4>&- 7<&- 8<&- &
ny_b=$!
fi
ny_await $ny_a
ny_await $ny_b
: >$ny_f.$ny_n.x
echo $ny_n $ny_c $ny_p >&4
exit 0
}
"""

# One process reads the lifeline, the script itself prints the records of the commands that ended.
# After the last one it cleans up by itself: sshd may keep the lifeline open for long.
_MAIN = r"""
ny_seek setsid "$PATH"
ny_e=$ny_x
[ "$ny_e" ] || ! command -v setsid >/dev/null || ny_e=setsid
exec 4<>$ny_f.q
trap "" USR1
for ny_x in %(numbers)s; do
ny_one $ny_x >/dev/null &
eval "ny_k$ny_x=$!"
done
ny_k="%(numbers)s"
[ -z "$ny_g" ] || kill $ny_g
ny_guard $ny_z &
ny_g=$!
ny_watch &
ny_w=$!
exec 3<&-
trap "" PIPE
for ny_x in %(numbers)s; do
while read -r ny_n ny_c <&4; do
case $ny_c in
x*) echo "
$ny_t $ny_n $ny_c";;
*) ny_say $ny_n "$ny_c"; break;;
esac
done
done
exec >/dev/null
kill $ny_w $ny_g
ny_all
exit 0
"""


class Upload(Record, kw_only=True):
    """A file that is at `upload_path` while a command runs, and removed afterwards."""

    name: str
    content: bytes


class Part(Record, kw_only=True):
    """One of the commands that a script runs."""

    argv: Sequence[str]
    folder: str
    environ: Mapping[str, str]
    stdin: bytes = b""
    uploads: Sequence[Upload] = ()
    token: str  # names the folder of its uploads
    head: int  # bytes kept from the beginning of each stream; read one by one
    tail: int  # bytes kept from its end


def upload_path(token: str, name: str) -> str:
    """Return the path of an uploaded file."""
    return f"{_FOLDER}{token}/{name}"


def conversation(
    token: str, secret: str, parts: Sequence[Part], seconds: float | None
) -> tuple[str, bytes, list[bytes]]:
    """Return the command for the login shell, the script, and the files that follow on stdin.

    `token` marks the commands' processes, `secret` the records; everything is ended after so many
    `seconds`. Raises ValueError for input that no system can pass to a program.
    """
    files: dict[str, bytes] = {}
    folders: dict[str, None] = {}
    inputs = [b"umask 077\n"]
    for number, part in enumerate(parts, 1):
        for upload in part.uploads:
            files[upload_path(part.token, upload.name)] = upload.content
            folders[_FOLDER + part.token] = None
        path = _input_path(token, number)
        if not _fits_script(part.stdin):
            files[path] = part.stdin
        elif part.stdin:
            inputs.append(b"printf %%s %s >%s\n" % (_quoted_bytes(part.stdin), path.encode()))
    numbers = " ".join(str(number) for number in range(1, len(parts) + 1))
    fifos = " ".join(f"$ny_f.{n}.o $ny_f.{n}.e" for n in range(1, len(parts) + 1))
    contents = list(files.values())
    script = b"".join(
        (
            # In braces, so that a script that arrives in part does not run.
            b"{\nunset ny_s ny_t\nny_t=%s ny_m=%s" % (secret.encode(), token.encode()),
            b" ny_z=%d" % (_AGES if seconds is None else min(seconds + 1 + _SPARE, _AGES)),
            f" ny_f={_FOLDER}{token} ny_u='{' '.join(folders)}'".encode(),
            (_BEGIN.replace("%(numbers)s", numbers).replace("%(fifos)s", fifos)).encode(),
            _receive(files),
            b"(%s) || ny_fail room\n" % b"".join(inputs),
            _ONE.encode(),
            *(_command(token, number, part) for number, part in enumerate(parts, 1)),
            _MAIN.replace("%(numbers)s", numbers).encode(),
            b"}\n",
        )
    )
    if b"\0" in script:
        raise ValueError("embedded null byte")
    return _EXACT % len(script) if contents else _LINE, script, contents


def _input_path(token: str, number: int) -> str:
    return f"{_FOLDER}{token}.{number}.i"


def _receive(files: Mapping[str, bytes]) -> bytes:
    if not files:
        return b""
    wanted = [(len(content), quoted(path)) for path, content in files.items()]
    if len(wanted) == 1:
        return _RECEIVE.encode() + b"ny_get %d %s\n" % wanted[0]
    pieces, at = [], 1
    for length, path in wanted:
        pieces.append(b"ny_cut %d %d %s\n" % (at, length, path))
        at += length
    return b"".join(
        (
            _RECEIVE.encode(),
            b"if { head -c 1 /dev/null && tail -c +1 /dev/null; } >/dev/null; then\n",
            b"ny_get %d $ny_f.all\n" % (at - 1),
            *pieces,
            b"rm -f $ny_f.all\nelse\n",
            *(b"ny_get %d %s exactly\n" % one for one in wanted),
            b"fi\n",
        )
    )


def _command(token: str, number: int, part: Part) -> bytes:
    """Return the shell function that runs a command with its arguments and variables."""
    if not part.argv:
        raise ValueError("there is nothing to run")
    environ = part.environ
    marks = f"{environ.get(MARK, '')} {token}.{number}.".strip()
    variables = {**environ, "PWD": part.folder, MARK: marks}
    if any(not name or "=" in name for name in variables):
        raise ValueError("illegal environment variable name")
    odd = [quoted(f"{name}={variables[name]}") for name in variables if _is_peculiar(name)]
    folder = quoted(part.folder)
    lines = [
        b"ny_do%d() {\n" % number,
        b"cd -P -- %s || ny_lost %s folder\nunset OLDPWD\n" % (folder, folder),
        b"ny_path=%s\n" % (quoted(environ["PATH"]) if "PATH" in environ else b"$PATH"),
        b'set -- %s\nny_find "$1"\nshift\nset -- "$ny_x" "$@"\n'
        % b" ".join(map(quoted, part.argv)),
    ]
    words = (*part.argv, *(f"{name}={value}" for name, value in variables.items()))
    if any(map(_is_too_long, words)):
        lines.append(b"[ -d /proc/self ] && ny_no long\n")
    if odd:
        # `env` would take a program with `=` in its name for a variable.
        lines.append(b'case $1 in\n*=*) set -- /bin/sh -c \'exec "$0" "$@"\' "$@";;\nesac\n')
        lines.append(b'ny_seek env "$PATH"\nset -- "${ny_x:-env}" %s "$@"\n' % b" ".join(odd))
    given = _input_path(token, number) if part.stdin else "/dev/null"
    sizes = (part.head, part.tail, given.encode())
    lines.append(b"ny_h=%d ny_s=%d ny_i=%s\n" % sizes)
    # After all programs have been found, since one of the variables may be PATH.
    lines.append(b"ny_go() {\ntrap - USR1\n")
    lines += [
        b"export %s=%s\n" % (name.encode(), quoted(value))
        for name, value in variables.items()
        if not _is_peculiar(name)
    ]
    return b"".join((*lines, b'exec "$@"\n}\nny_run "$@"\n}\n'))


def _is_peculiar(name: str) -> bool:
    is_plain = name.isascii() and name.isidentifier()
    return not is_plain or name in PECULIAR or name.startswith(_FOR_LOADERS)


def _is_too_long(word: str) -> bool:
    return len(word.encode("utf-8", "replace")) >= _LONGEST_WORD


def _fits_script(stdin: bytes) -> bool:
    return len(stdin) <= _SHORT and b"\0" not in stdin


def quoted(text: str) -> bytes:
    """Return a text as one word of a POSIX shell."""
    try:
        return _quoted_bytes(os.fsencode(text))
    except UnicodeEncodeError:  # a lone surrogate, which JSON can hold
        return _quoted_bytes(text.encode("utf-8", "replace"))


def _quoted_bytes(content: bytes) -> bytes:
    return b"'%s'" % content.replace(b"'", b"'\\''")
