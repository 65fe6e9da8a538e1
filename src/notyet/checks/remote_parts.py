"""The parts of the script that runs a command elsewhere, in the language of a POSIX shell.

All names in it begin with `ny_`, and none is exported, so that the command sees nothing of it. It
has to mean the same to dash, bash, busybox, mksh, ksh and zsh. Descriptor 3 is the lifeline.

A command is told once, by a TERM to its group, and has half a second; then it is ended by force,
together with all that carries the mark and has left the group.
"""

from __future__ import annotations

# `ny_lost`: why a path is of no use. `ny_mine`: who carries the mark; only those can that are
# younger than the command, unless the numbers have begun anew.
BEGIN = r"""
exec 3<&0 </dev/null
echo $ny_t
echo $ny_t >&2
ny_f=
ny_say() {
trap "" PIPE
if [ "$1" -gt 128 ] 2>/dev/null; then
printf "\n%s %s\n" $ny_t "$1"
jobs -l
printf "\n%s\n" $ny_t
else
printf "\n%s %s\n%s\n" $ny_t "$1" $ny_t
fi
printf "\n%s \n%s\n" $ny_t $ny_t >&2
}
ny_no() {
ny_say "$1"
[ -z "$ny_f" ] || rm -rf $ny_f
exit 0
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
ny_l= ny_o=0
read -r ny_x ny_x ny_x ny_x ny_x </proc/loadavg
[ "${ny_x:-0}" -gt $$ ] && ny_o=$$
for ny_x in /proc/[0-9]*; do
[ ${ny_x#/proc/} -lt $ny_o ] || ny_l="$ny_l $ny_x/environ"
done
if command -v grep >/dev/null; then
grep -lsF -e $ny_t $ny_l
else
for ny_x in $ny_l; do
case $(tr -d "\000" <$ny_x) in *$ny_t*) echo $ny_x;; esac
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
"""

FIND = r"""
ny_x=$1
case $1 in
*/*) [ -e "$1" ] || case $1 in
/*) ny_lost "$1" program;;
*) ny_no gone-program;;
esac;;
*) ny_x= ny_r= IFS=:
set -f
for ny_d in $ny_path; do
ny_d=${ny_d:-.}/$1
if [ -f "$ny_d" ]; then
[ -x "$ny_d" ] && ny_x=$ny_d && break
ny_r=${ny_r:-$ny_d}
fi
done
unset IFS
set +f
[ "$ny_x" ] || ny_x=$ny_r
[ "$ny_x" ] || ny_no no-program;;
esac
[ -d "$ny_x" ] && ny_no folder-program
[ -x "$ny_x" ] || ny_no closed-program
shift
set -- "$ny_x" "$@"
"""

# A file in one piece; or several, of which only the last may be read too far.
RECEIVE = r"""
(umask 077; mkdir %(folder)s) 2>/dev/null || ny_no room
ny_f=%(folder)s
ny_get() {
(umask 077
[ "$3" ] || head -c $1 <&3 >"$2"
ny_c=$?
[ -s "$2" ] || { dd bs=1 count=$1 <&3 >"$2"; ny_c=$?; }
exit $ny_c) 2>/dev/null
ny_c=$?
[ $(wc -c <"$2") -eq $1 ] && return
[ $ny_c = 0 ] && ny_no short
ny_no room
}
"""
PIECE = b"(umask 077; tail -c +%d $ny_f/all | head -c %d >%s) 2>/dev/null || ny_no room\n"

# In a session of its own, where that can be had, or else in a group. Who watches the lifeline is
# there before the command, where it can see from outside which one that is. What is left when the
# command ends may still say something for a moment.
RUN = r"""
ny_watch() {
ny_q=$ny_p ny_g=
while read -r ny_x <&3; do
ny_s=$ny_x
ny_know
(
ny_o=$!
trap '[ "$!" = "$ny_o" ] || { kill -s KILL $!; wait $!; }; exit' TERM
sleep $ny_s &
wait $!
trap "" TERM
ny_all
kill -s KILL $$
) &
ny_g=$!
done
trap "" TERM
[ -z "$ny_g" ] || { kill $ny_g; wait $ny_g; }
ny_all
}
ny_p= ny_k=/proc/$$/task/$$/children
if [ -r $ny_k ]; then
ny_watch </dev/null >/dev/null 2>&1 &
fi
if command -v setsid >/dev/null 2>&1; then
%(input)sny_go setsid "$@" %(from)s3<&- &
ny_p=$!
else
set -m 2>/dev/null
(%(input)sny_go "$@" %(from)s) 3<&- &
ny_p=$!
set +m
fi
if [ ! -r $ny_k ]; then
ny_watch </dev/null >/dev/null 2>&1 &
fi
wait $ny_p 2>/dev/null
ny_c=$? ny_n=0
if kill -s 0 -- -$ny_p; then
sleep 0.05
kill -s TERM -- -$ny_p && ny_n=1
fi 2>/dev/null
ny_say $ny_c
exec >/dev/null 2>&1
if [ $ny_n = 1 ]; then
sleep 0.3 || sleep 1
kill -s KILL -- -$ny_p
fi
exit 0
"""
