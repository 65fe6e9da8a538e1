"""`notyet`: find the command, run it, and print the pages of help."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
import textwrap
from importlib import import_module
from types import MappingProxyType

from notyet import __version__
from notyet.cli.streams import give_up, give_up_unwritable, open_streams
from notyet.core.text import bounded, visible
from notyet.hosts import all_hosts, host_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import NoReturn, Protocol

    Examples = tuple[tuple[str, str], ...]  # a command line, and what it does

    class Command(Protocol):
        """The module of a command."""

        SUMMARY: str
        EXAMPLES: Examples

        def configure(self, parser: argparse.ArgumentParser) -> None: ...

        def run(self, args: argparse.Namespace) -> int: ...

        def arranged(self, words: list[str]) -> list[str]: ...  # only where argparse needs it


DESCRIPTION = "The stop gate for AI agents: agents say done, notyet checks."
_OF_HOSTS = tuple(host.name for host in all_hosts() if host.is_command)
COMMANDS = {
    "init": "notyet.cli.init",
    "install": "notyet.cli.install",
    "uninstall": "notyet.cli.uninstall",
    "check": "notyet.cli.check",
    "status": "notyet.cli.status",
    "guard": "notyet.cli.guard",
    "hosts": "notyet.cli.hosts",
    "gates": "notyet.cli.gates",
    "trust": "notyet.cli.trust",
    "off": "notyet.cli.off",
    "on": "notyet.cli.on",
    "replay": "notyet.cli.replay",
    "with": "notyet.cli.with_agent",
    "acp": "notyet.cli.acp",
    "tasks": "notyet.cli.tasks",
    "submit": "notyet.cli.submit",
    "worker": "notyet.cli.worker",
    "log": "notyet.cli.log",
    "page": "notyet.cli.page",
    "ship": "notyet.cli.ship",
    "hook": "notyet.cli.hook",
    **{name: f"notyet.cli.{name}" for name in _OF_HOSTS},
    "validate": "notyet.cli.validate",
    "schema": "notyet.cli.schema",
    "completion": "notyet.cli.completion",
    "demo": "notyet.cli.demo",
}
# Every command is in one group, in the order in which people meet them.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Set up": ("init", "install", "uninstall", "hosts", "gates", "trust", "off", "on"),
    "Every day": ("check", "status", "guard"),
    "Look back": ("log", "page", "replay", "ship"),
    "Agents": ("with", "acp", "tasks"),
    "Fleets": ("submit", "worker"),
    "Plumbing": ("hook", *_OF_HOSTS, "validate", "schema", "completion", "demo"),
}
EXAMPLES: Examples = (
    ("notyet demo", "watch scripted agents meet the gates; nothing is changed"),
    ("notyet init", "detect tests, linters and agents, review them, write notyet.toml"),
    ("notyet install claude", "check every stop of Claude Code"),
    ("notyet check", "run the gates now, as a stop would"),
    ("notyet status", "are agents checked here? and if not, what is wrong"),
    ("notyet log --since 2d", "the stops of the last two days"),
    ('notyet with codex "Fix the build."', "run an agent until its work passes"),
)
# What people type who know other programs.
ALIASES = {"doctor": ["status"], "help": ["--help"], "version": ["--version"]}
_MEANT = {
    "add": "install",
    "disable": "off",
    "enable": "on",
    "history": "log",
    "remove": "uninstall",
    "run": "check",
    "setup": "init",
    "stop": "off",
    "test": "check",
    "ui": "page",
    "verify": "check",
}
# Errors of output that cannot be written; errors of files name the file.
_UNWRITABLE = {errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG}
_BY_SIGNAL = 128  # above this, an exit code says which signal ended us
_OWN_OPTIONS = ("-h", "--help", "--version")
_MAX_EXAMPLE = 42  # columns of a command line that is explained beside it
_MIN_PAGE, _MAX_PAGE = 60, 100  # columns


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is ours."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["hook"] and not {"-h", "--help"} & set(words):
        from notyet.hook.main import serve  # alone: a stop needs no other module of the CLI

        return serve(words[1:])

    open_streams()
    try:
        try:
            return _run(words)
        except SystemExit as ended:
            if isinstance(ended.code, int) and ended.code > _BY_SIGNAL:
                give_up_unwritable()  # the terminal may be gone
            raise
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
    args = argparse.Namespace(command="")
    try:
        if not words:
            from notyet.cli import start_page

            return start_page.show()
        args = parsed(words)
        return _command(args.command).run(args)
    except SystemExit as error:
        if error.code and not args.command and words[0] in _OF_HOSTS:
            return 1  # argparse exits 2, which sends an agent back
        raise
    except FileNotFoundError as error:
        if error.filename is not None or _has_folder():
            raise
        other = ", or use --all" if hasattr(args, "all") else ""
        _complain(f"this folder is gone; go to another one{other}", args.command)
        return 1 if args.command in _OF_HOSTS else 2


def _has_folder() -> bool:
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False


def _complain(why: str, command: str = "") -> None:
    try:
        print(f"notyet {command}".rstrip() + f": {why}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Prints a mistake in one sentence with the command's own hint, and no usage."""

    hints: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        hints = [hint for words, hint in self.hints.items() if words in message]
        if not hints and ";" not in message:
            hints = [f"see: {self.prog} --help"]
        self.exit(2, f"{self.prog}: {'; '.join([message, *hints])}\n")


