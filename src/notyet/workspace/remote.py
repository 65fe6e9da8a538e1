"""What the files of a workspace elsewhere look like: the fingerprint of `workspace`, taken there.

It takes one round trip, and needs only a POSIX shell and git there. The same holds as here: no
command that a repository names may run, and what cannot be told makes the files unknown.
"""

from __future__ import annotations

from notyet.checks.remote import run_there
from notyet.workspace import content, git, look, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.core.remote import Remote
    from notyet.workspace.look import Scope

_LEAST_DIGITS = 40  # of what git calls a hash
_BLOCKS_OF_A_BIG_FILE = 128 * 1024  # of 512 bytes; beyond, size and time stand for the content
# Its arguments: for each scope the folder, the number of paths, and these. It prints a line each.
# A git, or any other program, that lies in the project must not run: relative folders are left out
# of the PATH. What goes wrong in the middle is written to descriptor 3, past the hash.
_LOOK = r"""
LC_ALL=C; export LC_ALL
path=; IFS=:; set -f
for folder in $PATH; do
  case $folder in /*) path=$path${path:+:}$folder ;; esac
done
set +f; IFS='
'
PATH=$path; export PATH
unset CDPATH %(unset)s
%(quiet)s
odd=$(printf '\001')
git() { command git %(harmless)s "$@"; }
unknown() { echo unknown >&3; }
if ls -d --full-time / > /dev/null 2>&1; then full=--full-time
elif ls -dT / > /dev/null 2>&1; then full=-T
else full=
fi
inside() { # a repository in this one: what is in it, but for what git keeps
  [ -e "$1/.git" ] || [ -L "$1/.git" ] || return 0
  [ "$(find "./$1" -name .git -prune -o -print | wc -l)" -le %(entries)d ] || unknown
  find "./$1" -name .git -prune -o ! -type d -exec ls -dn $full {} +
  find "./$1" -name .git -prune -o -type d -print
}
into() { # the repositories that a path leads into by name; globs do not get there
  case $1 in
    *[*?\[\\]*) named=/${1%%%%[*?\[\\]*}; named=${named%%/*}; named=${named#/} ;;
    *) named=${1%%/} ;;
  esac
  while :; do
    case $named in ''|.|..|*/.|*/..) break ;; /*) unknown; break ;; esac
    inside "$named"
    case $named in */*) named=${named%%/*} ;; *) named= ;; esac
  done
}
each='
  for path do
    shift
    case $path in */) continue ;; esac
    if [ -L "./$path" ]; then
      printf "l %%s\n" "$path"
      readlink "./$path" || ls -dn '$full' "./$path"
    elif [ -d "./$path" ]; then printf "d %%s\n" "$path"
    elif [ -r "./$path" ]; then
      if [ -x "./$path" ]; then printf "x %%s\n" "$path"; else printf "f %%s\n" "$path"; fi
      set -- "$@" "./$path"
    elif [ -e "./$path" ]; then printf "? %%s\n" "$path"; ls -dn '$full' "./$path"
    fi
  done
  [ $# -gt 0 ] || exit 0
  find "$@" -prune -type f ! -size +%(blocks)d -exec git hash-object --no-filters -- {} + &&
  find "$@" -prune -type f -size +%(blocks)d -exec ls -dn '$full' {} + &&
  find "$@" -prune ! -type f -exec ls -dn '$full' {} +
'
files() { # all that stands for what the scope shows, given as globs of git
  git status %(status)s "$@" || unknown
  git ls-files -v --stage -z "$@" || unknown
  git ls-files -z --modified --others --exclude-standard "$@" || unknown
  git ls-files -z --modified --others --exclude-standard "$@" | xargs -0 sh -c "$each" sh || unknown
  hidden=$(git ls-files -v -z "$@" | tr '\n\0' '\001\n' | sed -n '/^[HM] /d; s/^. //p')
  case $hidden in
    '') ;;
    *"$odd"*) unknown ;;
    *) printf '%%s\n' "$hidden" | tr '\n' '\0' | xargs -0 sh -c "$each" sh || unknown ;;
  esac
  git -c core.quotePath=false ls-files --others --exclude-standard "$@" |
    while read -r path; do
      case $path in \"*/\") unknown ;; */) inside "${path%%/}" ;; esac
    done
  git -c core.quotePath=false ls-files --stage "$@" | sed -n 's/^160000 [^	]*	//p' |
    while read -r path; do
      case $path in \"*) unknown ;; *) inside "$path" ;; esac
    done
}
look() { # a folder, the number of its paths, these, and more that is not its
  cd -P -- "$1" && top=$(git rev-parse --show-toplevel) || exit 1
  filters=$(git config --show-scope --includes --get-regexp '%(filters)s')
  [ $? -le 1 ] || exit 1
  case $IFS$filters in *"$IFS"local*|*"$IFS"worktree*) exit 1 ;; esac
  kept=$(git rev-parse --absolute-git-dir) && common=$(git rev-parse --git-common-dir) || exit 1
  count=$2; shift 2
  left=$count
  while [ "$left" -gt 0 ]; do set -- "$@" "$1"; shift; left=$((left - 1)); done
  shift $(($# - count))
  {
    for folder in "$common" "$kept"; do
      for name in config config.worktree info/exclude info/attributes; do
        printf '\n%%s\n' "$name"; cat < "$folder/$name"
      done
    done
    if [ "$count" -eq 0 ]; then
      cd -P -- "$top" || unknown
      git rev-parse --verify --quiet HEAD; git symbolic-ref --quiet HEAD
      files
    else
      for path do into "$path"; shift; set -- "$@" ":(glob)$path"; done
      files -- "$@"
    fi
  } | git hash-object --stdin
}
while [ $# -gt 0 ]; do
  seen=$(look "$@" 3>&1 2> /dev/null)
  case $seen in ''|*[!0-9a-f]*) seen=- ;; esac
  echo "$seen"
  count=$2
  shift 2; shift "$count"
done
"""


