"""What follows from findings: overrides of a file, an agent's declaration, and the texts."""

from __future__ import annotations

import re
from dataclasses import replace
from posixpath import dirname
from typing import TYPE_CHECKING

from notyet.gates.globs import matches_any
from notyet.gates.guard.rules import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.gates.guard.rules import Weakening

_MANY = 10  # findings, from which a declaration may name the folder instead of each file
_LISTED = 10
_CONFIG = "config"  # the group of changes to notyet's own configuration
_LONGEST_MESSAGE = 200_000
# Words of a message that may be paths; `test_a.py::test_x` and `test_a.py:12` are two words each.
_WORD = re.compile(r"[^\s`'\"()\[\]{}<>,;:*“”\u2018\u2019|]+")
_SPECIFIC = re.compile(r"[_\d./\-]|[a-z][A-Z]")


def applied(
    findings: Sequence[Weakening],
    block: Sequence[str] | None,
    tell: Sequence[str] | None,
    allow: Sequence[str],
) -> list[Weakening]:
    """Return the findings after a file's overrides.

    A group in `block` blocks in every language, a group in `tell` never does, other groups keep
    their default. Findings in files that match `allow` are left out, except those in the file that
    says so.
    """
    chosen: list[Weakening] = []
    for one in findings:
        if one.group != _CONFIG and matches_any(allow, one.path):
            continue
        blocks = one.blocks
        if one.group in (tell or ()):
            blocks = False
        elif one.group in (block or ()):
            blocks = True
        chosen.append(one if blocks is one.blocks else replace(one, blocks=blocks))
    return chosen


def declared(weakening: Weakening, message: str, *, count: int = 1) -> bool:
    """Return True if the agent's message names the test or the file of a finding.

    With more than ten findings (`count`), naming the folder is enough.
    """
    message = message[-_LONGEST_MESSAGE:]
    path = weakening.path
    words = {word.rstrip(".!?…").removeprefix("./") for word in _WORD.findall(message)}
    for word in words:
        if word == path or word.endswith(f"/{path}") or path.endswith(f"/{word}"):
            return True
        folder = word.rstrip("/")
        if (
            count > _MANY
            and "/" in word
            and folder
            and f"{dirname(path)}/".startswith(f"{folder}/")
        ):
            return True
    return any(_is_named(name, message) for name in weakening.names)


def _is_named(name: str, message: str) -> bool:
    """Return True if a message has a name as a whole word; plain words must be in quotes."""
    name = " ".join(name.split())
    if not name or name.lower() in {"test", "tests", "conftest", "spec"}:
        return False
    flat = " ".join(message.split())
    # Titles of tests such as "works" or "adds prices" are words of any message.
    is_plain = " " in name or not _SPECIFIC.search(name)
    at = flat.find(name)
    while at >= 0:
        before, after = flat[at - 1 : at], flat[at + len(name) : at + len(name) + 1]
        if is_plain:
            if before and before in "`'\"*“\u2018" and after and after in "`'\"*”\u2019":
                return True
        elif not _joins(before) and not _joins(after):
            return True
        at = flat.find(name, at + 1)
    return False


def _joins(character: str) -> bool:
    return bool(character) and (character.isalnum() or character in "_-")


def described(
    findings: Sequence[Weakening], *, strict: bool = False, since: str = "the session began"
) -> str:
    """Return the reason that sends the agent back; only findings that block are listed."""
    blocking = [one for one in findings if one.blocks]
    if not blocking:
        return ""
    lines = [f"What checks the work became weaker since {since}:"]
    for one in blocking[:_LISTED]:
        lines.append(f"- {_place(one)}: {one.what}")
        if one.before:
            lines.append(f"  before: {one.before}")
    if len(blocking) > _LISTED:
        lines.append(f"… and {len(blocking) - _LISTED} more.")
    if strict:
        lines.append("Restore it.")
    else:
        lines.append(
            "Restore it, or name each file or test (in quotes) in your final message and say why "
            "it had to change."
        )
    return "\n".join(lines)


def in_one_line(findings: Sequence[Weakening], *, declared: bool = False) -> str:
    """Return one line for the user: what is weaker, by file; empty without findings."""
    if not findings:
        return ""
    paths = list(dict.fromkeys(one.path for one in findings))
    first = findings[0]
    text = f"{_place(first)}: {short(first.what, 120)}"
    rest = len(findings) - 1
    if rest:
        files = f" in {len(paths)} files" if len(paths) > 1 else ""
        text += f" (and {rest} more{files})"
    return f"{'declared' if declared else 'weakened'}: {text}"


def _place(one: Weakening) -> str:
    return f"{short(one.path, 160)}:{one.line}"
