"""`Tree`: where files of configuration are looked for: on this machine, or in a workspace (M5).

A file in a workspace goes by its address, `ssh://dev@box/srv/app/notyet.toml`, wherever a file
here goes by its path: in messages, in records of trust, and as the source of gates.
"""

from __future__ import annotations

from notyet import system
from notyet.config.store import folder_id, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Tree(Protocol):
        """The files of one machine, each by its name."""

        @property
        def unseen(self) -> str:
            """Why nothing can be known of these files; empty when they were looked at."""

        def exists(self, name: str) -> bool:
            """Tell whether there is something of this name, be it a link to nowhere."""

        def text_of(self, name: str) -> str:
            """Return a file's text, whatever bytes it holds. Raises OSError."""

        def is_executable(self, name: str) -> bool:
            """Tell whether a file may be run."""

        def folder_id(self, name: str) -> str:
            """Return what tells a file's folder from another that took its name."""


class LocalTree:
    """The files of this machine."""

    unseen = ""

    def exists(self, name: str) -> bool:
        """Ask the system."""
        try:
            system.lstat(name)
        except (OSError, ValueError):
            return False
        return True

    def text_of(self, name: str) -> str:
        """Read the file."""
        return text_of(name)

    def is_executable(self, name: str) -> bool:
        """Ask the system."""
        return system.access(name, system.X_OK)

    def folder_id(self, name: str) -> str:
        """Ask the system."""
        return folder_id(name)


LOCAL_TREE = LocalTree()
