"""Globs of files, as `paths` has them: `*` stays within a folder, `**` stands for any folders."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from notyet.core.matcher import glob_matches

if TYPE_CHECKING:
    from collections.abc import Iterable

_ANY = "**"


def matches_any(globs: Iterable[str], path: str) -> bool:
    """Return True if a path, or a folder around it, matches one of the globs."""
    parts = tuple(path.split("/"))
    return any(
        _matches(tuple(glob.removeprefix("./").strip("/").split("/")), parts) for glob in globs
    )


@lru_cache(maxsize=20_000)
def _matches(glob: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not glob:
        return True  # a glob of a folder means all that is in it, as in git
    if glob[0] == _ANY:
        return _matches(glob[1:], path) or (bool(path) and _matches(glob, path[1:]))
    return bool(path) and glob_matches(glob[0], path[0]) and _matches(glob[1:], path[1:])
