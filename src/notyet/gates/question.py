"""What a gate of notyet's own is asked, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.core.event import StopEvent


@dataclass(frozen=True, kw_only=True)
class Question:
    """One gate at one stop."""

    event: StopEvent
    gate: str  # its name
    options: Mapping[str, Any] = field(default_factory=dict)  # what its table in the file says
    folder: str = ""  # of the file that names it
    reports: tuple[Mapping[str, Any], ...] = ()  # of earlier gates: gate, status, exit, seconds
    commands: tuple[Mapping[str, Any], ...] = ()  # of all gates of this stop: gate, line, dir
    command: Mapping[str, Any] = field(default_factory=dict)  # its own: script or argv, shell
    now: Mapping[str, Any] = field(default_factory=dict)  # how that just failed: output, exit
    seconds: float = 600.0  # that it may take


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the gate found out; without `reason` and `problem`, the agent may finish."""

    reason: str = ""  # sends the agent back: what is wrong, and what to do next
    problem: str = ""  # why the gate cannot say; the gate's `if_broken` decides then
    tell: str = ""  # one line for the user, whatever was decided
    note: str = ""  # why it passed, for the log
    output: str = ""  # more for the log
    tokens: int = 0  # that a model used, where it is known
