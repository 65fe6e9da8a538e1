"""Files of configuration as layers: what of each is in force, and what they come to together."""

from __future__ import annotations

import os

from notyet.config.compiled import thaw
from notyet.config.files import parent
from notyet.config.store import Trusted, read_record, record_path, write_record
from notyet.core.command import Command
from notyet.core.record import Record, replace
from notyet.core.remote import LOCAL, is_remote
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from notyet.config.files import ConfigFile
    from notyet.config.settings import FileObserver, Settings
    from notyet.core.gate import Gate
    from notyet.core.starter import Starter

_STARTING = ("claude", "codex", "codex-toml")  # kinds of files with hooks for starts


class Setup(Record, kw_only=True):
    """Everything that is in force at a place, and what its user should know about it."""

    gates: tuple[Gate, ...] = ()
    starters: tuple[Starter, ...] = ()  # only where an agent is supervised
    limits: Mapping[str, Any] = {}
    observers: tuple[FileObserver, ...] = ()
    notifications: tuple[Mapping[str, Any], ...] = ()
    reply: Mapping[str, str] = {}
    start_tell: bool = False
    workspace: str = ""  # where the project's files are, if elsewhere: ssh://host/path
    unreached: str = ""  # why that could not be looked at
    untrusted: tuple[ConfigFile, ...] = ()  # nobody trusted these, so nothing of them applies
    unreadable: tuple[str, ...] = ()  # files of which nothing can be known
    warnings: tuple[str, ...] = ()

    @property
    def distrust(self) -> list[str]:
        """What is said of the files that nobody trusted."""
        return [
            f"{visible(file.path)} is not trusted; run: {visible(file.command)}"
            for file in self.untrusted
        ]


def _is_by_path(gate: Gate) -> bool:
    """Tell whether a gate runs its own file, as it is at that moment."""
    return isinstance(gate.check, Command) and bool(gate.check.options.get("by_path"))


def _says_something(file: ConfigFile, text: str | None) -> bool:
    """Tell whether a file holds anything that would be run: most settings of hosts do not.

    A supervisor looks at the files of every host, and should not ask to trust them for nothing.
    """
    settings = _read(file, text or "")
    return bool(settings.gates or settings.starters or settings.mistakes or file.kind == "notyet")


def _read(file: ConfigFile, text: str) -> Settings:
    from notyet.config.compile import compile_text

    return compile_text(text, file.path, file.kind, file.tree)


def _kept_here(settings: Settings) -> Settings:
    """Let gates of a file here run here, though the agent's workspace is elsewhere."""
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)
        here = replace(gate.check, workspace=gate.check.workspace or LOCAL)
        gates.append(replace(gate, check=here))
    return replace(settings, gates=tuple(gates))


