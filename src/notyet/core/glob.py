"""Globs for agent names (D1). Ours because `fnmatch` imports `re`, and a typo there never matches.

`*` any run of characters, `?` one character, `[a-z]` one of, `[!a-z]` one but. Case counts.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    Ranges = tuple[tuple[str, str], ...]
    Token = str | tuple[bool, Ranges]

STAR = "*"
ANY = "?"
# A token of one character is that character; these two stand for themselves because a literal
# star or question mark can only be written as a class, `[*]`.
_SIGNS = frozenset("*?[{}")  # what means more than itself, or nothing that is supported


def glob_error(pattern: str) -> str:
    """Say what is wrong with a pattern; empty when it is a good one."""
    try:
        if not _is_plain(pattern):
            _compile(pattern)
    except ValueError as error:
        return str(error)
    return ""


def glob_matches(pattern: str, text: str) -> bool:
    """Tell whether the whole text fits the pattern. Raises ValueError for a bad pattern."""
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
    """Tell whether a pattern stands for itself, as a name that is written out does."""
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
