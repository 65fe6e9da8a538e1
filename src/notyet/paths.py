"""The part of `os.path` that a hook needs, without `os`; see `notyet.system`.

Each function does what its namesake does, for texts. What is rare is left to the namesake. Only
`real_folder` has none.
"""

from __future__ import annotations

from posix import getcwd, lstat, readlink, stat

_KIND = 0o170000  # S_IFMT and its values, without importing `stat`
_FOLDER, _REGULAR, _LINK = 0o040000, 0o100000, 0o120000
_MOST_LINKS = 40  # on the way to one file, as in the kernel; else they may lead in a circle

__all__ = (
    "abspath",
    "basename",
    "dirname",
    "exists",
    "expanduser",
    "isabs",
    "isdir",
    "isfile",
    "join",
    "lexists",
    "normpath",
    "real_folder",
    "realpath",
    "split",
)


def isabs(path: str) -> bool:
    """Tell whether a path begins at the root."""
    return path.startswith("/")


def join(first: str, *others: str) -> str:
    """Join parts of a path; one that begins at the root stands for itself."""
    path = first
    for part in others:
        if part.startswith("/"):
            path = part
        elif not path or path.endswith("/"):
            path += part
        else:
            path = f"{path}/{part}"
    return path


def split(path: str) -> tuple[str, str]:
    """Return the folder that a path lies in, and its own name."""
    cut = path.rfind("/") + 1
    folder, name = path[:cut], path[cut:]
    if folder.strip("/"):
        folder = folder.rstrip("/")
    return folder, name


def dirname(path: str) -> str:
    """Return the folder that a path lies in."""
    return split(path)[0]


def basename(path: str) -> str:
    """Return what stands behind the last slash."""
    return path[path.rfind("/") + 1 :]


def normpath(path: str) -> str:
    """Return a path without empty parts, `.` and `..`."""
    root = "/" if path.startswith("/") else ""
    if path.startswith("//") and not path.startswith("///"):  # which POSIX lets mean another root
        root = "//"
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != ".." or (not root and not parts) or (parts and parts[-1] == ".."):
            parts.append(part)
        elif parts:
            parts.pop()
    return root + "/".join(parts) or "."


def abspath(path: str) -> str:
    """Return a path from the root, links not followed."""
    return normpath(path if path.startswith("/") else join(getcwd(), path))


def realpath(path: str) -> str:
    """Return where a path really leads; what is missing on the way counts as no link."""
    real = "/"
    left = (path if path.startswith("/") else join(getcwd(), path)).split("/")[::-1]
    links = 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = real[: real.rfind("/")] or "/"
            continue
        name = f"{real.rstrip('/')}/{part}"
        try:
            if lstat(name).st_mode & _KIND == _LINK:
                links += 1
                if links > _MOST_LINKS:
                    from os.path import realpath as namesake

                    return namesake(path)
                target = readlink(name)
                left += target.split("/")[::-1]
                real = "/" if target.startswith("/") else real
                continue
        except OSError:
            pass  # it is not there, or cannot be looked at
        real = name
    return real


def real_folder(path: str) -> str:
    """Return where a folder really lies; empty for a name that the system cannot take."""
    try:
        return realpath(path) if path else ""
    except (OSError, ValueError):  # a NUL, or half a character
        return ""


def exists(path: str) -> bool:
    """Tell whether a path leads to something."""
    try:
        stat(path)
    except (OSError, ValueError):
        return False
    return True


def lexists(path: str) -> bool:
    """Tell whether there is something of this name, be it a link to nowhere."""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def isdir(path: str) -> bool:
    """Tell whether a path leads to a folder."""
    return _kind(path) == _FOLDER


def isfile(path: str) -> bool:
    """Tell whether a path leads to a regular file."""
    return _kind(path) == _REGULAR


def _kind(path: str) -> int:
    try:
        return stat(path).st_mode & _KIND
    except (OSError, ValueError):
        return 0


def expanduser(path: str) -> str:
    """Return a path with the home of a user in the place of `~`."""
    if not path.startswith("~"):
        return path
    from os.path import expanduser as namesake

    return namesake(path)
