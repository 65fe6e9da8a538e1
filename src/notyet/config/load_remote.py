"""What is in force of a project whose files are in a workspace elsewhere (M5)."""

from __future__ import annotations

from notyet.config.files import project_native
from notyet.config.files_hosts import Project, folders_of, project_files
from notyet.config.tree_remote import RemoteTree
from notyet.core.record import Record
from notyet.core.remote import is_remote, remote_from
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.layers import Loaded


class Looking(Record, kw_only=True):
    """What is looked for, and for whom."""

    environ: Mapping[str, str]
    here: str  # the folder on this machine that the agent is in
    hosts: tuple[str, ...]  # whose files are read in any case
    left_to: tuple[str, ...]  # hosts that see to their files on this machine themselves


def add_files_there(loaded: Loaded, looking: Looking, patience: float) -> None:
    """Add the files of a workspace: the nearest `notyet.toml`, and those of the hosts wanted."""
    place = remote_from(loaded.workspace)
    tree = RemoteTree(place.url, patience, _hosts(loaded, looking), loaded.is_trusted)
    for file in project_native(place.url, loaded.is_trusted, tree):
        loaded.add(file)
    hosts = _hosts(loaded, looking)  # a file there may have named more
    tree.look_for(hosts)
    for name in hosts:
        folders = folders_of(place.url, name, loaded.is_trusted, tree)
        if is_remote(loaded.project):
            folders.append(loaded.project)
        for folder in dict.fromkeys(folders):
            project = Project(folder=folder, tree=tree, here=looking.here)
            for file in project_files(name, project, looking.environ, loaded.is_trusted):
                # No host runs its files of another machine.
                if is_remote(file.path) or name not in looking.left_to:
                    loaded.add(file)
    if tree.unseen and patience > 0:
        loaded.unreached = tree.unseen
        loaded.warnings.append(
            f"the files of {visible(place.url)} cannot be read: {tree.unseen}; "
            f"{_what_stays(loaded, place.machine)}"
        )


def _hosts(loaded: Loaded, looking: Looking) -> list[str]:
    return [*dict.fromkeys((*looking.hosts, *loaded.read_hosts))]


def _what_stays(loaded: Loaded, machine: str) -> str:
    """Say what counts of a machine that was not looked at."""
    stays = "what was trusted of it stays in force" if _has_layer(loaded, machine) else ""
    programs = ", ".join(map(visible, loaded.not_run))
    missed = f"{programs} cannot be run without being looked at" if programs else ""
    return ", but ".join(filter(None, (stays, missed))) or "none of them is in force"


def _has_layer(loaded: Loaded, machine: str) -> bool:
    """Tell whether a file of that machine is in force, and can be."""
    paths = [file.path for file, _ in loaded.layers if file.path not in loaded.not_run]
    return any(path.startswith(machine + "/") for path in paths)
