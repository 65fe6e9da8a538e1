# Run the commands of a session on this machine, all at the same time.
#
# Descriptor 3 is the lifeline: a line with a number ends that command, its end ends everything.
# For each command that has ended, a record is printed, marked by a secret that no command knows.
# The output of a command goes to files, so that nobody holds up its result by keeping it open.
#
# Names of variables begin with ny_, since a variable of this machine's environment that is set here
# would stay exported. Only built-in commands print the secret: arguments of others can be seen.
# It must mean the same to dash, bash, busybox and mksh. These lines are sent without comments.
#
#   ny_secret ny_mark      marks of records, and of the environment of commands
#   ny_folder ny_folders   for the files of this session; all folders to remove
#   ny_numbers             of the commands
#   ny_seconds             after which everything is ended, in case the connection dies silently
#   ny_head ny_tail        bytes that are kept of a long output

exec 3<&0 </dev/null 2>/dev/null
echo $ny_secret

record() {
  echo "
$ny_secret $1 $2"
  show $ny_folder/$1.out
  echo "
$ny_secret"
  show $ny_folder/$1.err
  echo "
$ny_secret"
}

# Print an output; of a long one, the beginning and the end.
show() {
  [ -s $1 ] || [ -e $1.head ] || return
  if [ -e $1.head ] || [ $(wc -c <$1) -gt $((ny_head + ny_tail)) ]; then
    cut_short $1
    cat $1.head
    echo "
... more was printed here, and left out ..."
    cat $1.tail $1 | tail -c $ny_tail
  else
    cat $1
  fi
}

cut_short() {
  [ -e $1.head ] || head -c $ny_head $1 >$1.head
  tail -c $ny_tail $1 >>$1.tail
  : >$1
}

# Signal the process groups of all commands, and what has their mark but left its group.
signal_all() {
  for ny_x in $ny_folder/*.pid; do
    read -r ny_pid <$ny_x || continue
    [ $ny_pid = over ] || { kill -s $1 -- -$ny_pid && ny_found=1; }
  done
  signal_marked $1 $ny_mark
}

signal_marked() {
  for ny_x in $(grep -lsF -e $2 /proc/[0-9]*/environ); do
    ny_x=${ny_x%/environ}
    kill -s $1 ${ny_x#/proc/} && ny_found=1
  done
}

pause() {
  sleep $1 || sleep 1
}

end_all() {
  trap "" TERM
  ny_found=
  signal_all TERM
  [ "$ny_found" ] || { pause 0.1; signal_all TERM; } # one that is being started has no mark yet
  if [ "$ny_found" ]; then
    signal_all CONT
    pause 0.5
    signal_all KILL
    signal_all KILL
  fi
  # A command that has just ended may still write how.
  for ny_x in 1 2 3; do
    rm -rf $ny_folders && break
    pause 0.1
  done
}

# End one command: politely, then not.
end() {
  until read -r ny_pid <$ny_folder/$1.pid; do
    [ -d $ny_folder ] || return
    pause 0.1
  done
  [ $ny_pid != over ] || return
  kill -s TERM -- -$ny_pid
  kill -s CONT -- -$ny_pid
  pause 0.5
  read -r ny_x <$ny_folder/$1.pid
  [ $ny_x = over ] || kill -s KILL -- -$ny_pid
  signal_marked KILL $ny_mark.$1.
  signal_marked KILL $ny_mark.$1.
}

watch() {
  exec >/dev/null
  while read -r ny_x <&3; do end $ny_x & done
  end_all
  kill -s KILL $ny_guard $ny_runs $$
}

# Cut outputs that grow beyond 64 MB. End everything when the time is over, or the script was killed.
guard() {
  exec >/dev/null 3<&-
  ny_ticks=0
  while kill -s 0 $$ && [ $ny_ticks -lt $((ny_seconds * 2)) ]; do
    sleep 0.5 || { sleep 1; ny_ticks=$((ny_ticks + 1)); }
    ny_ticks=$((ny_ticks + 1))
    for ny_x in $(find $ny_folder \( -name "*.out" -o -name "*.err" \) -size +131072); do
      cut_short $ny_x
    done
  done
  end_all
  kill -s KILL 0
}

# Stop before the commands start: there is no room for what they are given.
fail() {
  for ny_x in $ny_numbers; do record $ny_x room; done
  kill $ny_guard
  rm -rf $ny_folders
  exit 0
}

# Receive all files as one piece, then cut one of them out of it.
receive() {
  head -c $1 <&3 >$ny_folder/all
  [ $(wc -c <$ny_folder/all) -eq $1 ] || fail
}

cut_out() {
  tail -c +$1 $ny_folder/all | head -c $2 >"$3"
  [ $(wc -c <"$3") -eq $2 ] || fail
}

# What a command does itself: enter its folder, become its program, or say why it cannot. Everything
# is quoted here, since IFS may be one of its variables.
enter() {
  cd -P -- "$1" 2>/dev/null && unset OLDPWD && return
  [ -e "$1" ] || cannot gone-folder
  [ -d "$1" ] || cannot no-folder
  cannot closed-folder
}

start() {
  case $1 in
    */*)
      [ -e "$1" ] || cannot gone-program
      [ ! -d "$1" ] || cannot folder-program
      [ -x "$1" ] || cannot closed-program
      ;;
    *) command -v "$1" >/dev/null || cannot no-program ;;
  esac
  [ -z "$ny_setsid" ] || exec "$ny_setsid" "$@"
  exec "$@"
}

cannot() {
  echo "$1" >$ny_file.cannot
  exit 127
}

# Run command $1 in its own session, where there is setsid, else its own group.
# Background processes may print for a moment after it has ended. Some shells cannot tell a signal
# from an exit code; then it is a code.
run() {
  exec 3<&-
  ny_file=$ny_folder/$1
  [ "$ny_setsid" ] || set -m
  (command_$1) >>$ny_file.out 2>>$ny_file.err &
  ny_pid=$!
  set +m
  echo $ny_pid >$ny_file.pid
  wait $ny_pid
  ny_word=$?
  if [ $ny_word -gt 128 ]; then
    jobs >$ny_file.jobs
    read -r ny_x <$ny_file.jobs
    case $ny_x in
      "" | *Done* | *Exit* | *Running*) ;;
      *) ny_word="signal $((ny_word - 128))" ;;
    esac
  fi
  [ ! -s $ny_file.cannot ] || read -r ny_word <$ny_file.cannot
  if kill -s 0 -- -$ny_pid; then
    pause 0.05
    kill -s TERM -- -$ny_pid && { pause 0.05; kill -s KILL -- -$ny_pid; }
  fi
  echo over >$ny_file.pid
  echo $1 $ny_word
}

ny_guard= ny_runs=
mkdir -m 700 $ny_folders || { ny_folders=; fail; }
ny_setsid=$(command -v setsid)
guard &
ny_guard=$!
# Here follow the files to receive, and a function for each command.
{
  for ny_x in $ny_numbers; do
    run $ny_x &
    ny_runs="$ny_runs $!"
  done
  watch &
  exec 3<&-
  wait $ny_runs
  kill $!
} | while read -r ny_x ny_word; do
  record $ny_x "$ny_word"
done
exec >/dev/null 3<&-
kill $ny_guard
end_all
