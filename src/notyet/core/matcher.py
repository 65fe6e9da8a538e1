"""How a pattern names agents: our globs, or the way other hosts read their matchers.

Claude Code and Codex take a plain word as an exact name and everything else as an unanchored
regular expression (D4, D5). `re` costs as much as a bare interpreter, so it is loaded only for
a matcher that needs it.
"""

from __future__ import annotations

from notyet.core.gate import CODEX_DEFAULT
from notyet.core.glob import glob_error, glob_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import StopEvent
    from notyet.core.gate import Match

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


def fits(kind: Kind, patterns: tuple[str, ...], event: StopEvent) -> str:
    """Say which of a subagent's names fits which pattern; empty when none does (D2)."""
    kind_of_agent = event.agent_type or (CODEX_DEFAULT if kind == "codex" else None)
    names = [("agent_type", kind_of_agent)]
    if kind == "glob":  # the other hosts match the type only
        names += [("agent_id", event.agent_id), ("agent_name", event.agent_name)]
    for pattern in patterns:
        for field, name in names:
            if name and matches(kind, pattern, name):
                return f"{field} {name} fits {pattern}"
        if pattern == "*":
            return "every subagent fits *"
    return ""


def patterns_error(match: Match) -> str:
    """Say what is wrong with the patterns of a Match; empty when nothing is."""
    patterns = [(match.kind, pattern) for pattern in match.agents]
    patterns += [("glob", pattern) for pattern in match.never]
    problems = filter(None, (pattern_error(kind, pattern) for kind, pattern in patterns))
    nobody = "agents is empty, so the gate would never apply; leave it out for all"
    return next(problems, "" if match.agents else nobody)


def _names(kind: str, pattern: str) -> list[str]:
    for mark in _PARTED_BY[kind]:
        pattern = pattern.replace(mark, "|")
    return [name.strip() for name in pattern.split("|")]
