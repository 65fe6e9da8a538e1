"""How a pattern names agents: our globs, or the way other hosts read their matchers.

Claude Code and Codex take a plain word as an exact name and everything else as an unanchored
regular expression (D4, D5). `re` costs as much as a bare interpreter, so it is loaded only for
a matcher that needs it.
"""

from __future__ import annotations

from notyet.core.glob import glob_error, glob_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["glob", "claude", "codex"]

_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
# What may stand in a list of exact names, and what parts them.
_EXACT = {"claude": _WORD | frozenset(" ,|-"), "codex": _WORD | frozenset("|")}
_PARTED_BY = {"claude": ",|", "codex": "|"}


def matches(kind: Kind, pattern: str, name: str) -> bool:
    """Tell whether a pattern of this kind means this name."""
    if kind == "glob":
        return glob_matches(pattern, name)
    if pattern in {"", "*"}:
        return True
    if _EXACT[kind].issuperset(pattern):
        return name in _names(kind, pattern)
    import re

    return re.search(pattern, name) is not None


def pattern_error(kind: str, pattern: str) -> str:
    """Say what is wrong with a pattern; empty when nothing is."""
    if kind == "glob":
        return glob_error(pattern)
    if pattern in {"", "*"} or _EXACT[kind].issuperset(pattern):
        return ""
    import re

    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"the matcher {pattern!r} is not a regular expression: {error}"
    return ""


def _names(kind: str, pattern: str) -> list[str]:
    for mark in _PARTED_BY[kind]:
        pattern = pattern.replace(mark, "|")
    return [name.strip() for name in pattern.split("|")]
