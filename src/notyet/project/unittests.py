"""Tests of Python's own library need no configuration, so only their text shows them."""

from __future__ import annotations

import re

from notyet.project.folder import Proposal
from notyet.project.python import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_IMPORT = re.compile(r"^[ \t]*(?:import unittest\b(?!\.)|from unittest import\b)", re.MULTILINE)
# A class of tests: nothing else is run, whatever it is called.
_CLASS = re.compile(r"^[ \t]*class[ \t]+\w+[ \t]*\([^)#]*TestCase\b", re.MULTILINE)


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all tests that `python3 -m unittest` finds by itself."""
    for name in folder.names(".py"):
        text = folder.text(name) if name.startswith("test") else ""
        found = _CLASS.search(text)
        if found and _IMPORT.search(text):
            run = f"{started(folder, 'python3')} -m unittest"
            line = text.count("\n", 0, found.start()) + 1
            yield Proposal(name="tests", tool="unittest", run=run, file=name, line=line)
            return
