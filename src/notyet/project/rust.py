"""What a Rust project checks itself with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from notyet.project.folder import Proposal, at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from notyet.project.folder import Folder

_FILE = "Cargo.toml"
_FORMATTED = ("**/*.rs", "**/rustfmt.toml", "**/.rustfmt.toml", "**/Cargo.toml")
_COMMANDS = (
    ("format", "cargo fmt --check", _FORMATTED),
    ("lint", "cargo clippy --quiet -- -D warnings", ()),
    ("tests", "cargo test --quiet", ()),
)


def proposals(folder: Folder) -> Iterator[Proposal]:
    """Yield formatting, clippy and the tests of a package or a workspace."""
    document = folder.toml(_FILE)
    table = next((key for key in ("package", "workspace") if at(document, key) is not None), "")
    if not table:
        return
    line = document.locate((table,))[0]
    for name, run, paths in _COMMANDS:
        yield Proposal(name=name, tool="cargo", run=run, file=_FILE, line=line, paths=paths)
