"""The hooks of pre-commit, which check all files of a project."""

from __future__ import annotations

from notyet.project.folder import Proposal
from notyet.project.python import started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_FILE = ".pre-commit-config.yaml"
_PROGRAM = "pre-commit"


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield one gate for all hooks."""
    line = folder.line_with(_FILE, "repos:")
    if line:
        run = f"{started(folder, _PROGRAM)} run --all-files"
        yield Proposal(name=_PROGRAM, tool=_PROGRAM, run=run, file=_FILE, line=line)
