"""Load the configuration of a project in a workspace on another machine (M5)."""

from __future__ import annotations

import os
from errno import EACCES, EFBIG, EINVAL, EIO, EISDIR, ENOENT

from notyet.config.files import (
    folders_of,
    host_files,
    looked_for,
    project_tomls,
    trusted_folders,
)
from notyet.config.find import MOST_BYTES, about_folder, above
from notyet.core.record import Record
from notyet.core.remote import Remote, is_remote, remote_from
from notyet.core.text import bounded, clean, visible
from notyet.run.ssh_job import run_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from notyet.config.load import Layers
    from notyet.core.gate import Exit


class RemoteFiles(Record, kw_only=True):
    """Which files of a workspace to load."""

    environ: Mapping[str, str]
    here: str  # the agent's folder on this machine
    hosts: tuple[str, ...]  # whose files are always read
    left_to: tuple[str, ...]  # hosts that run their own files on this machine


def add_files_there(loaded: Layers, looking: RemoteFiles, patience: float) -> None:
    """Add the files of a workspace: the nearest `notyet.toml`, and those of the hosts wanted."""
    place = remote_from(loaded.workspace)
    source = RemoteSource(place.url, patience, _hosts(loaded, looking), loaded.is_recorded)
    loaded.has_root = False  # a file here is above none of those
    loaded.add_tomls(project_tomls(place.url, loaded.is_recorded, source))
    hosts = _hosts(loaded, looking)  # a file there may name more
    source.look_for(hosts)
    for name in hosts:
        folders = folders_of(place.url, name, loaded.is_recorded, source)
        if is_remote(loaded.project):
            folders.append(loaded.project)
        for folder in dict.fromkeys(folders):
            for file in host_files(
                name, folder, looking.environ, loaded.is_recorded, source=source, here=looking.here
            ):
                # No host runs files of another machine itself.
                is_ours = name not in looking.left_to and loaded.reads(name, file)
                if is_remote(file.path) or is_ours:
                    loaded.add(file)
    if source.problem and patience > 0:
        loaded.workspace_problem = source.problem
        loaded.warnings.append(
            f"the files of {visible(place.url)} cannot be read: {source.problem}; "
            f"{_what_is_in_force(loaded, place.machine)}"
        )


def _hosts(loaded: Layers, looking: RemoteFiles) -> list[str]:
    return [*dict.fromkeys((*looking.hosts, *loaded.read_hosts))]


def _what_is_in_force(loaded: Layers, machine: str) -> str:
    """Return which files of a machine are in force although it did not answer."""
    stays = "what was trusted of it stays in force" if _has_layer(loaded, machine) else ""
    programs = ", ".join(map(visible, loaded.not_run))
    missed = f"{programs} cannot be run without being looked at" if programs else ""
    return ", but ".join(filter(None, (stays, missed))) or "none of them is in force"


def _has_layer(loaded: Layers, machine: str) -> bool:
    """Return True if a file of that machine is in force."""
    paths = [file.path for file, _ in loaded.layers if file.path not in loaded.not_run]
    return any(path.startswith(machine + "/") for path in paths)


# The files of a workspace on another machine, fetched by one command (M5).
#
# Its output is untrusted: it is framed by a random mark that no file can contain, limited in size,
# and only files that we asked for are used.

_MOST_FETCHED = 16 * 1024 * 1024  # bytes of all files together
_LONGEST_REASON = 300
# Arguments: the mark, the size limit of one file, names to look for in every folder, names to look
# for in projects only, the numbers of folders that always count as projects, folders from the
# nearest up. A project is the first folder, a repository, or a folder with a notyet.toml.
_LOOK = """\
m=$1 most=$2 every=$3 projects=$4 also=$5
shift 5
look() {
  p=${d%/}/$1 k=file x=-
  if [ ! -e "$p" ] && [ ! -L "$p" ]; then return 1
  elif [ ! -e "$p" ]; then k=dangling
  elif [ -d "$p" ]; then k=folder
  elif [ ! -f "$p" ]; then k=other
  elif [ ! -r "$p" ]; then k=closed
  elif [ $(wc -c <"$p") -gt $most ]; then k=large
  fi
  if [ -x "$p" ]; then x=x; fi
  printf '\\n%s file %s %s %s\\n' "$m" "$1" "$k" "$x"
  if [ "$k" = file ]; then head -c $most "$p"; fi
}
if [ ! -e "$1/." ]; then
  k=gone
  if [ -e "$1" ]; then k=entered; if [ ! -d "$1" ]; then k=folder; fi; fi
  printf '\\n%s no %s\\n' "$m" "$k"
  exit 0
fi
is_project=1 number=0
for d do
  case $also in *" $number "*) is_project=1;; esac
  number=$((number + 1))
  i=$(ls -di "${d%/}/." 2>/dev/null)
  i=${i#"${i%%[! ]*}"}
  printf '\\n%s folder %s\\n' "$m" "${i%% *}"
  for n in $every; do
    if look "$n"; then case $n in .git|notyet.toml) is_project=1;; esac; fi
  done
  if [ "$is_project" ]; then for n in $projects; do look "$n"; done; fi
  is_project=
done
printf '\\n%s end\\n' "$m"
"""
_PROBLEMS = {
    "folder": (EISDIR, "it is a folder, not a file"),
    "closed": (EACCES, "it may not be read"),
    "dangling": (ENOENT, "it is a link to a file that is not there"),
    "other": (EINVAL, "it is not a regular file"),
    "large": (EFBIG, f"it is larger than {MOST_BYTES // 1024 // 1024} MB"),
}
_NO_FOLDER = {
    "gone": "does not exist",
    "folder": "is not a folder",
    "entered": "may not be entered",
}


