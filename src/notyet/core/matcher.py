"""Globs for agent names (D1). Ours because `fnmatch` imports `re`, and a typo there never matches.

`*` any run of characters, `?` one character, `[a-z]` one of, `[!a-z]` one but. Case counts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from notyet.core.event import StopEvent
    from notyet.core.gate import Match

    Ranges = tuple[tuple[str, str], ...]
    Token = str | tuple[bool, Ranges]
    Kind = Literal["glob", "claude", "codex"]

CODEX_DEFAULT = "default"  # the type of a child that was spawned without one (D5)
STAR = "*"
ANY = "?"
# A token of one character is that character; these two stand for themselves because a literal
# star or question mark can only be written as a class, `[*]`.
_SIGNS = frozenset("*?[{}")  # what means more than itself, or nothing that is supported


def glob_error(pattern: str) -> str:
    """Return what is wrong with a pattern; empty when nothing is."""
    try:
        if not _is_plain(pattern):
            _compile(pattern)
    except ValueError as error:
        return str(error)
    return ""


def glob_matches(pattern: str, text: str) -> bool:
    """Return True if the whole text matches the pattern. Raises ValueError for a bad pattern."""
    if _is_plain(pattern):
        return pattern == text
    tokens = _compile(pattern)
    at = token = 0
    star = -1
    resume = 0
    while at < len(text):
        if token < len(tokens) and tokens[token] is STAR:
            star, resume = token, at
            token += 1
        elif token < len(tokens) and _fits(tokens[token], text[at]):
            at += 1
            token += 1
        elif star >= 0:
            resume += 1
            token, at = star + 1, resume
        else:
            return False
    return all(rest is STAR for rest in tokens[token:])


def _is_plain(pattern: str) -> bool:
    """Return True if a pattern has no wildcard."""
    return _SIGNS.isdisjoint(pattern) and bool(pattern.strip())


def _fits(token: Token, character: str) -> bool:
    if isinstance(token, str):
        return token is ANY or token == character
    negated, ranges = token
    return any(low <= character <= high for low, high in ranges) is not negated


def _compile(pattern: str) -> list[Token]:
    if not pattern.strip():
        raise ValueError("an empty pattern matches nothing; write '*' for every agent")
    tokens: list[Token] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            if not tokens or tokens[-1] is not STAR:
                tokens.append(STAR)
            at += 1
        elif character == "?":
            tokens.append(ANY)
            at += 1
        elif character == "[":
            token, at = _class(pattern, at)
            tokens.append(token)
        elif character in "{}":
            raise ValueError(f"braces are not supported in {pattern!r}; list the names one by one")
        else:
            tokens.append(character)
            at += 1
    return tokens


def _class(pattern: str, start: int) -> tuple[Token, int]:
    negated = pattern[start + 1 : start + 2] == "!"
    body = start + 2 if negated else start + 1
    end = pattern.find("]", body + 1)  # a `]` right after the bracket is a member
    if end < 0:
        raise ValueError(f"'[' is never closed in {pattern!r}")
    members = pattern[body:end]
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(members):
        if at + 2 < len(members) and members[at + 1] == "-":
            low, high = members[at], members[at + 2]
            if low > high:
                raise ValueError(f"the range {low}-{high} in {pattern!r} is backwards")
            ranges.append((low, high))
            at += 3
        else:
            ranges.append((members[at], members[at]))
            at += 1
    return (negated, tuple(ranges)), end + 1


# How a pattern names agents: our globs, or the way other hosts read their matchers.
#
# Claude Code and Codex take a plain word as an exact name and everything else as an unanchored
# regular expression (D4, D5). `re` costs as much as a bare interpreter, so it is loaded only for
# a matcher that needs it.


_WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
# What may stand in a list of exact names, and what parts them.
_EXACT = {"claude": _WORD | frozenset(" ,|-"), "codex": _WORD | frozenset("|")}
_PARTED_BY = {"claude": ",|", "codex": "|"}


def matches(kind: Kind, pattern: str, name: str) -> bool:
    """Return True if a pattern of this kind matches a name."""
    if kind == "glob":
        return glob_matches(pattern, name)
    if pattern in {"", "*"}:
        return True
    if _EXACT[kind].issuperset(pattern):
        return name in _names(kind, pattern)
    import re

    return re.search(pattern, name) is not None


def pattern_error(kind: str, pattern: str) -> str:
    """Return what is wrong with a pattern; empty when nothing is."""
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
    """Return which of a subagent's names fits which pattern; empty when none does (D2)."""
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
    """Return what is wrong with the patterns of a Match; empty when nothing is."""
    patterns = [(match.kind, pattern) for pattern in match.agents]
    patterns += [("glob", pattern) for pattern in match.never]
    problems = filter(None, (pattern_error(kind, pattern) for kind, pattern in patterns))
    empty = "agents is empty, so the gate would never apply; leave it out for all"
    return next(problems, "" if match.agents else empty)


def _names(kind: str, pattern: str) -> list[str]:
    for mark in _PARTED_BY[kind]:
        pattern = pattern.replace(mark, "|")
    return [name.strip() for name in pattern.split("|")]
