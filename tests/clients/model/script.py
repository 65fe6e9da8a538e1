"""What a scripted model does, in words that are the same for every program.

    {"main": [Run("touch a"), Say("Done.")], "coder": [Say("All of it is written.")]}

The model plays every agent of a session. Which one asks is told by a mark in the agent's task:
`Spawn("[actor: coder] Write it.")`; without a mark it is "main". An actor's steps are given in
order; more requests than steps are written down, and get the last step again. Instead of a list
there may be a function `step(n, request)`, with n counted from 0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAIN = "main"
_MARK = re.compile(r"\[actor: ([\w-]+)\]")
_MOST_UNEXPECTED = 20  # requests; then the program is told so, for there may be no end to them
_LONGEST = 60.0  # seconds that a step may wait for its condition


@dataclass(frozen=True)
class Say:
    """End the turn with these words, `after` seconds or `once` something is so."""

    text: str
    after: float = 0.0
    once: Callable[[], bool] | None = None


@dataclass(frozen=True)
class Run:
    """Call the agent's shell tool, and wait for it where it is not in the background."""

    command: str
    background: bool = False


@dataclass(frozen=True)
class Write:
    """Write a file with the agent's own tool for that, where only this counts as an edit."""

    path: str
    text: str


@dataclass(frozen=True)
class Spawn:
    """Start a subagent; unless it is in the background, wait for its report."""

    task: str
    agent_type: str = ""
    background: bool = False
    isolated: bool = False  # in a work tree of its own, which only Claude Code can do


@dataclass(frozen=True)
class Fail:
    """Answer with an HTTP error."""

    status: int


Step = Say | Run | Write | Spawn | Fail
Steps = list[Step] | Callable[[int, "Request"], Step]


@dataclass
class Request:
    """One request of the program to its model, with what matters of it in plain words."""

    actor: str
    texts: list[str]  # all that a user, a hook or the program told the agent so far, in order
    results: list[str]  # what its tools returned so far, in order
    raw: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)  # texts since the model last spoke
    step: Step | None = None  # what it was answered

    @property
    def last(self) -> str:
        """The texts that came since the model last spoke, as one."""
        return "\n".join(self.news)


class Script:
    """Gives every actor its next step."""

    def __init__(self, parts: dict[str, Steps] | list[Step]) -> None:
        self.parts = parts if isinstance(parts, dict) else {MAIN: parts}
        self.count: dict[str, int] = {}
        self.unexpected: list[str] = []

    def step(self, request: Request) -> Step:
        """Return what the actor does now."""
        n = self.count.get(request.actor, 0)
        self.count[request.actor] = n + 1
        steps = self.parts.get(request.actor)
        if steps is None:
            self.unexpected.append(f"{request.actor}: nobody knows this actor: {request.last!r}")
            return Say("Who am I?")
        if callable(steps):
            return steps(n, request)
        if n >= len(steps):
            self.unexpected.append(f"{request.actor}: request {n + 1}: {request.last!r}")
        if len(self.unexpected) > _MOST_UNEXPECTED:
            return Fail(500)
        return steps[min(n, len(steps) - 1)]


def actor_in(task: str) -> str:
    """Return whose task this is."""
    found = _MARK.search(task)
    return found[1] if found else MAIN


def wait(step: Step) -> None:
    """Wait until a step may be given."""
    if not isinstance(step, Say):
        return
    time.sleep(step.after)
    ends = time.monotonic() + _LONGEST
    while step.once and not step.once() and time.monotonic() < ends:
        time.sleep(0.02)
