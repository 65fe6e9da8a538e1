"""Load what is in force for an agent: find files, take their trusted version, put them in layers.

A hook loads this module. `config/trust.py` comes in only where a file is not as it was trusted.
"""

from __future__ import annotations

from notyet.config.compiled import DAMAGED, FileSettings, is_unchanged, read_record, thaw
from notyet.config.files import ConfigFile, folders_of, host_files, toml_files, users_toml
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    known_as,
    parent,
    starts,
    state_folder,
    trusted_part,
)
from notyet.config.records import has_record
from notyet.core.gate import IN_PROJECT, Command
from notyet.core.record import Record, replace
from notyet.core.text import visible
from notyet.errors import Refused
from notyet.hosts import HOSTS, host_named
from notyet.light import LOCAL, getcwd, is_remote, join, real_folder, realpath

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from notyet.config.compiled import FileObserver, Trusted
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate, Starter
    from notyet.ledger.prune import Retention

    Layer = tuple[ConfigFile, FileSettings]
    # Called with the folder of a project, its globs and its trusted members; returns the members
    # whose files count, or None for all.
    Choose = Callable[[str, Sequence[str], Sequence[str]], Iterable[str] | None]

# Seconds to read the files of a workspace; with 0 it is not connected to, and records of trust are
# all that is known of it.
PATIENCE = 20.0
NO_LOOK = 0.0
_MOST_SAID = 10  # files of one kind


class Setup(Record, kw_only=True):
    """Everything that is in force for an agent, and what its user should know about it."""

    gates: tuple[Gate, ...] = ()
    gates_others: bool = False  # gates were left out that are for other agents
    starters: tuple[Starter, ...] = ()  # only where an agent is supervised
    limits: Mapping[str, Any] = {}
    limit_files: Mapping[str, str] = {}  # the file that sets each of them
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much the user wants kept
    shares: bool = False  # the user's stops are copied to a team's database
    notifications: tuple[Mapping[str, Any], ...] = ()
    reply: Mapping[str, str] = {}
    start_tell: bool = False
    replaced: tuple[str, ...] = ()  # names of gates of the user's own file that a project replaces
    # The project that the session was started in, and the one that the agent works in now, if these
    # are two.
    left: tuple[str, str] | None = None
    is_left_unchecked: bool = False  # the first is another work tree of the same repository
    workspace: str = ""  # where the project's files are, if elsewhere: ssh://host/path
    named_by: str = ""  # the file here that names it
    workspace_problem: str = ""  # why its files could not be read
    untrusted: tuple[ConfigFile, ...] = ()  # nothing of them applies
    linked: tuple[str, ...] = ()  # files in force that are in linked work trees
    unreadable: tuple[str, ...] = ()  # neither the file nor its record can be read
    # Trusted files of a machine that was not connected to, or did not answer. What was trusted
    # of them stays in force.
    offline: tuple[str, ...] = ()
    # What is trusted and could not be loaded, in sentences: a stop never passes then (A8). They
    # are among the warnings, too.
    unchecked: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def distrust(self) -> list[str]:
        """A message for each untrusted file, the first of very many."""
        said = [file.distrust for file in self.untrusted[:_MOST_SAID]]
        more = len(self.untrusted) - len(said)
        return [*said, f"{more:,} more files are not trusted"] if more else said


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
    members: Choose | None = None,
) -> Setup:
    """Return what is in force for a host's agent that works in a folder.

    `only` is a file to use instead of those that are found. `project` is the folder that the
    session was started in: the files that count there count too. `agent` is the program that a
    supervisor runs: the files of all hosts are read for it, with starters, except those that the
    program runs itself (J8).

    `workspace` is where the agent's files are, if on another machine. A file in force may name one
    too, unless `workspace` is "local"; an untrusted file cannot make us connect anywhere. Reading
    it takes at most `patience` seconds.

    `draft` replaces the project's own file, for a comparison: the caller must not run any of it.

    Gates that cannot apply to `event` may be left out. `members` chooses the members of a project
    whose files are loaded; without it, all of them are.
    """
    layers = Layers(state_folder(environ), agent, workspace, event)
    place = real_folder(cwd)
    if only:
        layers.add(ConfigFile(path=known_as(only), kind=KIND_NOTYET))
    elif is_remote(workspace):
        layers.add(*users_toml(place, environ))
    elif draft is not None:
        _add_draft(layers, place, environ, draft)
    else:
        _add_projects(layers, cwd, project, environ)
    if layers.has_members and not only:
        from notyet.config.members import add_members

        add_members(layers, members)
    read_for = _readable(host, agent)
    left_to = host_named(agent or host).runs if (agent or host) in HOSTS else ()
    if not is_remote(workspace):
        for name in dict.fromkeys((*read_for, *layers.read_hosts)):
            if name not in left_to:  # files that the host runs itself are left to it (J8)
                _add_host(layers, name, place, environ)
                if layers.started_in:
                    _add_host(layers, name, layers.started_in, environ)
    if layers.workspace and not only:
        from notyet.config.remote import RemoteFiles, add_files_there

        looking = RemoteFiles(environ=environ, here=place, hosts=read_for, left_to=left_to)
        add_files_there(layers, looking, patience)
    return layers.setup()


