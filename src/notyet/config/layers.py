"""Layers: the files that apply to an agent, merged into one `Setup`."""

from __future__ import annotations

from notyet.config.files import NATIVE, parent
from notyet.config.find import has_record
from notyet.config.records import unchanged
from notyet.config.settings import Setup, thaw, thaw_gates
from notyet.core.gate import Command
from notyet.core.record import replace
from notyet.light import LOCAL, is_remote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from notyet.config.files import ConfigFile
    from notyet.config.records import Trusted, Unchanged
    from notyet.config.settings import Settings
    from notyet.core.event import StopEvent
    from notyet.core.gate import Gate, Starter


def is_by_path(gate: Gate) -> bool:
    """Return True if a gate runs its own file, whatever that holds at the time."""
    return isinstance(gate.check, Command) and bool(gate.check.options.get("by_path"))


def refused(settings: Settings, why: str) -> Settings:
    """Return settings whose gates fail to start, because of `why`."""
    return _changed(
        settings, lambda check: replace(check, options={**check.options, "refused": why})
    )


def kept_here(settings: Settings) -> Settings:
    """Return settings whose gates run here, though the agent's workspace is elsewhere."""
    return _changed(settings, lambda check: replace(check, workspace=check.workspace or LOCAL))


def _changed(settings: Settings, change: Callable[[Command], Command]) -> Settings:
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)
        gates.append(replace(gate, check=change(gate.check)))
    return replace(settings, gates=tuple(gates))


def merged_gates(loaded: Loaded) -> tuple[Gate, ...]:
    """Return all gates once: ours by name (J6), Claude's and Mux's by command (J1, J2)."""
    if loaded.unread:
        from notyet.config.trust import read_gates

        read_gates(loaded)
    merged: dict[object, Gate] = {}
    for file, settings in loaded.layers:
        for gate in _gates(loaded, file, settings):
            key: object = gate.name
            same = "" if file.kind == NATIVE else _same_command(file.kind)
            if same:
                key = (file.kind, gate.match, gate.check.line)  # type: ignore[union-attr]  # a Command
            elif file.kind != NATIVE:
                key = (file.path, gate.name)
            if key in merged and same == "once" and not is_remote(file.path):
                continue
            merged[key] = gate
    return _with_own_names(merged.values())


def _same_command(kind: str) -> str:
    """Return what becomes of a command that stands in several files of a host."""
    from notyet.hosts.files import host_of

    return host_of(kind).hook_files.same_command


def _gates(loaded: Loaded, file: ConfigFile, settings: Settings) -> tuple[Gate, ...]:
    """Return the gates of a layer; those of a file here run on this machine."""
    if loaded.workspace and not is_remote(file.path):
        settings = kept_here(settings)
    return settings.gates


def merged_starters(starters: Iterable[tuple[ConfigFile, Starter]]) -> tuple[Starter, ...]:
    """Return all starters; Claude Code runs the same command once (J1)."""
    unique: dict[object, Starter] = {}
    for place, (file, starter) in enumerate(starters):
        key: object = place
        if _same_command(file.kind) == "once":
            key = (starter.scope, starter.matcher, starter.check.line)  # type: ignore[union-attr]  # a Command
        unique.setdefault(key, starter)
    return tuple(unique.values())


def _with_own_names(gates: Iterable[Gate]) -> tuple[Gate, ...]:
    unique: dict[str, Gate] = {}
    for gate in gates:
        name, twins = gate.name, 1
        while name in unique:
            twins += 1
            name = f"{gate.name} ({twins})"
        unique[name] = gate if twins == 1 else replace(gate, name=name)
    return tuple(unique.values())


