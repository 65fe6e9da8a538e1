"""Gates and starters of several files as one list: what the same command twice comes to (J)."""

from __future__ import annotations

from notyet.core.address import is_remote
from notyet.core.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from notyet.config.files import ConfigFile
    from notyet.config.layers import Loaded
    from notyet.config.settings import Settings
    from notyet.core.gate import Gate
    from notyet.core.starter import Starter


def merged_gates(loaded: Loaded) -> tuple[Gate, ...]:
    """Return all gates once: ours by name (J6), Claude's and Mux's by command (J1, J2)."""
    if loaded.unread:
        from notyet.config.differing import read_gates

        read_gates(loaded)
    merged: dict[object, Gate] = {}
    for file, settings in loaded.layers:
        for gate in _gates(loaded, file, settings):
            key: object = gate.name
            if file.kind in {"claude", "mux"}:
                key = (file.kind, gate.match, gate.check.line)  # type: ignore[union-attr]  # a Command
            elif file.kind != "notyet":
                key = (file.path, gate.name)
            if key in merged and file.kind == "claude" and not is_remote(file.path):
                continue
            merged[key] = gate
    return _with_own_names(merged.values())


def _gates(loaded: Loaded, file: ConfigFile, settings: Settings) -> tuple[Gate, ...]:
    """Return the gates of a layer; what a file here says, is said of this machine."""
    if loaded.workspace and not is_remote(file.path):
        from notyet.config.amended import kept_here

        settings = kept_here(settings)
    return settings.gates


def merged_starters(starters: Iterable[tuple[ConfigFile, Starter]]) -> tuple[Starter, ...]:
    """Return all starters; Claude Code runs the same command once (J1)."""
    unique: dict[object, Starter] = {}
    for place, (file, starter) in enumerate(starters):
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