def fingerprint_there(remote: Remote, patience: float) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    return fingerprints_there(remote, (look.Scope(remote.path),), patience)[0]


def fingerprints_there(remote: Remote, scopes: Sequence[Scope], patience: float) -> list[str]:
    """Return the fingerprint of each scope there, in one round trip; folders are paths there."""
    if not scopes:
        return []
    known = [*dict.fromkeys(map(look.simplest, scopes))]
    argv = ("/bin/sh", "-c", _script(), "sh", *arguments(known))
    ended = run_there(remote, argv, patience=patience)
    lines = ended.stdout.decode("ascii", "replace").split()
    if ended.code != 0 or ended.problem or len(lines) != len(known):
        return [""] * len(scopes)
    found = dict(zip(known, lines, strict=True))
    seen = (found[look.simplest(scope)] for scope in scopes)
    return [tree if len(tree) >= _LEAST_DIGITS else "" for tree in seen]


def arguments(scopes: Sequence[Scope]) -> Iterator[str]:
    """Yield the scopes as the script wants them."""
    for scope in scopes:
        yield from (scope.folder, str(len(scope.paths)), *scope.paths)


def _script() -> str:
    elsewhere = git.OF_ANOTHER_REPOSITORY | git.OF_OTHER_GLOBS
    quiet = git.QUIET.items()
    return _LOOK % {
        "unset": " ".join(sorted(elsewhere)),
        "quiet": " ".join(f"export {name}={value};" for name, value in quiet),
        "harmless": " ".join((*git.HARMLESS, *git.HONEST)),
        "filters": place.FILTERS[-1],
        "status": " ".join(look.STATUS),
        "entries": content.MOST_ENTRIES,
        "blocks": _BLOCKS_OF_A_BIG_FILE,
    }
