"""Keeps the tables of hosts true, in README.md and docs/reference/hosts.md.

They come from the rows of `notyet hosts`. Without arguments it checks; with --write it rewrites.
"""

from __future__ import annotations

import sys
from pathlib import Path

from notyet.cli.hosts import LEGEND, HostRow, host_rows

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "reference" / "hosts.md"
BEGIN, END = "<!-- hosts: written by `make docs` -->\n", "<!-- end of hosts -->\n"
HEAD = """\
# Hosts

A host is a program that runs agents. Generated from the code by `make docs`; `notyet hosts` prints
the same, and where notyet is installed. [Add one](../how-to/add-a-host.md) that is missing.
"""
HOW_TO = "docs/how-to"


def readme(text: str) -> str:
    """Return the README with a fresh table."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md has no {BEGIN.strip()} ... {END.strip()}")
    rows = [
        (_linked(row, f"{HOW_TO}/"), _held(row), _proven(row), _over_acp(row))
        for row in host_rows()
        if not row.cannot
    ]
    return before + begin + _table(("agent", "sent back", "proven", "over ACP"), rows) + end + after


def page() -> str:
    """Return the page as it should be."""
    rows = host_rows()
    held = [
        (
            _linked(row, "../how-to/"),
            f"`{row.name}`",
            row.tested,
            row.main,
            row.subagents,
            row.shown_cap + (f" (`{row.cap_variable}`)" if row.cap_variable else ""),
            row.shown_settings,
            _proven(row),
        )
        for row in rows
        if not row.cannot
    ]
    head = ("host", "name", "tested", "main", "subagents", "cap", "settings", "proven")
    elsewhere = ("installed", "over ACP")
    legend = [f"- **{word}**: {text}" for word, text in LEGEND.items() if word not in elsewhere]
    source = [f"- {row.title}: {row.derived_from}" for row in rows if row.proof == "source"]
    cannot = [(row.title, row.cannot, f"`{row.instead}`") for row in rows if row.cannot]
    parts = [HEAD, _table(head, held), "\n".join(legend) + "\n"]
    if source:
        parts += ["By source, never run by our tests:\n", "\n".join(source) + "\n"]
    over_acp = [
        (
            _linked(row, "../how-to/"),
            f"`{row.acp['command']}`",
            f"`{row.acp['install']}`" if row.acp["install"] else "",
            f"with {row.acp['tested']}, {row.acp['tested_on']}",
        )
        for row in rows
        if row.acp
    ]
    head = ("host", "agent", "installed by", "proven")
    parts += ["## Over ACP\n", _ACP, _table(head, over_acp)]
    parts += ["## Hosts that cannot be held\n", _WHY, _table(("host", "because", "use"), cannot)]
    return "\n".join(parts)


_ACP = """\
Editors that speak the Agent Client Protocol start these agents; with `notyet acp -- AGENT` in place
of AGENT, every turn is gated. *Proven* means that our tests drove the real agent behind it: block
and pass in one session, the limit, cancellations, failed calls of the model, and its own hook
beside the proxy. Whether notyet is also installed in the agent makes no difference.
"""
_WHY = """\
A gate there would be a lie: the agent ends whatever the gate says. `notyet install` refuses them,
and says why.
"""


def _held(row: HostRow) -> str:
    who = "main agent" if row.subagents == "no" else "main agent and subagents"
    return who if row.main == "yes" else f"{who}, {row.main}"


def _proven(row: HostRow) -> str:
    return f"with {row.tested}, {row.tested_on}" if row.proof == "proven" else "by source, not run"


def _over_acp(row: HostRow) -> str:
    if not row.acp:
        return ""
    return f"`{row.acp['command'].split()[0]}` {row.acp['tested']}" if row.acp["install"] else "yes"


def _linked(row: HostRow, folder: str) -> str:
    for name in (row.name, row.title.lower().replace(" ", "-")):
        if (ROOT / HOW_TO / f"{name}.md").exists():
            return f"[{row.title}]({folder}{name}.md)"
    return row.title


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the tables."""
    fresh = {README: readme(README.read_text(encoding="utf-8")), PAGE: page()}
    stale = []
    for path, text in fresh.items():
        if write:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path.relative_to(ROOT)))
    print(f"stale: {', '.join(stale)}; run make docs" if stale else "the tables of hosts are fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