def _add_projects(layers: Layers, cwd: str, project: str, environ: Mapping[str, str]) -> None:
    """Add the files that count where an agent works, and where its session was started."""
    *here, start = starts(cwd, project)
    for folder in dict.fromkeys(here):
        layers.add_tomls(toml_files(folder, environ, layers.is_recorded))
        if layers.project:  # an untrusted file hides no other project
            break
    began = real_folder(project)
    if began != start and layers.project:
        layers.left, layers.is_left_unchecked = (began, layers.project), True
    if not start or start in here:
        return
    known, untrusted, works_in = len(layers.layers), len(layers.untrusted), layers.project
    layers.started_in, layers.has_root = start, False
    layers.add_tomls(toml_files(start, environ, layers.is_recorded))
    for file in layers.untrusted[untrusted:]:
        if layers.is_recorded(file.place):  # else it was never in force
            where = visible(parent(file.path))
            layers.add_unchecked(f"{where}, where this session was started, was moved or replaced")
    added = [file for file, _ in layers.layers[known:] if is_projects(file)]
    if works_in and added and not layers.left:
        layers.left = (parent(added[0].path), works_in)


def _readable(host: str, agent: str) -> tuple[str, ...]:
    """Return the hosts whose files are read, besides those that `[read]` adds."""
    if not agent:
        return (host,) if host in HOSTS and host_named(host).notyet_runs_hooks else ()
    from notyet.hosts.files import READABLE

    return READABLE


def _add_host(layers: Layers, name: str, place: str, environ: Mapping[str, str]) -> None:
    """Add the files of another host."""
    folders = folders_of(place, name, layers.is_recorded) if place else []
    for folder in dict.fromkeys(filter(None, (*folders, layers.project))):
        files = host_files(name, folder, environ, layers.is_recorded)
        layers.add(*(file for file in files if layers.reads(name, file)))


def _add_draft(layers: Layers, place: str, environ: Mapping[str, str], draft: Draft) -> None:
    """Add the user's file, and the draft in place of the project's file."""
    from notyet.config.trust import add_draft

    files = toml_files(place, environ, layers.is_recorded)
    stands_for = [file for file in files if not file.is_users]
    in_force = [file for file in stands_for if layers.is_recorded(file.place)]
    found = [file for file in stands_for if file.path == draft.path] or in_force or stands_for
    replaced = found[0] if found else ConfigFile(path=join(place, FILE_NAME), kind=KIND_NOTYET)
    layers.add_tomls([file for file in files if file.is_users])
    add_draft(layers, replace(replaced, is_gone=False), draft.text)
    layers.add_tomls([file for file in in_force if file.path != replaced.path])


def load_vouched(files: Sequence[ConfigFile]) -> Setup:
    """Return what files say that the caller vouches for, without records of trust."""
    layers = Layers("")
    layers.add(*(replace(file, is_users=True) for file in files))
    return layers.setup()


def retention(environ: Mapping[str, str]) -> Retention:
    """Return how much of the ledger the user's own file wants kept.

    Raises Refused if that file has a mistake: a mistyped limit must not remove anything.
    """
    from notyet.ledger.prune import Retention

    layers = Layers(state_folder(environ))
    try:
        here = real_folder(getcwd())
    except OSError:  # it is gone
        here = ""
    layers.add(*users_toml(here, environ))
    setup = layers.setup()
    wrong = [*setup.warnings, *setup.distrust, *setup.unreadable]
    if wrong:
        raise Refused(f"nothing is removed until this is fixed: {wrong[0]}")
    return Retention(**setup.ledger)