class Loaded:
    """Files as they are added, one layer over the other."""

    def __init__(self, state: str, agent: str = "", workspace: str = "") -> None:
        self._state = state
        self._agent = agent
        self._is_elsewhere = bool(workspace)  # whoever asks says so, not a file
        self._starters: list[tuple[ConfigFile, Starter]] = []
        self._layers: list[tuple[ConfigFile, Settings]] = []
        self._seen: set[str] = set()
        self._untrusted: list[ConfigFile] = []
        self._unreadable: list[str] = []
        self.warnings: list[str] = []
        self.read_hosts: tuple[str, ...] = ()
        self.project = ""  # the folder of the project's own file that is in force
        self.workspace = workspace
        self.named_by: Trusted | None = None  # the file that named the workspace
        self.unreached = ""

    def is_trusted(self, path: str) -> bool:
        """Tell whether there is a record about a file, which need not be there itself."""
        return bool(self._state) and os.path.exists(record_path(self._state, path))

    def add(self, file: ConfigFile) -> None:
        """Take a file's compiled settings: of this version, or of the last one trusted."""
        if file.path in self._seen:  # a project in the user's home: their own file
            return
        self._seen.add(file.path)
        text = self._text_of(file)
        known = self._known(file, text)
        if known is None and self._is_copy(file, text):
            return
        if known is None and text is None:
            self._unreadable.append(file.path)
        elif known is None or (known.content != text and not self._stays(file, known)):
            if not self._agent or _says_something(file, text):
                self._untrusted.append(file)
        else:
            self._put_in_force(file, known, text)

    def _is_copy(self, file: ConfigFile, text: str | None) -> bool:
        """Tell whether a file in the workspace says what the one here says that named it."""
        is_named = self.named_by is not None and self.named_by.content == text
        return is_named and file.kind == "notyet" and is_remote(file.path)

    def _known(self, file: ConfigFile, text: str | None) -> Trusted | None:
        """Return the record that counts for a file; of the user's own, one made just now."""
        known = read_record(self._state, file.path) if self._state else None
        if file.own and text is not None and (known is None or known.content != text):
            return self._compiled_anew(file, text)
        if known is not None and not known.at and not file.own:
            return None  # it was the user's own once; nobody was asked about it
        return known

    def _put_in_force(self, file: ConfigFile, known: Trusted, text: str | None) -> None:
        settings = self._thawed(file, known)
        if settings is None:
            return
        if known.content != text and any(map(_is_by_path, settings.gates)):
            # The file is the command, and nobody has seen this one.
            if text is None and file.tree.unseen:
                self._unreadable.append(file.path)
            else:
                self._untrusted.append(file)
            return
        if text is not None and known.content != text:
            self.warnings.append(
                f"{visible(file.path)} changed since it was trusted; that version stays in force "
                f"until you run: {file.command}"
            )
        if file.kind == "notyet" and not file.own:
            self.project = parent(file.path)
        if settings.workspace and not self._is_elsewhere:
            self.workspace, self.named_by = settings.workspace, known
        if self._agent and file.kind in _STARTING:
            self._start(file, known)
        if self._is_elsewhere and not is_remote(file.path):
            settings = _kept_here(settings)
        self._layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def _start(self, file: ConfigFile, known: Trusted) -> None:
        for starter in _read(file, known.content).starters:
            check = starter.check
            assert isinstance(check, Command)
            if self._is_elsewhere and not check.workspace:
                starter = replace(starter, check=replace(check, workspace=LOCAL))  # noqa: PLW2901  # the same one, kept here
            self._starters.append((file, starter))

    def _stays(self, file: ConfigFile, known: Trusted) -> bool:
        """Tell whether the last trusted version may stay in force, now that the file differs.

        Another folder under the same name is another project: nobody trusted it.
        """
        now = file.tree.folder_id(file.path)
        if not now and file.tree.unseen:
            return True
        return file.own or not known.folder or known.folder == now

    def _thawed(self, file: ConfigFile, known: Trusted) -> Settings | None:
        try:
            return thaw(dict(known.compiled))
        except ValueError:  # of another version of notyet, or damaged
            if file.kind != "conclaude":
                return self._thawed_anew(file, known)
        # Reading YAML needs a package that a hook does not look for.
        self._unreadable.append(file.path)
        self.warnings.append(
            f"{visible(file.path)} was trusted with another version of notyet; run: {file.command}"
        )
        return None

    def _text_of(self, file: ConfigFile) -> str | None:
        if file.is_gone:
            self.warnings.append(
                f"{visible(file.path)} was removed since it was trusted; that version stays in "
                f"force until you run: {file.command} --revoke"
            )
            return None
        if file.tree.unseen and not file.tree.exists(file.path):
            return None  # which is said once for all files of a machine
        try:
            return file.tree.text_of(file.path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self.warnings.append(f"{visible(file.path)} cannot be read: {reason}")
            return None

    def _compiled_anew(self, file: ConfigFile, text: str) -> Trusted | None:
        """Compile a file of the user's own, and keep that for the next stop."""
        from notyet.config.compiled import freeze

        settings = _read(file, text)
        self.warnings += [str(said) for said in (*settings.mistakes, *settings.warnings)]
        record = Trusted(path=file.path, content=text, compiled=freeze(settings))
        if self._state and not settings.mistakes:  # else they are to be said again
            try:
                write_record(self._state, record)
            except OSError as error:
                self.warnings.append(f"{self._state} cannot be written: {error.strerror}")
        return record

    def _thawed_anew(self, file: ConfigFile, known: Trusted) -> Settings:
        """Compile the trusted text again: another version of notyet wrote the record."""
        settings = _read(file, known.content)
        self.warnings += [str(mistake) for mistake in settings.mistakes]
        return settings

    def has_layer(self, machine: str) -> bool:
        """Tell whether a file of that machine is in force."""
        return any(file.path.startswith(machine + "/") for file, _ in self._layers)

    def setup(self) -> Setup:
        """Merge the layers: what comes later wins."""
        limits: dict[str, Any] = {}
        reply: dict[str, str] = {}
        tell = False
        for _, settings in self._layers:
            limits |= settings.limits
            reply |= settings.reply
            tell = tell if settings.start_tell is None else settings.start_tell
        observers = {o.name: o for _, settings in self._layers for o in settings.observers}
        notifications = [s.notifications for _, s in self._layers if s.notifications]
        return Setup(
            gates=self._gates(),
            starters=self._unique_starters(),
            limits=limits,
            observers=tuple(observers.values()),
            notifications=tuple(notifications),
            reply=reply,
            start_tell=tell,
            workspace=self.workspace,
            unreached=self.unreached,
            untrusted=tuple(self._untrusted),
            unreadable=tuple(self._unreadable),
            warnings=tuple(self.warnings),
        )

    def _gates(self) -> tuple[Gate, ...]:
        """Return all gates once: ours by name (J6), Claude's and Mux's by command (J1, J2)."""
        merged: dict[object, Gate] = {}
        for file, settings in self._layers:
            for gate in settings.gates:
                key: object = gate.name
                if file.kind in {"claude", "mux"}:
                    key = (file.kind, gate.match, gate.check.line)  # type: ignore[union-attr]  # a Command
                elif file.kind != "notyet":
                    key = (file.path, gate.name)
                if key in merged and file.kind == "claude" and not is_remote(file.path):
                    continue
                merged[key] = gate
        return _with_own_names(merged.values())

    def _unique_starters(self) -> tuple[Starter, ...]:
        """Return all starters; Claude Code runs the same command once (J1)."""
        unique: dict[object, Starter] = {}
        for place, (file, starter) in enumerate(self._starters):
            key: object = place
            if file.kind == "claude":
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
