"""Keeps docs/reference/frameworks.md true: what each framework can hold, by its tests.

The results are in tests/frameworks/proven.json; `make test-frameworks WRITE=1` writes them.
Without arguments it checks the page; with --write it rewrites it.
"""

from __future__ import annotations

import json
import sys

from frameworks import FRAMEWORKS, RECORD, ROOT

PAGE = ROOT / "docs" / "reference" / "frameworks.md"
HEAD = """\
# Frameworks

What agents of Python frameworks can be held to, by tests with the real framework and a model that
follows a script. Generated from their results by `make docs`; `make test-frameworks` runs them.

- **yes**: proven. **partly**: proven for one way and impossible for another. **no**: the framework
  makes it impossible; the adapter observes, and says so once. Empty: there is no such thing, or no
  test of it.
- Below each name is the version that was tested. With a version that was not, the adapter says so
  once, and works as far as the framework is the same.

[Write an adapter](../how-to/write-an-adapter.md) for a framework that is missing.
"""
LABELS = {  # what the marks of tests name, in this order
    "sync run": "a run without async is sent back",
    "async run": "an async run is sent back",
    "stream": "a streamed run is sent back",
    "halt": "`Halt` ends the run",
    "events": "gates get what the framework knows",
    "usage": "tokens since the last send-back, and of the run",
    "sessions": "the framework's sessions",
    "subagents": "subagents are gated as such",
    "handoffs": "agents that take over",
    "start words": "words at the start of a session",
    "cancel ends gates": "cancelling a run ends its gates",
}


def page() -> str:
    """Return the page as it should be."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    others = sorted({label for of in record.values() for label in (*of["holds"], *of["cannot"])})
    labels = LABELS | {label: label for label in others if label not in LABELS}
    names = [
        f"[{FRAMEWORKS[name].title}](../how-to/{FRAMEWORKS[name].page})<br>{of['version']}"
        for name, of in record.items()
    ]
    rows = [
        (words, *(_cell(of, label) for of in record.values())) for label, words in labels.items()
    ]
    rows = [row for row in rows if any(row[1:])]
    why = [
        f"- **{FRAMEWORKS[name].title}**, {labels[label]}: {reason}."
        for name, of in record.items()
        for label, reason in of["cannot"].items()
    ]
    parts = [HEAD, _table(("", *names), rows)]
    if why:
        parts += ["## What cannot be held, and why\n", "\n".join(why) + "\n"]
    return "\n".join(parts)


def _cell(proven: dict[str, list[str]], label: str) -> str:
    if label in proven["cannot"]:
        return "partly" if label in proven["holds"] else "no"
    return "yes" if label in proven["holds"] else ""


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the page."""
    fresh = page()
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        print(f"{PAGE.relative_to(ROOT)} is old: run make docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
