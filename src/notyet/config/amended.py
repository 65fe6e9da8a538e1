"""Settings of a file, amended by what is known of the file itself and of where the agent works."""

from __future__ import annotations

from notyet.core.command import Command
from notyet.core.record import replace
from notyet.core.remote import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.settings import Settings
    from notyet.core.gate import Gate


def is_by_path(gate: Gate) -> bool:
    """Tell whether a gate runs its own file, as it is at that moment."""
    return isinstance(gate.check, Command) and bool(gate.check.options.get("by_path"))


def refused(settings: Settings, why: str) -> Settings:
    """Let the gates of a file be asked, and not be able to start: they are not to be lost."""
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)
        options = {**gate.check.options, "refused": why}
        gates.append(replace(gate, check=replace(gate.check, options=options)))
    return replace(settings, gates=tuple(gates))


def kept_here(settings: Settings) -> Settings:
    """Let gates of a file here run here, though the agent's workspace is elsewhere."""
    gates = []
    for gate in settings.gates:
        assert isinstance(gate.check, Command)
        here = replace(gate.check, workspace=gate.check.workspace or LOCAL)
        gates.append(replace(gate, check=here))
    return replace(settings, gates=tuple(gates))
