"""The areas of the benchmark, in the order of their tables."""

from __future__ import annotations

from typing import NamedTuple


class Area(NamedTuple):
    """A module with `measure(effort)`, and what its table is called."""

    module: str  # bench.<module>
    title: str


AREAS = (
    Area("hook", "A stop: notyet hook as install starts it"),
    Area("peers", "The same job done by others"),
    Area("growth", "Growth: what a stop costs as things get large"),
    Area("commands", "Command gates"),
    Area("engine", "Decisions in process"),
    Area("workspace", "A look at the files"),
    Area("snapshot", "The snapshot of a session's start"),
    Area("ledger", "Ledger"),
    Area("log", "Looking back"),
    Area("screens", "The page"),
    Area("supervisor", "Supervised agents"),
    Area("stores", "Supervised agents on a file, on PostgreSQL, and bare DBOS"),
    Area("remote", "Gates over SSH"),
    Area("acp", "Messages through notyet acp"),
)
