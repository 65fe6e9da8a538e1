"""Load what applies to an agent: trusted files, compiled and merged. A hook loads this module."""

from __future__ import annotations

from notyet.config.files import (
    NAME,
    NATIVE,
    ConfigFile,
    known_as,
    native_files,
    own_native,
    real_folder,
)
from notyet.config.find import starts, state_folder
from notyet.config.layers import Loaded
from notyet.config.settings import Setup
from notyet.core.record import Record, replace
from notyet.hosts import HOSTS, host_named
from notyet.light import getcwd, is_remote, join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.core.event import StopEvent
    from notyet.ledger.prune import Retention

__all__ = ("NO_LOOK", "PATIENCE", "Setup", "load", "load_vouched")

# Seconds to read the files of a workspace; with 0 it is not connected to, and records of trust are
# all that is known of it.
PATIENCE = 20.0
NO_LOOK = 0.0


class Draft(Record, kw_only=True):
    """A `notyet.toml` that is not in force, for a comparison."""

    text: str
    path: str = ""  # where it is, by its one name


def load(
    cwd: str,
    host: str,
    environ: Mapping[str, str],
    *,
    only: str = "",
    project: str = "",
    agent: str = "",
    workspace: str = "",
    patience: float = PATIENCE,
    draft: Draft | None = None,
    event: StopEvent | None = None,
) -> Setup:
    """Return what is in force for a host's agent that works in a folder.

    `only` is a file to use instead of those that are found. `project` is the folder that the host
    names as its project; it counts if the agent's folder belongs to none. `agent` is the program
    that a supervisor runs: the files of all hosts are read for it, with starters, except those
    that the program runs itself (J8).

    `workspace` is where the agent's files are, if on another machine. A file in force may name one
    too, unless `workspace` is "local"; an untrusted file cannot make us connect anywhere. Reading
    it takes at most `patience` seconds.

    `draft` replaces the project's own file, for a comparison: the caller must not run any of it.

    Gates that cannot apply to `event` may be left out, because parsing all of them takes time.
    """
    loaded = Loaded(state_folder(environ), agent, workspace)
    place = real_folder(cwd)
    if only:
        loaded.add(ConfigFile(path=known_as(only), kind=NATIVE))
    elif is_remote(workspace):
        for file in own_native(place, environ):
            loaded.add(file)
    elif draft is not None:
        _add_draft(loaded, place, environ, draft)
    else:
        _add_native(loaded, cwd, project, environ)
    # Files that the host runs itself are left to it (J8).
    read_for = _readable(host, agent)
    left_to = host_named(agent or host).runs if (agent or host) in HOSTS else ()
    if not is_remote(workspace):
        for name in dict.fromkeys((*read_for, *loaded.read_hosts)):
            if name not in left_to:
                _add_host(loaded, name, place, environ)
    if loaded.workspace and not only:
        from notyet.config.remote import RemoteFiles, add_files_there

        looking = RemoteFiles(environ=environ, here=place, hosts=read_for, left_to=left_to)
        add_files_there(loaded, looking, patience)
    return loaded.setup(event)


def _readable(host: str, agent: str) -> tuple[str, ...]:
    """Return the hosts whose files are read, besides those that `[read]` adds."""
    if not agent:
        return (host,) if host in HOSTS and host_named(host).reads_files else ()
    from notyet.hosts.files import READABLE

    return READABLE


def _add_native(loaded: Loaded, cwd: str, project: str, environ: Mapping[str, str]) -> None:
    """Add the user's file and the project's."""
    for start in starts(cwd, project):
        for file in native_files(start, environ, loaded.is_trusted):
            loaded.add(file)
        if loaded.project:  # an untrusted file hides no other project
            break


def _add_host(loaded: Loaded, name: str, place: str, environ: Mapping[str, str]) -> None:
    """Add the files of another host."""
    from notyet.config.host_files import folders_of, host_files

    folders = folders_of(place, name, loaded.is_trusted) if place else []
    for folder in dict.fromkeys(filter(None, (*folders, loaded.project))):
        for file in host_files(name, folder, environ, loaded.is_trusted):
            loaded.add(file)


def load_vouched(files: Sequence[ConfigFile]) -> Setup:
    """Return what files say that the caller vouches for, without records of trust."""
    loaded = Loaded("")
    for file in files:
        loaded.add(replace(file, own=True))
    return loaded.setup()


def _add_draft(loaded: Loaded, place: str, environ: Mapping[str, str], draft: Draft) -> None:
    """Add the user's file, and the draft in place of the project's file."""
    from notyet.config.trust import add_draft

    stands_for = []
    for file in native_files(place, environ, loaded.is_trusted):
        if file.own:
            loaded.add(file)
        else:
            stands_for.append(file.path)
    in_force = [path for path in stands_for if loaded.is_trusted(path)]
    if draft.path in stands_for:
        path = draft.path
    else:
        path = (*in_force, *stands_for, join(place, NAME))[0]
    add_draft(loaded, ConfigFile(path=path, kind=NATIVE), draft.text)


def retention(environ: Mapping[str, str]) -> Retention:
    """Return how much of the ledger the user's own file wants kept.

    Raises Refused if that file has a mistake: a mistyped limit must not remove anything.
    """
    from notyet.errors import Refused
    from notyet.ledger.prune import Retention

    loaded = Loaded(state_folder(environ))
    try:
        here = real_folder(getcwd())
    except OSError:  # it is gone
        here = ""
    for file in own_native(here, environ):
        loaded.add(file)
    setup = loaded.setup()
    wrong = [*setup.warnings, *setup.distrust, *setup.unreadable]
    if wrong:
        raise Refused(f"nothing is removed until this is fixed: {wrong[0]}")
    return Retention(**setup.ledger)
