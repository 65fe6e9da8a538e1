"""`Tree`: where files of configuration are looked for: on this machine, or in a workspace (M5).

A file in a workspace goes by its address, `ssh://dev@box/srv/app/notyet.toml`, wherever a file
here goes by its path: in messages, in records of trust, and as the source of gates.
"""

from __future__ import annotations

from notyet import light
from notyet.config.find import exists

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


MOST_BYTES = 4 * 1024 * 1024  # of a configuration file
_BLOCK = 1 << 16  # at least so much is read at once: some systems do not know a file's size
_KIND, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG, without importing `stat`
_EINVAL, _EFBIG = 22, 27  # the same everywhere, without importing `errno`


class LocalTree:
    """The files of this machine."""

    unseen = ""

    def exists(self, name: str) -> bool:
        """Ask the system."""
        return exists(name)

    def text_of(self, name: str) -> str:
        """Read the file."""
        return text_of(name)

    def is_executable(self, name: str) -> bool:
        """Ask the system."""
        return light.access(name, light.X_OK)

    def folder_id(self, name: str) -> str:
        """Ask the system."""
        from notyet.config.trust import folder_id

        return folder_id(name)


LOCAL_TREE = LocalTree()


def text_of(path: str, most: int = MOST_BYTES) -> str:
    """Return a file's text, whatever bytes it holds. Raises OSError."""
    # Not blocking, because opening a pipe that nobody writes to would wait for ever.
    descriptor = light.open(path, light.O_RDONLY | light.O_NONBLOCK | light.O_CLOEXEC)
    try:
        about = light.fstat(descriptor)
        if about.st_mode & _KIND != _REGULAR:
            raise OSError(_EINVAL, "it is not a regular file", path)
        content = b""
        while len(content) <= most:
            part = light.read(descriptor, min(max(about.st_size, _BLOCK), most) + 1)
            if not part:
                return content.decode("utf-8", "surrogateescape")
            content += part
    finally:
        light.close(descriptor)
    raise OSError(_EFBIG, f"it is larger than {most // 1024 // 1024} MB", path)
