"""What `notyet trust` shows before a person says yes: all of a file, and what it would run."""

from __future__ import annotations

import sys

from notyet.cli.style import Style
from notyet.core.command import Command
from notyet.core.remote import is_remote
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.trust import Candidate


class Show:
    """Prints for a person; what could hide something on a terminal is escaped."""

    def __init__(self, command: str = "trust") -> None:
        self.command = command
        self._paint = Style(sys.stdout).paint

    def problem(self, path: str, why: str) -> None:
        """Say what is wrong with a file."""
        sys.stdout.flush()
        print(f"notyet {self.command}: {visible(path)}: {why}", file=sys.stderr)

    def done(self, words: str) -> None:
        """Say what was done."""
        print(self._paint(words, "green"))

    def file(self, found: Candidate) -> None:
        """Show one file: its state, its text or what changed in it, mistakes, and commands."""
        state = "not trusted"
        if found.is_trusted:
            state = "trusted"
        elif found.before is not None:
            state = "changed since it was trusted"
        print(f"{self._paint(visible(found.file.path), 'bold')}  ({state})")
        if found.before is None:
            self._lines(found.text)
        elif not found.is_trusted:
            self._difference(found.before.content, found.text)
        for mistake in found.settings.mistakes:
            print(f"  {self._paint(visible(str(mistake)), 'red')}")
        for warning in found.settings.warnings:
            print(f"  {self._paint(visible(str(warning)), 'yellow')}")
        self._commands(found)

    def _lines(self, text: str) -> None:
        """Show a text that nobody has seen, whole: a limit of 0 can undo every gate."""
        lines = text.removesuffix("\n").split("\n")
        width = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            print(f"  {self._paint(f'{number:>{width}} |', 'dim')} {visible(line)}".rstrip())

    def _difference(self, before: str, now: str) -> None:
        from difflib import unified_diff

        # Split at line feeds only: other separators would show as equal what is not.
        old, new = before.split("\n"), now.split("\n")
        for line in unified_diff(old, new, "trusted", "now", lineterm="", n=1):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            print(f"  {self._paint(visible(line), colour)}")

    def _commands(self, found: Candidate) -> None:
        entries = [(gate.name, gate.check) for gate in found.settings.gates]
        entries += [(starter.name, starter.check) for starter in found.settings.starters]
        entries += [(f"observer {o.name}", o.check) for o in found.settings.observers]
        # A command means another thing on another machine, so that is said first.
        places = dict.fromkeys(_place(check) for _, check in entries)
        width = max((len(visible(name)) for name, _ in entries), default=0)
        for place in sorted(places):
            here = "would run here:" if len(places) > 1 else "would run:"
            there = f"would run in {visible(place)}:"
            print(self._paint(there if place else here, "dim"))
            for name, check in entries:
                if _place(check) == place:
                    self._command(f"{visible(name):<{width}}", _commands(check, found))

    def _command(self, name: str, lines: list[str]) -> None:
        for number, line in enumerate(lines):
            label = " " * len(name) if number else name
            print(f"  {label}  {self._paint(line, 'dim')}")


def _place(check: object) -> str:
    """Return the workspace that a command would run in; empty for this machine."""
    assert isinstance(check, Command)
    return check.workspace if is_remote(check.workspace) else ""


def _commands(check: object, found: Candidate) -> list[str]:
    """Return all that would be run, line by line: what is not shown cannot be trusted."""
    assert isinstance(check, Command)
    options = check.options
    if found.file.kind.startswith("mux-"):
        return ["the file itself"]
    text = str(options.get("python") or check.line)
    before = [f"{name}={value}" for name, value in check.env]
    if options.get("interpreter"):
        before.append(f"interpreter: {options['interpreter']}")
    return [visible(line) for line in (*before, *text.split("\n"))]
