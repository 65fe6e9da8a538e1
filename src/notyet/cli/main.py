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


COMMANDS = {"demo": "notyet.cli.demo"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is ours."""
    args = _parser().parse_args(argv)
    command: Command = import_module(COMMANDS[args.command])
    try:
        return command.run(args)
    except KeyboardInterrupt:
        print("notyet: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        return 141


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="notyet",
        description="The stop gate for AI agents: agents say done, notyet checks.",
    )
    parser.add_argument("--version", action="version", version=f"notyet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, home in COMMANDS.items():
        command: Command = import_module(home)
        sub = commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.configure(sub)
    return parser
