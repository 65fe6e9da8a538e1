"""`notyet completion`: a script with which a shell completes the words of a command line."""

from __future__ import annotations

import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

SUMMARY = "print a script that completes command lines in bash, zsh or fish"
EXAMPLES = (
    ("notyet completion bash > ~/.local/share/bash-completion/completions/notyet", "for bash"),
    ('notyet completion zsh > "${fpath[1]}/_notyet"', "for zsh, in a folder of its fpath"),
    ("notyet completion fish > ~/.config/fish/completions/notyet.fish", "for fish"),
)
NOTES = """\
The folder must be there, and a new shell reads it. Commands, options and their values are part of
the script: print it again after an upgrade. Names of gates, tasks, sessions and numbers of stops
are looked up when they are asked for.
"""
SHELLS = ("bash", "zsh", "fish")
VALUES = ("gates", "tasks", "sessions", "stops")
_MOST = 50  # of what is looked up


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=SHELLS, metavar="SHELL", help=_any_of(SHELLS))
    what.add_argument(
        "--values", choices=VALUES, metavar="KIND", help=f"what scripts ask for: {_any_of(VALUES)}"
    )


def _any_of(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def run(args: argparse.Namespace) -> int:
    """Print the script, or values for one."""
    if args.values:
        for value in _values(args.values):
            # A shell could take others for more than one, and we would take one for an option.
            if value and value.isprintable() and not value.startswith("-"):
                print(value)
        return 0
    from notyet.cli.completion_words import commands

    script = import_module(f"notyet.cli.completion_{args.shell}")
    sys.stdout.write(script.script(commands()))
    return 0


def _values(kind: str) -> Iterator[str]:
    """Return what there is now; nothing where that cannot be told."""
    from notyet.errors import NotyetError

    try:
        yield from _gates() if kind == "gates" else _remembered(kind)
    except (NotyetError, OSError):
        return


def _gates() -> list[str]:
    from notyet.config.load import NO_LOOK, load

    return [gate.name for gate in load(os.getcwd(), "", os.environ, patience=NO_LOOK).gates]


def _remembered(kind: str) -> list[str]:
    from notyet.ledger import past
    from notyet.ledger.ledger import Ledger
    from notyet.ledger.tasks import Tasks

    ledger = Ledger(patience=0.5, mends=False)
    try:
        if kind == "tasks":
            return [view.task.id for view in Tasks(ledger).views(most=_MOST)]
        if kind == "sessions":
            seen = past.agents(ledger, 0.0, most=_MOST)
            return list(dict.fromkeys(agent.session_id for agent in seen))
        return [str(stop.id) for stop in past.stops(ledger, past.Wish(most=_MOST))]
    finally:
        ledger.close()
