"""The part of `os` that a hook needs, without what importing `os` costs.

Every stop is a cold start, and `os` with what it imports itself is an eighth of a bare
interpreter. The functions are the system's own: `os` takes them from the same place.
"""

from __future__ import annotations

import sys
from posix import *  # noqa: F403  # as `os` does, because what there is depends on the system
from posix import environ as _environ

from notyet import paths as path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ("defpath", "devnull", "fsdecode", "fsencode", "path", "variables")

defpath = "/bin:/usr/bin"
devnull = "/dev/null"
_own: dict[str, str] = {}


def variables() -> MutableMapping[str, str]:
    """Return the variables of this process, as anybody in it changed them."""
    loaded = sys.modules.get("os")
    if loaded is not None:  # then there is one place for them
        shared: MutableMapping[str, str] = loaded.environ
        return shared
    if not _own:
        _own.update({fsdecode(name): fsdecode(value) for name, value in _environ.items()})
    return _own


def fsdecode(name: bytes) -> str:
    """Return a name of the system's as a text, whatever bytes it has."""
    return name.decode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


def fsencode(name: str) -> bytes:
    """Return a text as the system's bytes."""
    return name.encode(sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
