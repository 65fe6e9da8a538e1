"""`Setup`: what all files of a place come to. Loaded on the hook's way, so it is light."""

from __future__ import annotations

from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.file_observer import FileObserver
    from notyet.config.files import ConfigFile
    from notyet.core.gate import Gate
    from notyet.core.starter import Starter


class Setup(Record, kw_only=True):
    """Everything that is in force at a place, and what its user should know about it."""

    gates: tuple[Gate, ...] = ()
    starters: tuple[Starter, ...] = ()  # only where an agent is supervised
    limits: Mapping[str, Any] = {}
    limit_files: Mapping[str, str] = {}  # which file says each of them; others are at their default
    observers: tuple[FileObserver, ...] = ()
    ledger: Mapping[str, Any] = {}  # how much the user wants kept
    notifications: tuple[Mapping[str, Any], ...] = ()
    reply: Mapping[str, str] = {}
    start_tell: bool = False
    workspace: str = ""  # where the project's files are, if elsewhere: ssh://host/path
    named_by: str = ""  # the file here that says so
    unreached: str = ""  # why that could not be looked at
    untrusted: tuple[ConfigFile, ...] = ()  # nobody trusted these, so nothing of them applies
    unreadable: tuple[str, ...] = ()  # files of which nothing can be known
    # Files elsewhere that a person trusted, and that were not looked at now: nobody was asked, or
    # nobody answered. What was trusted of them counts, so they are no fault.
    unseen: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def distrust(self) -> list[str]:
        """What is said of the files that nobody trusted."""
        if not self.untrusted:
            return []
        from notyet.core.text import visible

        return [
            f"{visible(file.path)} is not trusted; run: {visible(file.command)}"
            for file in self.untrusted
        ]
