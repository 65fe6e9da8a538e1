"""Files for their owner's eyes only."""

from __future__ import annotations

from errno import EISDIR, ENOENT

from notyet import system


def make_private(path: str) -> None:
    """Create the file 0600 and its missing folders 0700; what exists keeps its modes."""
    if not path:
        raise FileNotFoundError(ENOENT, "there is no home folder to keep it in")
    missing = []
    folder = system.path.dirname(path)
    while folder and not system.path.isdir(folder):
        missing.append(folder)
        folder = system.path.dirname(folder)
    for folder in reversed(missing):
        try:
            system.mkdir(folder, 0o700)
        except FileExistsError:
            if not system.path.isdir(folder):
                raise
    try:
        # Never open and close a file that is there: that would drop the locks which another
        # connection of this process holds on it.
        system.close(
            system.open(
                path, system.O_RDWR | system.O_CREAT | system.O_EXCL | system.O_CLOEXEC, 0o600
            )
        )
    except FileExistsError:
        if system.path.isdir(path):
            raise IsADirectoryError(EISDIR, "it is a directory", path) from None
