"""What applies at a place, now: trusted files, compiled, merged. On the hook's way, so light."""

from __future__ import annotations

import os

from notyet.config.compiled import thaw
from notyet.config.files import (
    READABLE,
    ConfigFile,
    host_files,
    known_as,
    native_files,
    real_folder,
    root_of,
)
from notyet.config.store import (
    Trusted,
    folder_id,
    read_record,
    record_path,
    state_folder,
    text_of,
    write_record,
)
from notyet.core.command import Command
from notyet.core.record import Record, replace
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from notyet.config.settings import FileObserver, Settings
    from notyet.core.gate import Gate
    from notyet.core.starter import Starter

# Hosts that do not run their own files themselves, so that we do it for them; and those that do,
# whose files we leave alone (J8). What calls us as conclaude is Claude Code.
_READ_FOR = {"mux": ("mux",), "conclaude": ("conclaude",)}
_LEFT_TO = {"claude": ("claude",), "codex": ("codex",), "conclaude": ("claude",)}
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
    untrusted: tuple[ConfigFile, ...] = ()  # nobody trusted these, so nothing of them applies
    unreadable: tuple[str, ...] = ()  # files of which nothing can be known
    warnings: tuple[str, ...] = ()

    @property
    def distrust(self) -> list[str]:
        """What is said of the files that nobody trusted."""
        return [
            f"{visible(file.path)} is not trusted; run: {file.command}" for file in self.untrusted
        ]


def load(
    cwd: str,
    host: str,
    environ: Mapping[str, str],
    *,
    only: str = "",
    project: str = "",
    agent: str = "",
) -> Setup:
    """Return what is in force for a host's agent that works in this folder.

    `only` is a file to use instead of those that are found; `project` is where the host says
    that its project is, which counts where the folder itself belongs to none. `agent` names the
    program that a supervisor runs: the files of all hosts are read for it, starters included,
    but for those whose hooks that program runs itself (J8).
    """
    loaded = _Loaded(state_folder(environ), agent)
    place = real_folder(cwd)
    if only:
        loaded.add(ConfigFile(path=known_as(only), kind="notyet"))
    else:
        # A folder may have been replaced by a link to another one since it was trusted.
        given = os.path.abspath(cwd) if place else ""
        for start in dict.fromkeys((place, given, real_folder(project))):
            files = native_files(start, environ, loaded.is_trusted)
            for file in files:
                loaded.add(file)
            if loaded.project:  # a file that nobody trusted hides no other project
                break
    places = [root_of(place) if place else "", loaded.project]
    read_for = READABLE if agent else _READ_FOR.get(host, ())
    left_to = _LEFT_TO.get(agent or host, ())
    for name in dict.fromkeys((*read_for, *loaded.read_hosts)):
        for folder in dict.fromkeys(filter(None, places)):
            if name not in left_to:
                for file in host_files(name, folder, environ, loaded.is_trusted):
                    loaded.add(file)
    return loaded.setup()


def load_vouched(files: Sequence[ConfigFile]) -> Setup:
    """Return what files say whom the caller vouches for; nothing is looked up or remembered."""
    loaded = _Loaded("")
    for file in files:
        loaded.add(replace(file, own=True))
    return loaded.setup()


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

    return compile_text(text, file.path, file.kind)


class _Loaded:
    """Files as they are added, one layer over the other."""

    def __init__(self, state: str, agent: str = "") -> None:
        self._state = state
        self._agent = agent
        self._starters: list[tuple[ConfigFile, Starter]] = []
        self._layers: list[tuple[ConfigFile, Settings]] = []
        self._seen: set[str] = set()
        self._untrusted: list[ConfigFile] = []
        self._unreadable: list[str] = []
        self._warnings: list[str] = []
        self.read_hosts: tuple[str, ...] = ()
        self.project = ""  # the folder of the project's own file that is in force

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
        if known is None and text is None:
            self._unreadable.append(file.path)
        elif known is None or (known.content != text and not self._stays(file, known)):
            if not self._agent or _says_something(file, text):
                self._untrusted.append(file)
        else:
            self._put_in_force(file, known, text)

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
            self._untrusted.append(file)  # the file is the command, and nobody has seen this one
            return
        if text is not None and known.content != text:
            self._warnings.append(
                f"{visible(file.path)} changed since it was trusted; that version stays in force "
                f"until you run: {file.command}"
            )
        if file.kind == "notyet" and not file.own:
            self.project = os.path.dirname(file.path)
        if self._agent and file.kind in _STARTING:
            read = _read(file, known.content)
            self._starters += [(file, starter) for starter in read.starters]
        self._layers.append((file, settings))
        self.read_hosts = (*self.read_hosts, *settings.read_hosts)

    def _stays(self, file: ConfigFile, known: Trusted) -> bool:
        """Tell whether the last trusted version may stay in force, now that the file differs.

        Another folder under the same name is another project: nobody trusted it.
        """
        return file.own or not known.folder or known.folder == folder_id(file.path)

    def _thawed(self, file: ConfigFile, known: Trusted) -> Settings | None:
        try:
            return thaw(dict(known.compiled))
        except ValueError:  # of another version of notyet, or damaged
            if file.kind != "conclaude":
                return self._thawed_anew(file, known)
        # Reading YAML needs a package that a hook does not look for.
        self._unreadable.append(file.path)
        self._warnings.append(
            f"{visible(file.path)} was trusted with another version of notyet; run: {file.command}"
        )
        return None

    def _text_of(self, file: ConfigFile) -> str | None:
        if file.is_gone:
            self._warnings.append(
                f"{visible(file.path)} was removed since it was trusted; that version stays in "
                f"force until you run: {file.command} --revoke"
            )
            return None
        try:
            return text_of(file.path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._warnings.append(f"{visible(file.path)} cannot be read: {reason}")
            return None

    def _compiled_anew(self, file: ConfigFile, text: str) -> Trusted | None:
        """Compile a file of the user's own, and keep that for the next stop."""
        from notyet.config.compiled import freeze

        settings = _read(file, text)
        self._warnings += [str(said) for said in (*settings.mistakes, *settings.warnings)]
        record = Trusted(path=file.path, content=text, compiled=freeze(settings))
        if self._state and not settings.mistakes:  # else they are to be said again
            try:
                write_record(self._state, record)
            except OSError as error:
                self._warnings.append(f"{self._state} cannot be written: {error.strerror}")
        return record

    def _thawed_anew(self, file: ConfigFile, known: Trusted) -> Settings:
        """Compile the trusted text again: another version of notyet wrote the record."""
        settings = _read(file, known.content)
        self._warnings += [str(mistake) for mistake in settings.mistakes]
        return settings

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
            untrusted=tuple(self._untrusted),
            unreadable=tuple(self._unreadable),
            warnings=tuple(self._warnings),
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
                if key in merged and file.kind == "claude":
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
