"""Tests of Python's own library need no configuration, so only their text shows them."""

from __future__ import annotations

from notyet.project.proposal import Proposal
from notyet.project.python_start import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_IMPORTS = ("import unittest", "from unittest")


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all tests that `python3 -m unittest` finds by itself."""
    for name in folder.names(".py"):
        line = folder.line_with(name, *_IMPORTS) if name.startswith("test") else 0
        if line:
            run = f"{started(folder, 'python3')} -m unittest"
            yield Proposal(name="tests", tool="unittest", run=run, file=name, line=line)
            return
