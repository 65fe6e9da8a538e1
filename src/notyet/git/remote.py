"""What the files of a workspace elsewhere look like: the fingerprint of `workspace`, taken there.

It takes one round trip, and needs only a POSIX shell and git there. The same holds as here: no
command that a repository names may run, and what cannot be told makes the files unknown.
"""

from __future__ import annotations

from notyet.git import (
    content,
    look,
)
from notyet.git import (
    look as one_look,
)
from notyet.git import (
    place as settings,
)
from notyet.git import (
    run as git,
)
from notyet.git import (
    run as unknown,
)
from notyet.run.remote import run_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from notyet.core.remote import Remote
    from notyet.git.look import Scope

_LEAST_DIGITS = 40  # of what git calls a hash
_BLOCKS_OF_A_BIG_FILE = 128 * 1024  # of 512 bytes; beyond, size and time stand for the content
# How the script says why it cannot tell; what else goes wrong is git's.
_REASONS = {
    "-filters": unknown.FILTERED,
    "-ignored": unknown.IGNORED,
    "-linked": unknown.LINKED,
    "-many": unknown.TOO_MUCH,
    "-names": unknown.NOT_NAMED,
    "-odd": unknown.ODD,
    "-outside": unknown.OUTSIDE,
    "-read": unknown.UNREADABLE,
}
# Its arguments: for each scope the folder, the number of paths, and these. It prints a line each.
# A git, or any other program, that lies in the project must not run: its folders are left out of
# the PATH, as relative ones are. What goes wrong in the middle is written to descriptor 3, past
# the hash. Where `ls` cannot tell the time of a change to the second, it fails for what needs it.
_LOOK = r"""
LC_ALL=C; export LC_ALL
IFS='
'
unset CDPATH %(unset)s
%(quiet)s
git() { command git %(harmless)s "$@"; }
unknown() { echo "-$1" >&3; }
outside() { # leaves what lies in a folder out of the PATH
  path=; IFS=:; set -f
  for folder in $PATH; do
    case $folder in /*) ;; *) continue ;; esac
    real=$(cd -P -- "$folder" 2> /dev/null && pwd -P) || continue
    case $real/ in "$1"/*) ;; *) path=$path${path:+:}$folder ;; esac
  done
  set +f; IFS='
'
  PATH=$path; export PATH
}
inside() { # a repository in this one
  [ -e "$1/.git" ] || [ -L "$1/.git" ] || return 0
  all "$1"
}
all() { # what is in a folder of which git lists nothing, but for what git keeps
  [ -d "$1" ] && [ ! -L "$1" ] || return 0
  led=yes
  [ "$(find "./$1" -name .git -prune -o -print | wc -l)" -le %(entries)d ] || unknown many
  find "./$1" -name .git -prune -o ! -type d -exec ls -dnc $full {} + || unknown read
  find "./$1" -name .git -prune -o -type d -print || unknown read
}
into() { # the repositories that a path leads into by name; globs do not get there
  case $1 in
    *[*?\[\\]*) named=/${1%%%%[*?\[\\]*}; named=${named%%/*}; named=${named#/} ;;
    *) named=${1%%/} ;;
  esac
  while :; do
    case $named in ''|.|..|*/.|*/..) break ;; /*) unknown odd; break ;; esac
    [ ! -L "$named" ] || unknown linked
    last=${named#"${named%%?}"} # with a sign of a glob, git does not take it for a folder
    case $(git ls-files --stage -- ":(glob)${named%%?}\\$last") in
      160000*) all "$named" ;;
      *) inside "$named" ;;
    esac
    case $named in */*) named=${named%%/*} ;; *) named= ;; esac
  done
}
each='
  for path do
    shift
    case $path in */) continue ;; esac
    if [ -L "./$path" ]; then
      printf "l %%s\n" "$path"
      readlink "./$path" || ls -dnc $full "./$path" || exit 1
    elif [ -d "./$path" ]; then printf "d %%s\n" "$path"
    elif [ -r "./$path" ]; then
      if [ -x "./$path" ]; then printf "x %%s\n" "$path"; else printf "f %%s\n" "$path"; fi
      set -- "$@" "./$path"
    elif [ -e "./$path" ]; then printf "? %%s\n" "$path"; ls -dnc $full "./$path" || exit 1
    fi
  done
  [ $# -gt 0 ] || exit 0
  find "$@" -prune -type f ! -size +%(blocks)d -exec git hash-object --no-filters -- {} + &&
  find "$@" -prune -type f -size +%(blocks)d -exec ls -dnc $full {} + &&
  find "$@" -prune ! -type f -exec ls -dnc $full {} +
'
files() { # all that stands for what the scope shows, given as globs of git
  git status %(status)s "$@" || unknown git
  git ls-files -v --stage -z "$@" || unknown git
  git ls-files -z --modified --others --exclude-standard "$@" || unknown git
  git ls-files -z --modified --others --exclude-standard "$@" |
    xargs -0 sh -c "$each" sh || unknown odd
  hidden=$(git ls-files -v -z "$@" | tr '\n\0' '\001\n' | sed -n '/^[HM] /d; s/^. //p')
  case $hidden in
    '') ;;
    *"$odd"*) unknown odd ;;
    *) printf '%%s\n' "$hidden" | tr '\n' '\0' | xargs -0 sh -c "$each" sh || unknown odd ;;
  esac
  git -c core.quotePath=false ls-files --others --exclude-standard "$@" |
    while read -r path; do
      case $path in \"*/\") unknown odd ;; */) inside "${path%%/}" ;; esac
    done
  git -c core.quotePath=false ls-files --stage "$@" | sed -n 's/^160000 [^	]*	//p' |
    while read -r path; do
      case $path in \"*) unknown odd ;; *) all "$path" ;; esac
    done
}
look() { # a folder, the number of its paths, these, and more that is not its
  cd -P -- "$1" || { unknown outside; exit 1; }
  root=$(pwd -P)
  while [ ! -e "$root/.git" ] && [ ! -L "$root/.git" ] && [ "$root" ]; do root=${root%%/*}; done
  outside "${root:-//}"
  top=$(git rev-parse --show-toplevel) || { [ -e "$root/.git" ] || unknown outside; exit 1; }
  filters=$(git config --show-scope --includes --get-regexp '%(filters)s')
  [ $? -le 1 ] || exit 1
  case $IFS$filters in *"$IFS"local*|*"$IFS"worktree*) unknown filters; exit 1 ;; esac
  kept=$(git rev-parse --absolute-git-dir) && common=$(git rev-parse --git-common-dir) || exit 1
  excludes=$(git config --includes --type=path --get core.excludesFile) ||
    excludes=${XDG_CONFIG_HOME:-$HOME/.config}/git/ignore
  case $excludes in /*) ;; *) excludes=$top/$excludes ;; esac
  if [ "$(git rev-parse --show-prefix)" ] && [ -z "$(git ls-files . | sed -n 1p)" ]; then
    git check-ignore --quiet %(any)s
    case $? in 0) unknown ignored ;; 1) ;; *) exit 1 ;; esac
  fi
  odd=$(printf '\001')
  if ls -d --full-time / > /dev/null 2>&1; then full=--full-time; else full=-T; fi
  export full
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
    printf '\nexcludes\n'; cat < "$excludes"
    if [ "$count" -eq 0 ]; then
      cd -P -- "$top" || unknown read
      git rev-parse --verify --quiet HEAD; git symbolic-ref --quiet HEAD
      files
    else
      led=
      for path do into "$path"; shift; set -- "$@" ":(glob)$path"; done
      named=$(git ls-files --cached --others --exclude-standard -- "$@" | sed -n 1p)
      [ "$led$named" ] || unknown names
      files -- "$@"
    fi
  } | git hash-object --stdin
}
while [ $# -gt 0 ]; do
  seen=$(look "$@" 3>&1 2> /dev/null)
  case $seen in *-*) seen=-${seen#*-}; seen=${seen%%%%"$IFS"*} ;; ''|*[!0-9a-f]*) seen=- ;; esac
  echo "$seen"
  count=$2
  shift 2; shift "$count"
done
"""


