"""Keeps docs/reference/cli.md true: it comes from the parsers and examples of the commands.

Without arguments it checks; with --write it rewrites the page.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from notyet.cli.main import COMMANDS, GROUPS, parsers

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"
HEAD = """\
# The command line

Generated from the code by `make docs`. `notyet --help` shows all commands, and
`notyet COMMAND --help` what stands here. What commands exit with is on a page of its own:
[exit codes](exit-codes.md).

Output is coloured on a terminal only (elsewhere too with `FORCE_COLOR`), and not with `NO_COLOR` or
`TERM=dumb`; what goes to a pipe or a file has no progress.
Where there is `--json`, programs read that.
[`notyet completion`](#notyet-completion) lets your shell complete all of this.
"""


def page() -> str:
    """Return the page as it should be."""
    _, made = parsers(COMMANDS)
    parts = [HEAD, "\n".join(_contents())]
    for title, names in GROUPS.items():
        here = [name for name in names if name in COMMANDS]
        if here:
            parts += [f"## {title}\n", *(_command(name, made[name]) for name in here)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _contents() -> list[str]:
    lines = ["| for | commands |", "|---|---|"]
    for title, names in GROUPS.items():
        links = [f"[`{name}`](#notyet-{name})" for name in names if name in COMMANDS]
        if links:
            lines.append(f"| {title} | {' '.join(links)} |")
    return [*lines, ""]


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    module = import_module(COMMANDS[name])
    summary = module.SUMMARY[0].upper() + module.SUMMARY[1:]
    end = "" if summary.endswith(("?", ".")) else "."
    lines = [f"### notyet {name}\n", f"{summary}{end}\n", f"    {_usage(name, parser)}\n"]
    lines += [*_table(parser), ""]
    for line, what in module.EXAMPLES:
        lines += [f"    # {what}", f"    {line}"]
    notes = getattr(module, "NOTES", "").strip()
    lines += ["", *([notes, ""] if notes else [])]
    return "\n".join(lines)


def _usage(name: str, parser: argparse.ArgumentParser) -> str:
    # argparse words its own from version to version of Python.
    if parser.usage:
        return parser.usage
    places = [_place(action) for action in parser._actions if not action.option_strings]
    return " ".join(["notyet", name, *places, "[options]"])


def _place(action: argparse.Action) -> str:
    name = _metavar(action)
    return {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(
        str(action.nargs), name
    )


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return action.dest.upper().replace("_", "-")


def _table(parser: argparse.ArgumentParser) -> list[str]:
    rows = [
        (_name(action), _meaning(action))
        for action in parser._actions
        if action.help != argparse.SUPPRESS and action.dest != "help"
    ]
    if not rows:
        return []
    return ["| | |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows)]


def _name(action: argparse.Action) -> str:
    if not action.option_strings:
        return _metavar(action)
    value = "" if action.nargs == 0 else f" {_metavar(action)}"
    return ", ".join(action.option_strings) + value


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "").replace("%%", "%").replace("|", "\\|")
    words = [str(word) for word in action.choices or ()]
    if words and not all(word in text for word in words):
        text = f"{text}{': ' if text else ''}{', '.join(f'`{word}`' for word in words)}"
    return text.replace("<", "&lt;")


def main(write: bool) -> int:  # noqa: FBT001  # the one switch of a script
    """Check or rewrite the page."""
    fresh = page()
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != fresh:
        print(f"{PAGE.name} in docs/reference is old: run make docs")
        return 1
    print(f"{len(COMMANDS)} commands, each documented")
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
