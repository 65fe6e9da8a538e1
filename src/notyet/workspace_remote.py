"""What the files of a workspace elsewhere look like: the fingerprint of `workspace`, taken there.

It takes one round trip, and needs only a POSIX shell and git there. The same holds as here: no
command that a repository names may run, and what cannot be told makes the files unknown.
"""

from __future__ import annotations

from notyet import workspace, workspace_content, workspace_git, workspace_place
from notyet.checks.remote import run_there
from notyet.core.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.remote import Remote
    from notyet.workspace import Scope

_LEAST_DIGITS = 40  # of what git calls a hash
_BLOCKS_OF_A_BIG_FILE = 128 * 1024  # of 512 bytes; beyond, size and time stand for the content
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
unset %(unset)s
%(quiet)s
git() { command git %(harmless)s "$@"; }
unknown() { echo unknown >&3; }
cd -P -- "$1" && top=$(git rev-parse --show-toplevel) && cd -P -- "$top" || exit 1
filters=$(git config --show-scope --includes --get-regexp '%(filters)s')
[ $? -le 1 ] || exit 1
case $IFS$filters in *"$IFS"local*|*"$IFS"worktree*) exit 1 ;; esac
if ls -d --full-time / > /dev/null; then full=--full-time
elif ls -dT / > /dev/null; then full=-T
else full=
fi
inside() { # a repository in this one: what is in it, but for what git keeps
  [ -e "$1/.git" ] || [ -L "$1/.git" ] || return 0
  [ "$(find "./$1" -name .git -prune -o -print | wc -l)" -le %(entries)d ] || unknown
  find "./$1" -name .git -prune -o ! -type d -exec ls -dn $full {} +
  find "./$1" -name .git -prune -o -type d -print
}
each='
  for path do
    shift
    case $path in */) continue ;; esac
    if [ -d "./$path" ] && [ ! -L "./$path" ]; then printf "d %%s\n" "$path"
    elif [ -r "./$path" ] || [ -L "./$path" ]; then
      [ ! -x "./$path" ] || printf "x %%s\n" "$path"
      set -- "$@" "./$path"
    elif [ -e "./$path" ]; then printf "? %%s\n" "$path"
    fi
  done
  [ $# -gt 0 ] || exit 0
  find "$@" -prune -type f ! -size +%(blocks)d -exec git hash-object --no-filters -- {} + &&
  find "$@" -prune -type f -size +%(blocks)d -exec ls -dn '$full' {} + &&
  find "$@" -prune ! -type f -exec ls -dn '$full' {} +
'
{
  {
    git status %(status)s --branch || unknown
    git ls-files -z --modified --others --exclude-standard || unknown
    git ls-files -z --modified --others --exclude-standard | xargs -0 sh -c "$each" sh || unknown
    git -c core.quotePath=false ls-files --others --exclude-standard |
      while read -r path; do
        case $path in \"*/\") unknown ;; */) inside "${path%%/}" ;; esac
      done
    git -c core.quotePath=false ls-files --stage | sed -n 's/^160000 [^	]*	//p' |
      while read -r path; do
        case $path in \"*) unknown ;; *) inside "$path" ;; esac
      done
  } | git hash-object --stdin
} 3>&1 2> /dev/null
"""


def fingerprint_there(remote: Remote, patience: float) -> str:
    """Return a short text that changes when the files do; empty when that cannot be told."""
    argv = ("/bin/sh", "-c", _script(), "sh", remote.path)
    ended = run_there(remote, argv, patience=patience)
    found = ended.stdout.decode("ascii", "replace").strip()
    is_hash = len(found) >= _LEAST_DIGITS and found.isalnum()
    return found if ended.code == 0 and is_hash and not ended.problem else ""


def fingerprints_there(
    remote: Remote, scopes: Sequence[Scope], patience: float = workspace.PATIENCE
) -> list[str]:
    """Return the fingerprint of each scope there; their folders are paths there."""
    known = {
        scope: fingerprint_there(replace(remote, path=scope.folder), patience)
        for scope in dict.fromkeys(scopes)
    }
    return [known[scope] for scope in scopes]


def _script() -> str:
    elsewhere = workspace_git.OF_ANOTHER_REPOSITORY | workspace_git.OF_OTHER_GLOBS
    quiet = workspace_git.QUIET.items()
    return _LOOK % {
        "unset": " ".join(sorted(elsewhere)),
        "quiet": " ".join(f"export {name}={value};" for name, value in quiet),
        "harmless": " ".join((*workspace_git.HARMLESS, *workspace_git.HONEST)),
        "filters": workspace_place.FILTERS[-1],
        "status": " ".join(workspace.STATUS),
        "entries": workspace_content.MOST_ENTRIES,
        "blocks": _BLOCKS_OF_A_BIG_FILE,
    }
