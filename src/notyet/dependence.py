"""Which files a gate depends on: those of a repository, or what its `paths` name there (N1)."""

from __future__ import annotations

from notyet import system
from notyet.asking import folder_of
from notyet.core.command import Command
from notyet.core.gate import place_of
from notyet.core.record import Record
from notyet.paths import real_folder
from notyet.workspace.look import Scope
from notyet.workspace.repository import top_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.remote import Remote


class Files(Record):
    """Some files, here or on another machine."""

    scope: Scope
    machine: Remote | None = None  # None: here

    @property
    def where(self) -> str:
        """The machine, as text; empty: here."""
        return self.machine.machine if self.machine is not None else ""

    @property
    def name(self) -> str:
        """Where they are, for whoever reads it."""
        folder = self.scope.folder
        return self.machine.at(folder).url if self.machine is not None else folder

    @property
    def key(self) -> list[str]:
        """What is equal for equal files; a folder stands for the repository that it is in."""
        folder, paths = self.scope.folder, self.scope.paths
        is_whole = self.machine is None and not paths
        return [self.where, top_of(folder) if is_whole else folder, *paths]


def scope_key(parts: tuple[Files, ...]) -> str:
    """Return a short name for some files, equal for equal ones in every process."""
    from notyet.core.definition import digest_of
    from notyet.core.json_text import dumps

    return digest_of(dumps([part.key for part in parts]))


def files_of(gate: Gate, event: StopEvent | StartEvent) -> tuple[Files, ...]:
    """Return the files that a gate depends on; empty where nobody can tell.

    Those of the agent count in any case, wherever the gate looks: it is asked if they changed.
    """
    remote = place_of(gate, event.workspace)
    parts = _files_here(gate, event) if remote is None else _files_there(gate, remote, event)
    return tuple(dict.fromkeys(parts)) if all(part.scope.folder for part in parts) else ()


def _files_here(gate: Gate, event: StopEvent | StartEvent) -> list[Files]:
    cwd, folder = map(real_folder, (event.cwd, folder_of(gate)))
    # A user's own file lies outside of all projects, and means the one that the agent works in.
    is_users = not _is_inside(cwd, folder) and not top_of(folder)
    # So does one made in code. The folder that the agent is in may be another one at every stop.
    is_agents = is_users or not folder
    base = cwd if is_agents else folder
    top = top_of(base)
    if gate.paths and top:
        parts = [Files(Scope(top if is_agents else base, gate.paths))]
    else:
        parts = [_whole(base)]
    if event.workspace:
        parts.append(_workspace(event))
    elif not _is_inside(cwd, base) or top_of(cwd) != top:
        parts.append(_whole(cwd))
    dir = real_folder(gate.check.dir) if isinstance(gate.check, Command) else ""  # noqa: A001  # its name there
    if dir and top_of(dir) != top and not (is_users and _is_inside(dir, folder)):
        parts.append(_whole(dir))
    return parts


def _whole(folder: str) -> Files:
    """Return the files of the repository that a folder is in; it matters whether git ignores it."""
    return Files(Scope(folder if top_of(folder) else ""))


def _files_there(gate: Gate, remote: Remote, event: StopEvent | StartEvent) -> list[Files]:
    machine = remote.at("/")
    parts = [Files(Scope(remote.path, gate.paths), machine)]
    if not event.workspace:
        parts.append(_whole(real_folder(event.cwd)))
    elif event.workspace != remote.url:
        parts.append(_workspace(event))
    assert isinstance(gate.check, Command)  # functions run here
    # It may be a link, or lie in a repository of its own: that is known only there.
    folder = system.path.join(remote.path, gate.check.dir)
    if folder.rstrip("/") != remote.path.rstrip("/"):
        parts.append(Files(Scope(folder), machine))
    return parts


def _workspace(event: StopEvent | StartEvent) -> Files:
    """Return the files of an agent that works elsewhere."""
    from notyet.core.remote import remote_from

    remote = remote_from(event.workspace)
    return Files(Scope(remote.path), remote.at("/"))


def _is_inside(folder: str, other: str) -> bool:
    """Tell whether a folder is another one, or below it."""
    return folder == other or folder.startswith(other.rstrip("/") + "/")
