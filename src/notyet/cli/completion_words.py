"""Which words a command line can have, taken from the parsers: for every shell the same."""

from __future__ import annotations

import argparse

from notyet.cli.main import COMMANDS, parsers, summaries
from notyet.core.record import Record
from notyet.hosts import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILES, FOLDERS = "files", "folders"
# What follows where the parser itself knows no choices: a kind that is looked up, or words.
_BY_METAVAR = {"FILE": FILES, "FILES": FILES, "DIR": FOLDERS, "FOLDER": FOLDERS}
_BY_NAME: dict[tuple[str, str], str] = {
    ("check", "names"): "gates",
    ("log", "gate"): "gates",
    ("log", "id"): "stops",
    ("log", "session"): "sessions",
    ("replay", "ids"): "stops",
    ("replay", "session"): "sessions",
    ("tasks", "id"): "tasks",
    ("trust", "path"): FILES,
    ("validate", "files"): FILES,
}


class Value(Record, kw_only=True):
    """What may stand at a place: some words, or a kind that a shell finds or asks for."""

    words: tuple[str, ...] = ()
    kind: str = ""  # "files", "folders", or one of `notyet completion --values`
    name: str = ""  # for people


class Option(Record, kw_only=True):
    """An option; `value` is None for a switch."""

    flags: tuple[str, ...]
    help: str
    value: Value | None = None


class Completed(Record, kw_only=True):
    """One command."""

    name: str
    summary: str
    options: tuple[Option, ...]
    places: tuple[Value, ...]  # what may follow, one after the other
    repeats: bool = False  # the last of them may come again


def commands() -> list[Completed]:
    """Return every command with its words."""
    _, made = parsers(COMMANDS)
    said = summaries(COMMANDS)
    return [_command(name, said[name], parser) for name, parser in made.items()]


def _command(name: str, summary: str, parser: argparse.ArgumentParser) -> Completed:
    actions = parser._actions  # noqa: SLF001  # argparse tells nobody else what it knows
    places = [action for action in actions if not action.option_strings]
    last = places[-1].nargs if places else None
    return Completed(
        name=name,
        summary=summary,
        options=tuple(_options(name, actions)),
        places=tuple(_value(name, action) for action in places),
        repeats=last in {"*", "+", argparse.REMAINDER},
    )


def _options(name: str, actions: list[argparse.Action]) -> Iterator[Option]:
    for action in actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            takes = action.nargs != 0
            yield Option(
                flags=tuple(action.option_strings),
                help=(action.help or "").replace("%%", "%"),
                value=_value(name, action) if takes else None,
            )


def _value(name: str, action: argparse.Action) -> Value:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    words = tuple(map(str, action.choices or ()))
    if (name, action.dest) == ("with", "agent"):
        from notyet.agents import AGENTS

        words = tuple(agent for agent in AGENTS if agent != "scripted")
    if metavar == "HOST" and not words:
        words = HOSTS
    kind = _BY_NAME.get((name, action.dest)) or _BY_METAVAR.get(metavar, "")
    return Value(words=words, kind="" if words else kind, name=metavar)