class _Overview(_Parser):
    """The parser of all commands."""

    def format_help(self) -> str:
        return overview(summaries(COMMANDS))


def summaries(names: Iterable[str]) -> dict[str, str]:
    """Return what commands are for, in one line each."""
    return {name: _command(name).SUMMARY for name in names if name in COMMANDS}


def _command(name: str) -> Command:
    command: Command = import_module(COMMANDS[name])
    return command


def parsed(words: list[str]) -> argparse.Namespace:
    """Parse a command line. Raises SystemExit for a wrong one."""
    if words[0] == "help" and words[1:]:
        words = [*words[1:2], "--help"]
    words = [*ALIASES.get(words[0], words[:1]), *words[1:]]
    rest: list[str] = []
    if words[:1] in (["with"], ["acp"]) and "--" in words:  # what follows is the agent's
        at = words.index("--")
        words, rest = words[:at], words[at + 1 :]
    wanted = [name for name in words[:1] if name in COMMANDS]
    if wanted and hasattr(_command(wanted[0]), "arranged"):
        words = _command(wanted[0]).arranged(words)
    parser, commands = parsers(wanted)
    if not wanted and words[0] not in _OWN_OPTIONS:
        parser.error(_no_such(words[0]))
    args, unknown = parser.parse_known_args(words)
    if unknown:  # the command's own parser knows hints
        commands[args.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    args.rest = rest
    return args


def _no_such(word: str) -> str:
    from notyet.config.document import did_you_mean
    from notyet.install.settings import installable

    if word.startswith("-"):
        return "the command comes first, then its options: notyet COMMAND [options]"
    if word in installable():
        title = host_named(word).title
        return f"{word} is a host; to check the agents of {title}, run: notyet install {word}"
    hint = f"did you mean `{_MEANT[word]}`?" if word in _MEANT else did_you_mean(word, COMMANDS)
    hint = hint or "see all commands with: notyet --help"
    return f"there is no command {visible(bounded(word, 40))!r}; {hint}"


def parsers(wanted: Iterable[str]) -> tuple[argparse.ArgumentParser, dict[str, _Parser]]:
    """Return the parser of `notyet`, and those of the wanted commands.

    The modules of other commands are not imported: some take long.
    """
    parser = _Overview(prog="notyet", usage="notyet COMMAND [options]", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"notyet {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    made: dict[str, _Parser] = {}
    for name in wanted:
        command = _command(name)
        about = command.SUMMARY
        sub = commands.add_parser(name, description=about, help=about, prog=f"notyet {name}")
        sub.formatter_class = argparse.RawDescriptionHelpFormatter
        command.configure(sub)
        sub.epilog = epilog(command.EXAMPLES, getattr(command, "NOTES", ""))
        sub.hints = getattr(command, "HINTS", sub.hints)
        made[name] = sub
    return parser, made


def _in_columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Return names with what they mean: side by side, or below each other if a name is wide."""
    rows = list(rows)
    page = max(_MIN_PAGE, min(_MAX_PAGE, shutil.get_terminal_size().columns - 2))
    widest = max((len(name) for name, _ in rows), default=0)
    lines = []
    for name, text in rows:
        if widest > _MAX_EXAMPLE:
            lines += [f"  {name}", *(f"      {part}" for part in textwrap.wrap(text, page - 6))]
            continue
        first, *more = textwrap.wrap(text, page - widest - 4) or [""]
        lines += [f"  {name:<{widest}}  {first}".rstrip()]
        lines += [f"  {'':<{widest}}  {line}" for line in more]
    return lines


def epilog(examples: Examples, notes: str = "") -> str:
    """Return the end of a command's help."""
    said = "\n".join(["examples:", *_in_columns(examples)]) if examples else ""
    return "\n\n".join(filter(None, (said, notes.strip())))


def overview(summaries: Mapping[str, str]) -> str:
    """Return the page of `notyet --help`."""
    widest = max(map(len, summaries), default=0)
    lines = ["usage: notyet COMMAND [options]", "", DESCRIPTION]
    for title, names in GROUPS.items():
        here = [(f"{name:<{widest}}", summaries[name]) for name in names if name in summaries]
        if here:
            lines += ["", f"{title}:", *_in_columns(here)]
    options = [("-h, --help", "show this, or with a command: its options and examples")]
    options += [("--version ", "show the version")]
    lines += ["", "Examples:", *_in_columns(EXAMPLES), "", "Options:", *_in_columns(options)]
    return "\n".join(lines) + "\n"
