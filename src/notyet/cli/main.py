"""`notyet`: finds the command and runs it."""

from __future__ import annotations

import argparse
import errno
import sys
from importlib import import_module
from types import MappingProxyType

from notyet import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn, Protocol

    class Command(Protocol):
        """What a command's module must offer."""

        SUMMARY: str

        def configure(self, parser: argparse.ArgumentParser) -> None: ...

        def run(self, args: argparse.Namespace) -> int: ...


# What happens to output that nobody can take; errors of files name the file.
_UNWRITABLE = {errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG}
COMMANDS = {
    "install": "notyet.cli.install",
    "uninstall": "notyet.cli.uninstall",
    "status": "notyet.cli.status",
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
    from notyet.cli.lines import give_up, open_streams

    open_streams()
    try:
        try:
            return _run(words)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except OSError as error:
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        give_up(sys.stdout)
        if error.errno == errno.EPIPE:  # the reader has seen enough
            return 141
        _complain(f"the output could not be written: {error.strerror}")
        return 1


def _run(words: list[str]) -> int:
    rest: list[str] = []
    if words[:1] == ["with"] and "--" in words:  # what follows is the agent's
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    if words[:1] == ["tasks"]:
        from notyet.cli.tasks import arranged

        words = arranged(words)
    try:
        args = _parsed(words)
    except SystemExit as error:
        if error.code and words[:1] == ["conclaude"]:
            return 1  # argparse exits 2, which sends an agent back
        raise
    args.rest = rest
    command: Command = import_module(COMMANDS[args.command])
    return command.run(args)


def _complain(why: str) -> None:
    try:
        print(f"notyet: {why}", file=sys.stderr, flush=True)
    except OSError:
        from notyet.cli.lines import give_up

        give_up(sys.stderr)


class _Parser(argparse.ArgumentParser):
    """One that adds to what is wrong how it would be right."""

    hints: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        for words, hint in self.hints.items():
            if words in message:
                message = f"{message}; {hint}"
        super().error(message)


def _parsed(words: list[str]) -> argparse.Namespace:
    parser, commands = _parsers(words[:1])
    args, unknown = parser.parse_known_args(words)
    if unknown:  # said by the command's own parser, which knows more
        commands[args.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def _parsers(wanted: Sequence[str]) -> tuple[_Parser, dict[str, _Parser]]:
    parser = _Parser(
        prog="notyet",
        description="The stop gate for AI agents: agents say done, notyet checks.",
    )
    parser.add_argument("--version", action="version", version=f"notyet {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # A command that is named needs none of the others, some of which take long to import.
    named = {name: COMMANDS[name] for name in wanted if name in COMMANDS}
    made: dict[str, _Parser] = {}
    for name, home in (named or COMMANDS).items():
        command: Command = import_module(home)
        sub = commands.add_parser(name, help=command.SUMMARY, description=command.SUMMARY)
        command.configure(sub)
        sub.hints = getattr(command, "HINTS", sub.hints)
        made[name] = sub
    return parser, made
