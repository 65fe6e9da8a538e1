"""`Host`: what the module of a host must offer; a new host is one more such module."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from notyet.config.document import Mistake
    from notyet.install.change import Change
    from notyet.install.entry import Entry
    from notyet.install.place import Place, Scope
    from notyet.install.registered import Registration

    class Host(Protocol):
        """Where a program keeps its hooks, and how ours are written there."""

        NAME: str  # "claude"
        TITLE: str  # "Claude Code"
        PROGRAM: str  # what is looked for on PATH
        SCOPES: tuple[Scope, ...]  # where we may write
        TRUSTS: bool  # whether a person approves each hook, so that there is an `approval`
        APPROVE: str  # how that is done; such hosts skip other hooks, and say nothing

        def places(self, cwd: str, environ: Mapping[str, str]) -> list[Place]:
            """Return every settings file that the host would read there, in its order."""

        def target(self, scope: Scope, cwd: str, environ: Mapping[str, str]) -> Place:
            """Return where to write. Raises CannotInstall."""

        def added(self, text: str, place: Place, entries: Sequence[Entry]) -> str:
            """Return the file's text with our entries. Raises CannotInstall."""

        def removed(self, text: str, place: Place) -> str:
            """Return the file's text without our entries. Raises CannotInstall."""

        def found(
            self, cwd: str, environ: Mapping[str, str]
        ) -> tuple[list[Registration], list[Mistake]]:
            """Return our entries in all places, and what is wrong with files of theirs."""

        def approval(self, place: Place, text: str, environ: Mapping[str, str]) -> Change | None:
            """Return what makes the host trust our entries of this text; None: it asks nobody."""

        def disapproval(
            self, place: Place, before: str, after: str, environ: Mapping[str, str]
        ) -> Change | None:
            """Return what keeps trust right when a text changes. Both raise CannotInstall."""

        def advice(self, place: Place, cwd: str) -> list[str]:
            """Return what a person still has to do after an installation there."""