class Loaded:
    """Files as they are added, one layer over the other."""

    def __init__(self, state: str, agent: str = "", workspace: str = "") -> None:
        self.state = state
        self.agent = agent
        # The caller names the workspace, not a file.
        self.is_elsewhere, self.is_here = is_remote(workspace), workspace == LOCAL
        self.starters: list[tuple[ConfigFile, Starter]] = []
        self.layers: list[tuple[ConfigFile, Settings]] = []
        # Files whose gates are not parsed yet: a stop needs few of them.
        self.unread: dict[str, Unchanged] = {}
        self._seen: set[str] = set()
        self.untrusted: list[ConfigFile] = []
        self.unreadable: list[str] = []
        self.unseen: list[str] = []
        self.not_run: list[str] = []  # programs that could not be compared with what was trusted
        self.warnings: list[str] = []
        self.read_hosts: tuple[str, ...] = ()
        self.project = ""  # the folder of the project's own file that is in force
        self.workspace = workspace if self.is_elsewhere else ""
        self.named_by: Trusted | None = None  # the file that named the workspace
        self.unreached = ""

    def is_trusted(self, path: str) -> bool:
        """Return True if there is a record about a file, which itself may be gone."""
        return has_record(self.state, path)

    def is_new(self, file: ConfigFile) -> bool:
        """Return True the first time: in a home, the project's file and the user's are the same."""
        is_new = file.path not in self._seen
        self._seen.add(file.path)
        return is_new

    def add(self, file: ConfigFile) -> None:
        """Add the settings of a file, or of its last trusted version."""
        if self.is_new(file) and not self._add_unchanged(file):
            from notyet.config.trust import add_differing

            add_differing(self, file)

    def _add_unchanged(self, file: ConfigFile) -> bool:
        """Add a `notyet.toml` that is as it was trusted; return False for any other file."""
        if file.kind != NATIVE or file.is_gone or self.named_by is not None:
            return False
        try:
            text = file.tree.text_of(file.path)
            found = unchanged(self.state, file.path, text, own=file.own)
            if found is None:
                return False
            settings = thaw(found.settings)
        except (OSError, ValueError):  # unreadable, or a record of another version of notyet
            return False
        if settings.workspace or (settings.ledger and not file.own):
            return False
        self.unread[file.path] = found
        self.put(file, settings)
        return True

    def put(self, file: ConfigFile, settings: Settings) -> None:
        """Put a file's settings over those added before."""
        if file.kind == NATIVE and not file.own:
            self.project = parent(file.path)
        self.layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def _gates(self, event: StopEvent | None) -> tuple[Gate, ...]:
        if not self.layers:
            return ()
        (file, _), *others = self.layers
        if not others and file.path in self.unread and not self.workspace:
            try:
                return thaw_gates(self.unread[file.path].gates(event))
            except (ValueError, TypeError):
                pass  # the record is damaged, and `merged_gates` handles that
        return merged_gates(self)

    def setup(self, event: StopEvent | None = None) -> Setup:
        """Merge the layers: later ones win. Gates that cannot apply to an event may be left out."""
        gates = self._gates(event)  # first: it may find a damaged record, and change the layers
        limits: dict[str, Any] = {}
        limit_files: dict[str, str] = {}
        reply: dict[str, str] = {}
        ledger: dict[str, Any] = {}
        tell = False
        for file, settings in self.layers:
            limits |= settings.limits
            limit_files |= dict.fromkeys(settings.limits, file.path)
            reply |= settings.reply
            ledger |= settings.ledger if file.own else {}
            tell = tell if settings.start_tell is None else settings.start_tell
        observers = {o.name: o for _, settings in self.layers for o in settings.observers}
        notifications = [s.notifications for _, s in self.layers if s.notifications]
        return Setup(
            gates=gates,
            starters=merged_starters(self.starters),
            limits=limits,
            limit_files=limit_files,
            observers=tuple(observers.values()),
            ledger=ledger,
            notifications=tuple(notifications),
            reply=reply,
            start_tell=tell,
            workspace=self.workspace,
            named_by=self.named_by.path if self.named_by is not None else "",
            unreached=self.unreached,
            untrusted=tuple(self.untrusted),
            unreadable=tuple(self.unreadable),
            unseen=tuple(self.unseen),
            warnings=tuple(self.warnings),
        )
