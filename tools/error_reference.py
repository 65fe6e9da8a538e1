"""Generates docs/reference/errors.md from the code: every message, and what to do about it.

Messages are found where they are made, so the page cannot leave one out that is written in one
piece. What stands for a value is shown as `…`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "notyet"
PAGE = ROOT / "docs" / "reference" / "errors.md"
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


def page() -> str:
    """Return the whole page."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        if "testing" not in path.parts:
            for name, text in _messages(ast.parse(path.read_text(encoding="utf-8"))):
                found[name].add(text)
    parts = [HEAD]
    for section in SECTIONS:
        texts = sorted({text for name in section.calls for text in found[name]}, key=_order)
        rows = [_row(text) for text in texts]
        parts.append("\n".join([f"## {section.title}", "", section.says, "", *_HEADER, *rows, ""]))
    return "\n".join(parts)


_HEADER = ("| what you read | what to do |", "|---|---|")


def _row(text: str) -> str:
    what, _, fix = " ".join(text.split()).partition("; ")
    cells = (part.replace("|", "\\|").replace("<", "&lt;") for part in (what, fix))
    return "| {} | {} |".format(*cells)


def _order(text: str) -> tuple[str, str]:
    return text.lstrip("…`: \"'").lower(), text


def _messages(tree: ast.Module) -> Iterator[tuple[str, str]]:
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
            texts = (_text(constants.get(_name(arg), arg)) for arg in node.args)
            messages = [text for text in texts if _is_message(text)]
            yield from ((_name(node.func), text) for text in messages[:1])  # then come hints


def _is_message(text: str) -> bool:
    """Return True if people can recognize what is wrong by the words that are written out."""
    return len(_WORD.findall(text.partition("; ")[0])) >= _LEAST_WORDS


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _text(node: ast.expr) -> str:
    """Return a text as far as it is written out; empty for what is computed."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
        return re.sub("…+", "…", "".join(map(str, parts)))
    return ""


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the page."""
    fresh = page()
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        print(f"{PAGE.name} in docs/reference is old: run make docs")
        return 1
    print(f"{fresh.count(chr(10) + '| ') - 2 * len(SECTIONS)} messages, each listed")
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
