"""`notyet`: finds the command and runs it."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module

from notyet import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class Command(Protocol):
        """What a command's module must offer."""

        SUMMARY: str

        def configure(self, parser: argparse.ArgumentParser) -> None: ...

        def run(self, args: argparse.Namespace) -> int: ...


COMMANDS = {
    "trust": "notyet.cli.trust",
    "off": "notyet.cli.off",
    "on": "notyet.cli.on",
    "with": "notyet.cli.with_agent",
    "tasks": "notyet.cli.tasks",
    "hook": "notyet.cli.hook",
    "conclaude": "notyet.cli.conclaude",
    "demo": "notyet.cli.demo",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is ours."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from notyet.cli.hook import serve

        return serve(words[1:])
    rest: list[str] = []
    if words[:1] == ["with"] and "--" in words:  # what follows is the agent's
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    try:
        args = _parser(words[:1]).parse_args(words)
    except SystemExit as error:
        if error.code and words[:1] == ["conclaude"]:
            return 1  # argparse exits 2, which sends an agent back
        raise
    args.rest = rest
    command: Command = import_module(COMMANDS[args.command])
    try:
        return command.run(args)
    except KeyboardInterrupt:
        print("notyet: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        from notyet.cli.lines import give_up

        give_up(sys.stdout)
        return 141


def _parser(wanted: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="notyet",
        description="The stop gate for AI agents: agents say done, notyet checks.",
    )
    parser.add_argument("--version", action="version", version=f"notyet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # A command that is named needs none of the others, some of which take long to import.
    named = {name: COMMANDS[name] for name in wanted if name in COMMANDS}
    for name, home in (named or COMMANDS).items():
        command: Command = import_module(home)
        sub = commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.configure(sub)
    return parser
