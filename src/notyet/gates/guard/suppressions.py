"""Count comments and attributes that silence a checker."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from notyet.gates.guard.rules import finding, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from notyet.gates.guard.rules import Weakening

_KINDS = {
    "noqa": r"#\s{0,9}(?:(?:ruff|flake8):\s{0,9})?noqa\b",
    "type: ignore": r"#\s{0,9}(?:type|pyright|ty|mypy):\s{0,9}ignore",
    "pylint: disable": r"#\s{0,9}pylint:\s{0,9}disable",
    "pragma: no cover": r"#\s{0,9}pragma:\s{0,9}no[ -]?(?:cover|branch|mutate)",
    "nosec": r"#\s{0,9}nosec\b",
    "eslint-disable": r"\beslint-disable",
    "@ts-ignore": r"@ts-(?:ignore|expect-error|nocheck)\b",
    "biome-ignore": r"\b(?:biome|oxlint|deno-lint)-(?:ignore|disable)",
    "coverage ignore": r"\b(?:istanbul|c8|v8|node:coverage) (?:ignore|disable)",
    "nolint": r"//\s{0,9}nolint\b",
    "#[allow]": r"#!?\[(?:allow|expect)\(",
    "@SuppressWarnings": r"@(?:file:)?Suppress(?:Warnings|Lint)?\(",
    "rubocop:disable": r"\brubocop:(?:disable|todo)\b",
    "pragma warning disable": r"#pragma warning disable|\bSuppressMessage\(",
    "phpstan-ignore": r"@(?:phpstan-ignore|psalm-suppress)|\bphpcs:(?:ignore|disable)",
    "NOSONAR": r"\bNOSONAR\b",
}
_ALL = re.compile("|".join(f"(?P<k{number}>{one})" for number, one in enumerate(_KINDS.values())))
_NAMES = tuple(_KINDS)


def compare_suppressions(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[Weakening]:
    """Return files with more suppressions of a kind, where the whole change has more of it."""
    net: dict[str, int] = {}
    grown: list[tuple[str, str, int]] = []
    for path in sorted(set(old) | set(new)):
        before, now = _counts(old.get(path, "")), _counts(new.get(path, ""))
        for kind in before.keys() | now.keys():
            more = now.get(kind, 0) - before.get(kind, 0)
            net[kind] = net.get(kind, 0) + more
            if more > 0:
                grown.append((path, kind, more))
    for path, kind, more in grown:
        if net[kind] <= 0:  # moved within the change
            continue
        line, text = _first_new(old.get(path, ""), new[path], kind)
        what = f"{more} more `{kind}`: `{short(text, 120)}`"
        yield finding("suppression-added", path, line, what)


def _counts(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for match in _ALL.finditer(text):
        kind = _NAMES[int((match.lastgroup or "k0")[1:])]
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def _first_new(old: str, new: str, kind: str) -> tuple[int, str]:
    known = set(old.split("\n"))
    first = (1, "")
    for number, line in enumerate(new.split("\n"), 1):
        if kind in _counts(line[:2000]):
            if line not in known:
                return number, line.strip()
            first = (number, line.strip())
    return first
