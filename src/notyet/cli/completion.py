"""`notyet completion`: print a script with which a shell completes command lines."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import shtab

from notyet.agents import AGENTS
from notyet.cli.main import COMMANDS, parsers
from notyet.config.load import NO_LOOK, load
from notyet.errors import NotyetError
from notyet.hosts import HOSTS
from notyet.ledger import past_stops
from notyet.ledger.ledger import Ledger
from notyet.ledger.tasks import Tasks

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
The folder must exist, and a new shell reads it. Print the script again after an upgrade: commands
and options are part of it. It runs `notyet completion --values` for the names of gates, tasks,
sessions and stops.
"""
SHELLS = ("bash", "zsh", "fish")
VALUES = ("gates", "tasks", "sessions", "stops")
_MAX_VALUES = 50
# What follows an option or stands at a place, where argparse has no choices.
_BY_METAVAR = {
    "FILE": shtab.FILE,
    "FILES": shtab.FILE,
    "DIR": shtab.DIRECTORY,
    "FOLDER": shtab.DIRECTORY,
}
_BY_NAME = {
    ("check", "names"): "gates",
    ("log", "gate"): "gates",
    ("log", "id"): "stops",
    ("log", "session"): "sessions",
    ("replay", "ids"): "stops",
    ("replay", "session"): "sessions",
    ("tasks", "id"): "tasks",
}
_FILES = {("trust", "path"), ("validate", "files")}
# shtab calls a function of bash or zsh with the current word. Names of gates may hold blanks and
# dollars: they are quoted, and never evaluated.
_BASH = """\
_notyet_{kind}() {{
  local word
  while IFS= read -r word; do
    [[ $word == "$1"* || $(printf '%q' "$word") == "$1"* ]] && printf '%q\\n' "$word"
  done < <(command notyet completion --values {kind} 2>/dev/null)
}}
"""
_ZSH = """\
_notyet_{kind}() {{
  local -a found=("${{(@f)$(command notyet completion --values {kind} 2>/dev/null)}}")
  compadd -a found
}}
"""
HINTS = {"SHELL": "as in: notyet completion bash"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("shell", nargs="?", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    what.add_argument(
        "--values",
        choices=VALUES,
        metavar="KIND",
        help=f"print what a script completes: {', '.join(VALUES)}",
    )


def run(args: argparse.Namespace) -> int:
    """Print the script, or values for one."""
    if args.shell:
        print(script(args.shell), end="")
        return 0
    for value in _values(args.values):
        # A shell would split a value of many lines, and we would read a dash as an option.
        if value and value.isprintable() and not value.startswith("-"):
            print(value)
    return 0


def script(shell: str) -> str:
    """Return the script of a shell, made by shtab from the parsers of all commands."""
    parser, commands = parsers(COMMANDS)
    for command, made in commands.items():
        for action in made._actions:  # noqa: SLF001  # argparse has no other way to list them
            _complete(command, action)
    functions = {
        "bash": "".join(_BASH.format(kind=kind) for kind in VALUES),
        "zsh": "".join(_ZSH.format(kind=kind) for kind in VALUES),
    }
    return shtab.complete(
        parser, shell=shell, root_prefix="notyet", preamble=functions.get(shell, "")
    )


def _complete(command: str, action: argparse.Action) -> None:
    """Set how the value of an action is completed, if it has no choices."""
    if action.choices or action.nargs == 0:
        # shtab takes a mapping for commands
        action.choices = list(action.choices) if action.choices else action.choices
        return
    if action.metavar == "HOST":
        action.choices = HOSTS
    elif (command, action.dest) == ("with", "agent"):
        action.choices = [agent for agent in AGENTS if agent != "scripted"]
    elif kind := _BY_NAME.get((command, action.dest)):
        ask = f"(command notyet completion --values {kind} 2>/dev/null)"
        named = f"_notyet_{kind}"
        action.complete = {"bash": named, "zsh": named, "fish": ask}  # type: ignore[attr-defined]
    elif (command, action.dest) in _FILES:
        action.complete = shtab.FILE  # type: ignore[attr-defined]
    elif isinstance(action.metavar, str) and action.metavar in _BY_METAVAR:
        action.complete = _BY_METAVAR[action.metavar]  # type: ignore[attr-defined]


def _values(kind: str) -> Iterator[str]:
    """Yield the values there are now; none where they cannot be read."""
    try:
        if kind == "gates":
            setup = load(os.getcwd(), "notyet", os.environ, patience=NO_LOOK)
            yield from [gate.name for gate in setup.gates]
        else:
            yield from _recorded(kind)
    except (NotyetError, OSError):
        return


def _recorded(kind: str) -> list[str]:
    ledger = Ledger(patience=0.5, repair=False)
    try:
        if kind == "tasks":
            return [view.task.id for view in Tasks(ledger).views(most=_MAX_VALUES)]
        if kind == "sessions":
            seen = past_stops.agents(ledger, 0.0, most=_MAX_VALUES)
            return list(dict.fromkeys(agent.session_id for agent in seen))
        return [
            str(stop.id)
            for stop in past_stops.stops(ledger, past_stops.StopFilter(most=_MAX_VALUES))
        ]
    finally:
        ledger.close()
