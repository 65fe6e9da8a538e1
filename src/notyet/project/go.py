"""What a Go project checks itself with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.project.folder import Proposal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_FILE = "go.mod"
_LINTER = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield vet, the linter if the project configures it, and the tests of a module."""
    line = folder.line_with(_FILE, "module")
    if not line:
        return
    linter = folder.first(*_LINTER)
    if linter:
        run = "golangci-lint run"  # which vets, too
        yield Proposal(name="lint", tool="golangci-lint", run=run, file=linter)
    else:
        yield Proposal(name="lint", tool="go", run="go vet ./...", file=_FILE, line=line)
    yield Proposal(name="tests", tool="go", run="go test ./...", file=_FILE, line=line)
