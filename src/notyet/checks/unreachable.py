"""Machines that were found out of reach a moment ago, so that nobody waits for them again at once.

A stop may look at the files of a machine, and then ask gates there in several stages. If each of
them waited for it, its host would stop waiting for us. It is forgotten soon: whoever lives longer
than a stop, as a supervisor does, tries again at the next one.
"""

from __future__ import annotations

from time import monotonic

_LIFE = 10.0  # seconds that it is believed
_AT_ONCE = 0.5  # seconds; what is found out so quickly can as well be tried again
_MUCH = 2  # times; whoever waits so much longer may have more luck

_lost: dict[str, tuple[float, float, str]] = {}  # until when, how long was waited, and why


def note(machine: str, problem: str, *, patience: float, seconds: float) -> None:
    """Take down that a machine could not be reached, with so much patience, after so long."""
    if seconds >= _AT_ONCE:
        _lost[machine] = (monotonic() + _LIFE, patience, problem)


def why_not(machine: str, patience: float) -> str:
    """Say why it is of no use to try again now with so much patience; empty if it may be."""
    until, waited, problem = _lost.get(machine, (0.0, 0.0, ""))
    is_known = monotonic() < until and patience <= _MUCH * waited
    return problem if is_known else ""
