"""One run of a check, as the failures that it named."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST_MESSAGE = 200  # characters
_LONGEST_DETAIL = 4_000
_LONGEST_IDENTITY = 1_000

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+")
_OBJECT_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+")
_TEMPORARY = re.compile(r"(?:/private)?/(?:tmp|var/folders)/[^\s:'\",)\]]+")
_HASH = re.compile(
    r"\b(?=[a-f]*\d)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{12,64}\b"
)
_NUMBER = re.compile(r"(?<![A-Za-z0-9_])\d+(?:[.,:]\d+)*")
_SPACES = re.compile(r"\s+")


def masked(text: str) -> str:
    """Return a message without what differs between runs: numbers, addresses, temporary paths."""
    text = text[: 4 * _LONGEST_MESSAGE]
    text = _TEMPORARY.sub("<tmp>", _ADDRESS.sub("<address>", text))
    text = _NUMBER.sub("0", _HASH.sub("<hash>", text))
    return _SPACES.sub(" ", text).strip()[:_LONGEST_MESSAGE]


def spans(starts: Sequence[int], end: int) -> list[tuple[int, int]]:
    """Return where each block begins and where the next one does."""
    return list(pairwise([*starts, end]))


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run of a check says about failures."""

    tool: str  # joined with "+" where the output is of several
    failures: Counter[str]  # by identity, which has no line numbers
    messages: Mapping[str, str] = field(default_factory=dict)  # masked, by identity
    details: Mapping[str, str] = field(default_factory=dict)  # the output about it, by identity
    ran: int | None = None  # tests that ran; 0 also for a linter that checked nothing
    complete: bool = True  # as many failures as the tool itself counted
    stopped_early: bool = False
    load_errors: frozenset[str] = frozenset()  # of files that did not load and hide their failures
    other_errors: Counter[str] = field(default_factory=Counter)  # masked lines beside the failures
    printed: Mapping[str, str] = field(default_factory=dict)  # such lines as they were, by these
    tests: frozenset[str] | None = None  # each test that ran, where the tool names them all


class Found:
    """A run while it is being read."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.failures: Counter[str] = Counter()
        self.messages: dict[str, str] = {}
        self.details: dict[str, str] = {}
        self.load_errors: set[str] = set()
        self.ran: int | None = None
        self.complete = True
        self.stopped_early = False
        self.tests: set[str] | None = None
        self.claimed: set[int] = set()  # numbers of the lines that are about these failures

    def add(self, identity: str, message: str = "", detail: str = "") -> str:
        """Count a failure and return its identity."""
        identity = _OBJECT_ADDRESS.sub("<address>", identity).strip()[:_LONGEST_IDENTITY]
        self.failures[identity] += 1
        if message:
            self.messages.setdefault(identity, masked(message))
        if detail.strip():
            self.details.setdefault(identity, detail.strip("\n")[:_LONGEST_DETAIL])
        return identity

    def add_load_error(self, place: str, message: str, detail: str = "") -> str:
        """Count a file that did not load; another message is another failure."""
        identity = self.add(f"{place}: {masked(message)}", message, detail)
        self.load_errors.add(identity)
        return identity

    def claim(self, first: int, last: int) -> None:
        """Note that lines, the last one included, say nothing beside the failures."""
        self.claimed.update(range(first, last + 1))

    def run(self, errors: Sequence[str] = ()) -> Run:
        """Return what was read; `errors` are lines of the output beside the failures."""
        return Run(
            tool=self.tool,
            failures=self.failures,
            messages=self.messages,
            details=self.details,
            ran=self.ran,
            complete=self.complete,
            stopped_early=self.stopped_early,
            load_errors=frozenset(self.load_errors),
            other_errors=Counter(map(masked, errors)),
            printed={masked(line): line.strip()[:_LONGEST_MESSAGE] for line in errors},
            tests=None if self.tests is None else frozenset(self.tests),
        )
