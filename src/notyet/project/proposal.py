"""`Proposal`: a gate that a project seems to want, and what says so."""

from __future__ import annotations

from notyet.core.record import Record


class Proposal(Record, kw_only=True):
    """A command that a project has for itself, and the place in its files that shows it."""

    name: str  # what it is about: tests, lint, types, format, build, ...
    tool: str  # whose command it is: pytest, npm, make, ...
    run: str  # a script for a shell
    file: str  # what shows it, below the project's folder
    line: int = 1
    dir: str = ""  # where it runs, below the project's folder
    paths: tuple[str, ...] = ()  # all that it depends on, where that is evident
