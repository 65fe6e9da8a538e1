"""What the hook uses in place of `os`, `os.path` and `json`, whose imports cost more than a stop.

Every stop is a cold start: `os` costs an eighth of a bare interpreter, `json` as much as the rest
of a stop. Functions have the names and the behaviour of their counterparts, for `str` paths on
POSIX; rare cases are passed on to the counterpart. Only the modules that a stop loads may import
this one: pyproject.toml has the list. Everywhere else, use `os` and `json`.
"""

from __future__ import annotations

import sys
from posix import *  # noqa: F403  # like `os`: the system decides which functions exist
from posix import environ as _environ
from posix import getcwd, lstat, readlink, stat

try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner
except ImportError:  # not CPython
    make_encoder = make_scanner = None  # type: ignore[assignment, misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from typing import Any

defpath = "/bin:/usr/bin"
devnull = "/dev/null"
_own: dict[str, str] = {}
_KIND = 0o170000  # S_IFMT and its values, without importing `stat`
_FOLDER, _REGULAR, _LINK = 0o040000, 0o100000, 0o120000
_MOST_LINKS = 40  # on the way to one file, like the kernel's limit
_BLANK = " \t\n\r"


# os


def variables() -> MutableMapping[str, str]:
    """Return this process's environment variables: `os.environ` if `os` is loaded."""
    loaded = sys.modules.get("os")
    if loaded is not None:
        shared: MutableMapping[str, str] = loaded.environ
        return shared
    if not _own:
        _own.update({fsdecode(name): fsdecode(value) for name, value in _environ.items()})
    return _own


def fsdecode(name: bytes) -> str:
    """Return a file name as `str`, whatever bytes it has."""
    return name.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def fsencode(name: str) -> bytes:
    """Return a `str` as the bytes of a file name."""
    return name.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


# os.path


def isabs(path: str) -> bool:
    """Return True if a path is absolute."""
    return path.startswith("/")


def join(first: str, *others: str) -> str:
    """Join parts of a path; an absolute part discards what precedes it."""
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
    """Return a path's folder and its last name."""
    cut = path.rfind("/") + 1
    folder, name = path[:cut], path[cut:]
    if folder.strip("/"):
        folder = folder.rstrip("/")
    return folder, name


def dirname(path: str) -> str:
    """Return the folder of a path."""
    return split(path)[0]


def basename(path: str) -> str:
    """Return what follows the last slash."""
    return path[path.rfind("/") + 1 :]


def normpath(path: str) -> str:
    """Return a path without empty parts, `.` and `..`."""
    root = "/" if path.startswith("/") else ""
    if path.startswith("//") and not path.startswith("///"):  # POSIX lets it mean another root
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
    """Return an absolute path, without following links."""
    return normpath(path if path.startswith("/") else join(getcwd(), path))


def realpath(path: str) -> str:
    """Return an absolute path with all links followed; parts may be missing."""
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
                    from os.path import realpath as counterpart

                    return counterpart(path)
                target = readlink(name)
                left += target.split("/")[::-1]
                real = "/" if target.startswith("/") else real
                continue
        except OSError:
            pass  # missing or unreadable
        real = name
    return real


def real_folder(path: str) -> str:
    """Return the real path of a folder; empty for an invalid name."""
    try:
        return realpath(path) if path else ""
    except (OSError, ValueError):  # a NUL, or a lone surrogate
        return ""


def exists(path: str) -> bool:
    """Return True if a path leads to something."""
    try:
        stat(path)
    except (OSError, ValueError):
        return False
    return True


def lexists(path: str) -> bool:
    """Return True if a path exists; a broken link does."""
    try:
        lstat(path)
    except (OSError, ValueError):
        return False
    return True


def isdir(path: str) -> bool:
    """Return True if a path leads to a folder."""
    return _kind(path) == _FOLDER


def isfile(path: str) -> bool:
    """Return True if a path leads to a regular file."""
    return _kind(path) == _REGULAR


def _kind(path: str) -> int:
    try:
        return stat(path).st_mode & _KIND
    except (OSError, ValueError):
        return 0


def expanduser(path: str) -> str:
    """Replace a leading `~` by the user's home."""
    if not path.startswith("~"):
        return path
    from os.path import expanduser as counterpart

    return counterpart(path)


# Addresses: a path here, or `ssh://host/path` on another machine, which `core.remote` parses.

LOCAL = "local"  # a workspace that is here, whatever a file or an event says
SCHEME = "ssh://"


def is_remote(text: str) -> bool:
    """Return True if a text names a folder or a file on another machine."""
    return text.startswith(SCHEME)


# The user's folders by the XDG rules, from variables alone; a relative path in one is ignored.


def home_folder(environ: Mapping[str, str]) -> str:
    """Return the user's home; empty if there is none."""
    home = environ.get("HOME", "")
    return home if isabs(home) else ""


def config_home(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's configuration; empty without a home."""
    return _xdg_folder(environ, "XDG_CONFIG_HOME", ".config")


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder of the user's state; empty without a home."""
    if "HOME" not in environ:
        environ = {**environ, "HOME": expanduser("~")}
    return _xdg_folder(environ, "XDG_STATE_HOME", ".local/state")


def _xdg_folder(environ: Mapping[str, str], name: str, usual: str) -> str:
    folder = environ.get(name, "")
    if isabs(folder):
        return folder
    home = home_folder(environ)
    return join(home, usual) if home else ""


# json: its C parts, `_json`, are the ones that the package uses. The package itself is loaded only
# to say what is wrong with a text.


class _Settings:
    """The settings that `_json.make_scanner` reads: the package's defaults, except one."""

    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.memo: dict[str, str] = {}

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")


_LENIENT, _STRICT = _Settings(strict=False), _Settings(strict=True)


def loads(text: str) -> Any:
    """Parse one JSON value; control characters inside strings are accepted, as hosts write them.

    Raises ValueError, also for a value that is nested too deeply.
    """
    return _read(text, _LENIENT)


def loads_strictly(text: str) -> Any:
    """Parse one JSON value like `loads`, but refuse control characters inside strings."""
    return _read(text, _STRICT)


def _read(text: str, settings: Any) -> Any:
    try:
        start = len(text) - len(text.lstrip(_BLANK))
        value, end = make_scanner(settings)(text, start)
        if not text[end:].strip(_BLANK):
            return value
    except (StopIteration, SystemError, ValueError, TypeError, AttributeError):
        pass  # not CPython, or not JSON: the package has the error message
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    import json

    try:
        return json.loads(text, strict=settings.strict, parse_constant=settings.parse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def dumps(value: Any) -> str:
    """Write a value of plain types as JSON in ASCII, on one line. Raises ValueError."""
    try:
        return "".join(_encoder()(value, 0))
    except RecursionError:
        raise ValueError("it is nested too deeply, or contains itself") from None
    except TypeError as error:
        raise ValueError(str(error)) from None


def _encoder() -> Any:
    try:
        return make_encoder(
            None, _refuse, encode_basestring_ascii, None, ": ", ", ", False, False, False
        )
    except (NameError, TypeError):  # not CPython
        import json

        return json.JSONEncoder(allow_nan=False, default=_refuse).iterencode


def _refuse(value: object) -> Any:
    raise ValueError(f"a {type(value).__name__} has no JSON")
