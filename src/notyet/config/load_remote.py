"""What is in force of a project whose files are in a workspace elsewhere (M5)."""

from __future__ import annotations

from notyet.config.files import Project, above, project_files, project_native, root_of
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
    left_to: tuple[str, ...]  # hosts that see to their files themselves


def add_files_there(loaded: Loaded, looking: Looking, patience: float) -> None:
    """Add the files of a workspace: the nearest `notyet.toml`, and those of the hosts wanted."""
    place = remote_from(loaded.workspace)
    tree = RemoteTree(place.url, patience, _hosts(loaded, looking))
    for file in project_native(place.url, loaded.is_trusted, tree):
        loaded.add(file)
    hosts = _hosts(loaded, looking)  # a file there may have named more
    tree.look_for(hosts)
    folders = [root_of(place.url, tree)]
    if is_remote(loaded.project):
        folders.append(loaded.project)
    if tree.unseen:  # so nobody knows where the repository begins
        folders = above(place.url)
    for name in hosts:
        for folder in dict.fromkeys(folders):
            project = Project(folder=folder, tree=tree, here=looking.here)
            for file in project_files(name, project, looking.environ, loaded.is_trusted):
                loaded.add(file)
    if tree.unseen and patience > 0:
        is_known = loaded.has_layer(place.machine)
        rest = "what was trusted of it stays in force" if is_known else "none of them is in force"
        loaded.unreached = tree.unseen
        loaded.warnings.append(
            f"the files of {visible(place.url)} cannot be read: {tree.unseen}; {rest}"
        )


def _hosts(loaded: Loaded, looking: Looking) -> list[str]:
    wanted = dict.fromkeys((*looking.hosts, *loaded.read_hosts))
    return [name for name in wanted if name not in looking.left_to]