class Layers:
    """The files that apply to an agent, one over the other; later ones win."""

    def __init__(
        self, state: str, agent: str = "", workspace: str = "", event: StopEvent | None = None
    ) -> None:
        self.state = state
        self.agent = agent
        self._event = event
        # The caller names the workspace, not a file.
        self.is_elsewhere, self.is_here = is_remote(workspace), workspace == LOCAL
        self.starters: list[tuple[ConfigFile, Starter]] = []
        self.layers: list[Layer] = []
        self._seen: set[str] = set()
        self.untrusted: list[ConfigFile] = []
        self.linked: list[str] = []
        self.unreadable: list[str] = []
        self.offline: list[str] = []
        self.not_run: list[str] = []  # programs that could not be compared with what was trusted
        self.unchecked: list[str] = []
        self.warnings: list[str] = []
        self.read_hosts: tuple[str, ...] = ()
        self.started_in = ""  # the folder that the session was started in, if it may be another one
        self.left: tuple[str, str] | None = None  # the project of the session, and the agent's now
        self.is_left_unchecked = False
        self.project = ""  # the folder of the nearest project file that is in force
        self.has_root = False  # files above that one do not count
        self.has_members = False
        self.members: set[str] = set()  # the files of members
        self.is_placed = False  # a project file named the workspace, or this machine
        self.workspace = workspace if self.is_elsewhere else ""
        self.named_by: Trusted | None = None  # the file that named the workspace
        self.workspace_problem = ""

    def is_recorded(self, place: str) -> bool:
        """Return True if there is a record about a file, which itself may be gone."""
        return has_record(self.state, place)

    def reads(self, host: str, file: ConfigFile) -> bool:
        """Return False for a user's own file that is for another host, unless `[read]` names it.

        People put personal hooks there, for the host itself to run.
        """
        is_personal = file.is_users and not host_named(host).notyet_runs_hooks
        return not is_personal or host in self.read_hosts

    def is_new(self, file: ConfigFile) -> bool:
        """Return True the first time: in a home, the project's file and the user's are the same."""
        is_new = file.path not in self._seen
        self._seen.add(file.path)
        return is_new

    def add(self, *files: ConfigFile) -> None:
        """Add the settings of files, or of their last trusted versions."""
        for file in files:
            if self.is_new(file) and not self._add_unchanged(file):
                from notyet.config.trust import add_trusted_version

                add_trusted_version(self, file)

    def add_tomls(self, files: Iterable[ConfigFile]) -> None:
        """Add the user's file, and those of projects, nearest first, up to one that is a root."""
        for file in files:
            if not self.has_root:
                self.add(file)

    def _add_unchanged(self, file: ConfigFile) -> bool:
        """Add a `notyet.toml` that is as it was trusted; return False for any other file."""
        if file.kind != KIND_NOTYET or file.is_gone or self.named_by is not None:
            return False
        try:
            record = read_record(self.state, file.path, file.place)
            if record is None or self.has_own_trust(file):
                return False
            text = trusted_part(file.path, file.source.text_of(file.path))
            if not is_unchanged(record, text, is_users=file.is_users):
                return False
            settings = thaw(record.compiled, self._event)
        except (OSError, *DAMAGED):  # unreadable, or a record of another version of notyet
            return False
        if settings.workspace or (settings.ledger and not file.is_users):
            return False
        self.put(file, settings)
        return True

    def has_own_trust(self, file: ConfigFile) -> bool:
        """Return True if a file was trusted by its path, before it was in a linked work tree."""
        if file.place in {"", file.path} or not self.is_recorded(file.path):
            return False
        own = read_record(self.state, file.path, file.path)
        return own is not None and bool(own.at)

    def add_unchecked(self, sentence: str) -> None:
        """Note that something trusted could not be loaded, so that no stop passes (A8)."""
        self.unchecked.append(sentence)
        if sentence not in self.warnings:
            self.warnings.append(sentence)

    def put(self, file: ConfigFile, settings: FileSettings) -> None:
        """Put a file's settings over those added before."""
        if is_projects(file):
            self.project = self.project or parent(file.path)
            self.has_root = self.has_root or settings.root
            self.has_members = self.has_members or bool(settings.members)
            if file.place and file.place != file.path:
                self.linked.append(file.path)
        if file.root and not is_remote(file.root):
            settings = with_checks(settings, lambda check: in_project(check, file.root))
        elif is_projects(file) and any(
            _has_dir(gate, parent(file.path)) for gate in settings.gates
        ):
            settings = with_checks(settings, lambda check: _within(check, parent(file.path)))
        self.layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def setup(self) -> Setup:
        """Merge the layers."""
        layers = self.layers
        if sum(is_projects(file) for file, _ in layers) > 1 or self.members:
            from notyet.config.layers import arranged

            layers = arranged(layers, self.members)
        gates = _merged_gates(layers, is_elsewhere=bool(self.workspace))
        limits: dict[str, Any] = {}
        limit_files: dict[str, str] = {}
        reply: dict[str, str] = {}
        ledger: dict[str, Any] = {}
        tell = False
        for file, settings in layers:
            limits |= settings.limits
            limit_files |= dict.fromkeys(settings.limits, file.path)
            reply |= settings.reply
            ledger |= settings.ledger if file.is_users else {}
            tell = tell if settings.start_tell is None else settings.start_tell
        observers = {o.name: o for _, settings in layers for o in settings.observers}
        notifications = [s.notifications for _, s in layers if s.notifications]
        return Setup(
            gates=gates,
            gates_others=any(settings.left_out for _, settings in layers),
            starters=_merged_starters(self.starters),
            limits=limits,
            limit_files=limit_files,
            observers=tuple(observers.values()),
            ledger=ledger,
            shares=any(settings.shares and file.is_users for file, settings in layers),
            notifications=tuple(notifications),
            reply=reply,
            start_tell=tell,
            replaced=_replaced(layers),
            left=self.left,
            is_left_unchecked=self.is_left_unchecked,
            workspace=self.workspace,
            named_by=self.named_by.path if self.named_by is not None else "",
            workspace_problem=self.workspace_problem,
            untrusted=tuple(self.untrusted),
            linked=tuple(self.linked),
            unreadable=tuple(self.unreadable),
            offline=tuple(self.offline),
            unchecked=tuple(self.unchecked),
            warnings=tuple(self.warnings),
        )


