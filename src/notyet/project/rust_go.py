"""Rust and Go: what a package or module checks itself with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_CARGO = "Cargo.toml"
_FORMATTED = ("**/*.rs", "**/rustfmt.toml", "**/.rustfmt.toml", "**/Cargo.toml")
_COMMANDS = (
    ("format", "cargo fmt --check", _FORMATTED),
    ("lint", "cargo clippy --quiet -- -D warnings", ()),
    ("tests", "cargo test --quiet", ()),
)
_GO = "go.mod"
_LINTER = (".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json")


def rust(folder: Folder) -> Iterator[Proposal]:
    """Yield formatting, clippy and the tests of a package or a workspace."""
    document = folder.toml(_CARGO)
    table = next((key for key in ("package", "workspace") if at(document, key) is not None), "")
    if not table:
        return
    line = document.locate((table,))[0]
    for name, run, paths in _COMMANDS:
        yield Proposal(name=name, tool="cargo", run=run, file=_CARGO, line=line, paths=paths)


def go(folder: Folder) -> Iterator[Proposal]:
    """Yield vet, the linter if the project configures it, and the tests of a module."""
    line = folder.line_with(_GO, "module")
    if not line:
        return
    linter = folder.first(*_LINTER)
    if linter:
        run = "golangci-lint run"  # which vets, too
        yield Proposal(name="lint", tool="golangci-lint", run=run, file=linter)
    else:
        yield Proposal(name="lint", tool="go", run="go vet ./...", file=_GO, line=line)
    yield Proposal(name="tests", tool="go", run="go test ./...", file=_GO, line=line)
