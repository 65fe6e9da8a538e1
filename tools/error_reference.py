"""Generates docs/reference/errors.md from the code: every message, and what to do about it.

Messages are found where they are made, so the page cannot leave one out that is written in one
piece. What stands for a value is shown as `…`. The cause is the text up to "; ", the fix is the
rest, or its hint, or else its line in tools/error_fixes.toml; none may be missing.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "notyet"
PAGE = ROOT / "docs" / "reference" / "errors.md"
FIXES = ROOT / "tools" / "error_fixes.toml"
HEAD = """\
# Errors

Find a message by its first words: what is wrong, and what to do. Generated from the code by
`make docs`; `…` stands for a name, a path or a number. Messages begin with the command that prints
them (`notyet check: …`), or with the place of a mistake (`notyet.toml:4:1: …`). What
`notyet status` finds has codes, which [its page](status.md) explains.
"""


class Section(NamedTuple):
    """Messages that people meet in one place."""

    title: str
    says: str
    calls: frozenset[str]  # of functions and exceptions whose text is a message


SECTIONS = (
    Section("Commands", "Printed by the command, which did nothing.", frozenset({"refuse"})),
    Section(
        "Options",
        "Printed for a wrong command line; the exit code is 2.",
        frozenset({"ArgumentTypeError"}),
    ),
    Section(
        "Configuration files",
        "Printed by `notyet validate`, `trust` and `status`, after the place and the key.",
        frozenset({"ShapeError"}),
    ),
    Section(
        "Settings of hosts",
        "Printed by `notyet install` and `uninstall`.",
        frozenset({"CannotInstall"}),
    ),
    Section(
        "Gates that could not run",
        "In `notyet check`, in `notyet log N`, and in what the agent or you are told.",
        frozenset({"CannotStart", "CannotJudge", "ReportError", "Unsure", "Unknown"}),
    ),
    Section(
        "Agents and tasks",
        "From `notyet with`, `acp`, `submit`, `worker` and `tasks`, and raised in Python.",
        frozenset({"Refused", "SendError", "AgentError", "NotyetError"}),
    ),
    Section(
        "The ledger",
        "After `ledger PATH:`; stops are allowed meanwhile, and told as NOT CHECKED.",
        frozenset({"LedgerError", "LedgerNewer", "LedgerBusy", "LedgerNeedsRepair"}),
    ),
)
_WORD = re.compile(r"[a-z]{3,}")
_LEAST_WORDS = 2  # less is a part of a message
_HEADER = ("| what you read | what to do |", "|---|---|")

Message = tuple[str, str]  # what is wrong, and what to do; empty if the code does not say it


def found_messages() -> list[set[Message]]:
    """Return the messages of each section, as they are in the code."""
    found: dict[str, set[Message]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        if "testing" not in path.parts:
            for name, message in _messages(ast.parse(path.read_text(encoding="utf-8"))):
                found[name].add(message)
    return [{message for name in section.calls for message in found[name]} for section in SECTIONS]


def page(found: list[set[Message]], fixes: dict[str, str]) -> str:
    """Return the whole page."""
    parts = [HEAD]
    for section, messages in zip(SECTIONS, found, strict=True):
        pairs = {(what, fix or fixes.get(what, "")) for what, fix in messages}
        rows = [_row(what, fix) for what, fix in sorted(pairs, key=_order)]
        parts.append("\n".join([f"## {section.title}", "", section.says, "", *_HEADER, *rows, ""]))
    return "\n".join(parts)


def complaints(found: list[set[Message]], fixes: dict[str, str]) -> list[str]:
    """Return the messages without a fix, and the fixes without a message."""
    file = f"tools/{FIXES.name}"
    missing = {what for messages in found for what, fix in messages if not fix}
    return [
        *(f"{file} has no fix for: {what}" for what in sorted(missing - fixes.keys())),
        *(f"{file} names no message: {what}" for what in sorted(fixes.keys() - missing)),
    ]


def _row(*cells: str) -> str:
    return "| {} | {} |".format(*(cell.replace("|", "\\|").replace("<", "&lt;") for cell in cells))


def _order(message: Message) -> tuple[str, Message]:
    return message[0].lstrip("…`: \"'").lower(), message


def _messages(tree: ast.Module) -> Iterator[tuple[str, Message]]:
    """Yield each message of a module with what is called with it."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    names = frozenset[str]().union(*(section.calls for section in SECTIONS))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func) in names:
            texts = [_text(arg, constants) for arg in node.args]
            place = next((n for n, text in enumerate(texts) if _is_message(text)), None)
            if place is not None:
                what, _, fix = texts[place].partition("; ")
                hint = "".join(texts[place + 1 : place + 2])
                yield _name(node.func), (what, next(filter(_WORD.search, (fix, hint)), ""))


def _is_message(text: str) -> bool:
    """Return True if people can recognize what is wrong by the words that are written out."""
    return len(_WORD.findall(text.partition("; ")[0])) >= _LEAST_WORDS


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _text(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    """Return a text as far as it is written out; empty for what is computed."""
    node = constants.get(_name(node), node)
    if isinstance(node, ast.Constant):
        return " ".join(node.value.split()) if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (_part(value, constants) for value in node.values)
        return " ".join(re.sub("…+", "…", "".join(parts)).split())
    return ""


def _part(node: ast.expr, constants: dict[str, ast.expr]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        return _text(constants.get(node.value.id, node), {}) or "…"
    return "…"


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the page."""
    found, fixes = found_messages(), tomllib.loads(FIXES.read_text(encoding="utf-8"))
    if missing := complaints(found, fixes):
        print("\n".join(missing))
        return 1
    fresh = page(found, fixes)
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        print(f"{PAGE.name} in docs/reference is old: run make docs")
        return 1
    print(f"{fresh.count(chr(10) + '| ') - 2 * len(SECTIONS)} messages, each listed")
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