def is_projects(file: ConfigFile) -> bool:
    """Return True for a `notyet.toml` that is not the user's."""
    return file.kind == KIND_NOTYET and not file.is_users


def _replaced(layers: Iterable[Layer]) -> tuple[str, ...]:
    """Return the names of gates in the user's own file that a project's file has too."""
    users: set[str] = set()
    found: dict[str, None] = {}
    for file, settings in layers:
        if file.kind == KIND_NOTYET and file.is_users:
            users.update(gate.name for gate in settings.gates)
        elif users and file.kind == KIND_NOTYET:
            found |= dict.fromkeys(gate.name for gate in settings.gates if gate.name in users)
    return tuple(found)


def _merged_gates(layers: Iterable[Layer], *, is_elsewhere: bool) -> tuple[Gate, ...]:
    """Return all gates once: ours by name (J6), Claude's and Mux's by command (J1, J2)."""
    merged: dict[object, Gate] = {}
    for file, settings in layers:
        is_kept_here = is_elsewhere and not is_remote(file.path)
        found = with_checks(settings, _here).gates if is_kept_here else settings.gates
        same = "" if file.kind == KIND_NOTYET else _same_command(file.kind)
        for name in settings.left_out:  # a gate of this name, for other agents
            merged.pop(name, None)
        for gate in found:
            key: object = gate.name
            if same:
                key = (file.kind, gate.match, gate.check.line)  # type: ignore[union-attr]  # a Command
            elif file.kind != KIND_NOTYET:
                key = (file.path, gate.name)
            if key in merged and same == "once" and not is_remote(file.path):
                continue
            merged[key] = gate
    return _with_own_names(merged.values())


def in_project(check: Command, root: str) -> Command:
    """Return a command that runs in the root of its project, wherever the agent works (E7)."""
    return replace(check, dir=check.dir or root) if check.speaks in IN_PROJECT else check


def _here(check: Command) -> Command:
    """Return a command that runs on this machine, though the agent's workspace is elsewhere."""
    return replace(check, workspace=check.workspace or LOCAL)


def with_checks(settings: FileSettings, change: Callable[[Command], Command]) -> FileSettings:
    """Return settings with the commands of all gates changed."""
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)
        gates.append(replace(gate, check=change(gate.check)))
    return replace(settings, gates=tuple(gates))


def _has_dir(gate: Gate, folder: str) -> bool:
    return isinstance(gate.check, Command) and gate.check.dir.startswith(f"{folder}/")


def _within(check: Command, folder: str) -> Command:
    """Return a command that cannot start if its `dir` is a link that leaves the file's folder.

    An agent could exchange the folder of a gate for a link to files that pass.
    """
    inside = f"{realpath(folder).rstrip('/')}/"
    if not check.dir.startswith(f"{folder}/") or f"{realpath(check.dir)}/".startswith(inside):
        return check
    why = f"{visible(check.dir)} is a link that leaves {visible(folder)}"
    return replace(check, options={**check.options, "refused": why})


def _merged_starters(starters: Iterable[tuple[ConfigFile, Starter]]) -> tuple[Starter, ...]:
    """Return all starters; Claude Code runs the same command once (J1)."""
    unique: dict[object, Starter] = {}
    for place, (file, starter) in enumerate(starters):
        key: object = place
        if _same_command(file.kind) == "once":
            key = (starter.scope, starter.matcher, starter.check.line)  # type: ignore[union-attr]  # a Command
        unique.setdefault(key, starter)
    return tuple(unique.values())


def _same_command(kind: str) -> str:
    """Return what becomes of a command that stands in several files of a host."""
    from notyet.hosts.files import host_of

    return host_of(kind).hook_files.same_command


def _with_own_names(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    unique: dict[str, Gate] = {}
    for gate in gates:
        name, twins = gate.name, 1
        while name in unique:
            twins += 1
            name = f"{gate.name} ({twins})"
        unique[name] = gate if twins == 1 else replace(gate, name=name)
    return tuple(unique.values())