def fingerprint_there(remote: Remote, patience: float) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    return fingerprints_there(remote, (look.Scope(remote.path),), patience)[0]


def fingerprints_there(
    remote: Remote,
    scopes: Sequence[Scope],
    patience: float,
    reasons: dict[Scope, str] | None = None,
) -> list[str]:
    """Return the fingerprint of each scope there, in one round trip; folders are paths there.

    `reasons` is told why, for those that are unknown.
    """
    if not scopes:
        return []
    known = [*dict.fromkeys(map(look.simplest, scopes))]
    argv = ("/bin/sh", "-c", _script(), "sh", *arguments(known))
    ended = run_there(remote, argv, patience=patience)
    lines = ended.stdout.decode("ascii", "replace").split()
    if ended.code != 0 or ended.problem or len(lines) != len(known):
        lines = [""] * len(known)
    found = dict(zip(known, lines, strict=True))
    seen = [found[look.simplest(scope)] for scope in scopes]
    for scope, tree in zip(scopes, seen, strict=True):
        if len(tree) < _LEAST_DIGITS and reasons is not None:
            reasons[scope] = _REASONS.get(tree, unknown.REFUSED) if tree else unknown.LOST
    return [tree if len(tree) >= _LEAST_DIGITS else "" for tree in seen]


def arguments(scopes: Sequence[Scope]) -> Iterator[str]:
    """Yield the scopes as the script wants them."""
    for scope in scopes:
        yield from (scope.folder, str(len(scope.paths)), *scope.paths)


def _script() -> str:
    quiet = git.QUIET.items()
    return _LOOK % {
        "unset": " ".join(sorted(git.LEFT_OUT)),
        "quiet": " ".join(f"export {name}={value};" for name, value in quiet),
        "harmless": " ".join((*git.HARMLESS, *git.HONEST)),
        "filters": settings.FILTERS,
        "any": one_look.ANY,
        "status": " ".join(one_look.STATUS),
        "entries": content.MOST_ENTRIES,
        "blocks": _BLOCKS_OF_A_BIG_FILE,
    }
