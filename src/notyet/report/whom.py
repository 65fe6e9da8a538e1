"""For whose stops gates are, in words; and which are for nobody's."""

from __future__ import annotations

from notyet.core.gate import EVERY_AGENT
from notyet.core.glob import glob_matches
from notyet.core.text import listed, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.core.gate import Gate, Match

_WILD = "*?["


def whom(gate: Gate) -> str:
    """Say for whose stops a gate is."""
    match = gate.match
    if match.events == ("agent",):
        said = "main agent"
    elif match.agents != EVERY_AGENT:
        said = ", ".join(match.agents)
    else:
        said = "all" if "agent" in match.events else "subagents"
    return f"{said} but {', '.join(match.never)}" if match.never else said


def stops_of_subagents(gates: Sequence[Gate]) -> str:
    """Say at which stops of subagents gates are asked; each at its own, if they differ."""
    kinds = list(dict.fromkeys(_subagents(gate.match) for gate in gates))
    return f"each stop of {kinds[0]}" if len(kinds) == 1 else f"stops of {listed(kinds)}"


def _subagents(match: Match) -> str:
    names = "" if match.agents == EVERY_AGENT else f"{_shown(match.agents)} "
    return f"{names}subagents" + (f" but {_shown(match.never)}" if match.never else "")


def _shown(patterns: Sequence[str]) -> str:
    return ", ".join(map(visible, patterns))


def leaves_nobody(match: Match) -> bool:
    """Tell whether `never` leaves out all subagents that a gate is for; in doubt, it does not."""
    if "*" in match.never:
        return True
    if match.kind != "glob" or match.agents == EVERY_AGENT:
        return False
    return all(
        name in match.never
        or (
            not any(sign in name for sign in _WILD)
            and any(glob_matches(pattern, name) for pattern in match.never)
        )
        for name in match.agents
    )