class _Found(Record, kw_only=True):
    """One file on the other machine."""

    kind: str
    is_executable: bool
    content: bytes


class RemoteSource:
    """The files of a workspace and of the folders above it, fetched at once."""

    def __init__(
        self,
        workspace: str,
        patience: float,
        hosts: Iterable[str] = (),
        is_recorded: Callable[[str], bool] = lambda _path: False,
    ) -> None:
        """Fetch the files within `patience` seconds; with 0, do not connect.

        Files of hosts are looked for in projects, and in folders where one was trusted.
        """
        self._place = remote_from(workspace)
        self._patience = patience
        self._is_recorded = is_recorded
        self._files: dict[str, _Found] = {}
        self._folders: dict[str, str] = {}
        self._hosts: set[str] = set()
        self.problem = f"{self._place.destination} was not contacted"
        if patience > 0:
            self.look_for(hosts)

    @property
    def workspace(self) -> str:
        """The address of the workspace."""
        return self._place.url

    def look_for(self, hosts: Iterable[str]) -> None:
        """Fetch the files of these hosts too, unless they were."""
        wanted = self._hosts.union(hosts)
        if self._patience <= 0 or (wanted == self._hosts and not self.problem):
            return
        self._hosts = wanted
        every, projects = looked_for(wanted)
        also = trusted_folders(self._place.url, wanted, self._is_recorded)
        numbers = [n for n, folder in enumerate(above(self._place.url)) if folder in also]
        names = (" ".join(every), " ".join(projects), f" {' '.join(map(str, numbers))} ")
        try:
            self._take(_fetch(self._place, names, self._patience))
            self.problem = ""
        except _Unreachable as error:
            self.problem = str(error)
            self._patience = 0.0  # do not wait for it twice

    def _take(self, parts: Sequence[bytes]) -> None:
        folders = iter(above(self._place.path))
        folder = ""
        for part in parts:
            head, _, content = part.partition(b"\n")
            words = head.decode("ascii", "replace").split(" ")
            if words[0] == "folder":
                folder = next(folders, "")
                number = words[1] if len(words) > 1 else ""
                self._folders[folder] = number if number.isdecimal() else ""
            elif words[0] == "file" and len(words) == 4:  # noqa: PLR2004  # as `_LOOK` prints it
                name = os.path.join(folder, words[1])
                self._files[name] = _Found(
                    kind=words[2], is_executable=words[3] == "x", content=content
                )

    def exists(self, name: str) -> bool:
        """Return True if a file exists."""
        return remote_from(name).path in self._files

    def text_of(self, name: str) -> str:
        """Return the text of a file. Raises OSError."""
        found = self._files.get(remote_from(name).path)
        if found is None:
            raise OSError(EIO, self.problem or "it is not there", name)
        if found.kind != "file":
            raise OSError(*_PROBLEMS.get(found.kind, _PROBLEMS["other"]), name)
        return found.content.decode("utf-8", "surrogateescape")

    def is_executable(self, name: str) -> bool:
        """Return True if a file is executable."""
        found = self._files.get(remote_from(name).path)
        return found is not None and found.is_executable

    def folder_id(self, name: str) -> str:
        """Return the inode of a file's folder; empty if unknown."""
        return self._folders.get(about_folder(remote_from(name).path), "")


class _Unreachable(Exception):  # noqa: N818  # it never leaves this module
    """The files could not be fetched; its text is the reason."""


def _fetch(place: Remote, names: tuple[str, ...], wait: float) -> list[bytes]:
    """Run the command there; return the parts of its output. Raises _Unreachable."""
    mark = os.urandom(12).hex()
    argv = ("/bin/sh", "-c", _LOOK, "sh", mark, str(MOST_BYTES), *names, *above(place.path))
    done = run_there(place, argv, patience=wait, head=_MOST_FETCHED)
    _, *parts = done.stdout.split(f"\n{mark} ".encode())
    if done.problem or done.timed_out or done.code != 0:
        raise _Unreachable(_why(place, done, wait))
    if parts and parts[0].startswith(b"no "):
        kind = parts[0][3:].strip().decode("ascii", "replace")
        why = _NO_FOLDER.get(kind, _NO_FOLDER["gone"])
        raise _Unreachable(f"{visible(place.path)} {why} on {place.destination}")
    if not parts or parts[-1].strip() != b"end" or done.left_out:
        raise _Unreachable(f"{place.destination} sent an unexpected answer")
    return parts


def _why(place: Remote, done: Exit, wait: float) -> str:
    if done.problem:
        reason = "; ".join(filter(None, (done.problem, done.advice)))
        return bounded(" ".join(clean(reason).split()), _LONGEST_REASON)
    if done.timed_out:
        return f"{place.destination} did not answer within {wait:.1f} s"
    stderr = " ".join(clean(done.stderr.decode("utf-8", "replace")).split())
    how = f"exit code {done.code}" if done.code is not None else f"signal {done.signal}"
    return bounded(f"looking on {place.destination} ended with {how}: {stderr}", _LONGEST_REASON)
