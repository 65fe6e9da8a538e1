"""Settings of a file, amended by what is known of the file itself and of where the agent works."""

from __future__ import annotations

from notyet.core.address import LOCAL
from notyet.core.command import Command
from notyet.core.record import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.config.settings import Settings
    from notyet.core.gate import Gate


def is_by_path(gate: Gate) -> bool:
    """Tell whether a gate runs its own file, as it is at that moment."""
    return isinstance(gate.check, Command) and bool(gate.check.options.get("by_path"))


def refused(settings: Settings, why: str) -> Settings:
    """Let the gates of a file be asked, and not be able to start: they are not to be lost."""
    return _changed(
        settings, lambda check: replace(check, options={**check.options, "refused": why})
    )


def kept_here(settings: Settings) -> Settings:
    """Let gates of a file here run here, though the agent's workspace is elsewhere."""
    return _changed(settings, lambda check: replace(check, workspace=check.workspace or LOCAL))


def _changed(settings: Settings, change: Callable[[Command], Command]) -> Settings:
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)  # as in every file
        gates.append(replace(gate, check=change(gate.check)))
    return replace(settings, gates=tuple(gates))
