"""What `--help` says: commands by what they are for, and examples that run as they stand."""

from __future__ import annotations

import argparse
import shutil
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Examples = tuple[tuple[str, str], ...]  # a command line, and what it does

DESCRIPTION = "The stop gate for AI agents: agents say done, notyet checks."
# Every command stands in one group, in the order in which people meet them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Set up": ("init", "install", "uninstall", "trust", "off", "on"),
    "Every day": ("check", "status"),
    "Look back": ("log", "replay"),
    "Agents": ("with", "tasks"),
    "Plumbing": ("hook", "conclaude", "validate", "schema", "completion", "demo"),
}
EXAMPLES: Examples = (
    ("notyet demo", "watch scripted agents meet the gates; nothing is changed"),
    ("notyet init", "find what this project checks itself with, and make gates of it"),
    ("notyet install claude", "let Claude Code ask notyet at every stop"),
    ("notyet check", "ask the gates now, as a stop would"),
    ("notyet status", "am I gated here, now? and if not, why?"),
    ("notyet log --since 2d", "what became of the stops of the last two days"),
    ('notyet with codex "Fix the build."', "run an agent until its work passes"),
)
_SHORT = ("init", "install", "check", "status", "log")  # for somebody who typed nothing
_WIDEST = 42  # columns for a command line that is explained beside it
_LEAST, _MOST = 60, 100  # columns of a page


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Leaves our examples as they are."""


def width() -> int:
    """Return how wide a page of help may be."""
    return max(_LEAST, min(_MOST, shutil.get_terminal_size().columns - 2))


def columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return names with what they mean: side by side, or below each other where one is wide."""
    rows = list(rows)
    widest = max((len(name) for name, _ in rows), default=0)
    if widest > _WIDEST:
        indent = " " * 6
        return [
            line
            for name, text in rows
            for line in (f"  {name}", *(indent + part for part in textwrap.wrap(text, width() - 6)))
        ]
    lines = []
    for name, text in rows:
        first, *more = textwrap.wrap(text, width() - widest - 4) or [""]
        lines += [f"  {name:<{widest}}  {first}".rstrip()]
        lines += [f"  {'':<{widest}}  {line}" for line in more]
    return lines


def epilog(examples: Examples, notes: str = "") -> str:
    """Return how the help of a command ends."""
    said = "\n".join(["examples:", *columns(examples)]) if examples else ""
    return "\n\n".join(filter(None, (said, notes.strip())))


def overview(summaries: Mapping[str, str]) -> str:
    """Return the page of `notyet --help`."""
    widest = max(map(len, summaries), default=0)
    lines = ["usage: notyet COMMAND [options]", "", DESCRIPTION]
    for title, names in GROUPS.items():
        here = [(f"{name:<{widest}}", summaries[name]) for name in names if name in summaries]
        if here:
            lines += ["", f"{title}:", *columns(here)]
    lines += ["", "Examples:", *columns(EXAMPLES), "", "Options:"]
    lines += columns([("-h, --help", "show this, or with a command: its options and examples")])
    lines += columns([("--version ", "show the version")])
    return "\n".join(lines) + "\n"


def short(summaries: Mapping[str, str]) -> str:
    """Return the page of `notyet` alone."""
    here = [(f"notyet {name}", summaries[name]) for name in _SHORT if name in summaries]
    lines = ["usage: notyet COMMAND [options]", "", DESCRIPTION, "", *columns(here), ""]
    lines += ["All commands, with examples: notyet --help"]
    lines += ["One command: notyet COMMAND --help"]
    return "\n".join(lines) + "\n"
