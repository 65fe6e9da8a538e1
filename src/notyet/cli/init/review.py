"""The screen of `notyet init`: gates and hosts to mark, and one question."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.cli.terminal import Style, folded, table
from notyet.config.find import FILE_NAME
from notyet.config.lint import first_program
from notyet.core.text import visible
from notyet.install.settings import settings_of
from notyet.project.folder import Proposal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    Answer = Literal["run", "write", "quit"]

NOTHING = "No tests or linters were found in this folder."
ADDED = "typed by you"  # where a gate comes from that no file of the project shows
_WIDE = 2000  # columns: a command that is to run must not be cut
_KEY = 6  # columns of what to type


@dataclass
class Review:
    """What was detected, and which of it is marked."""

    gates: list[Proposal]
    cannot_run: Mapping[str, str]  # gates that lack something, and what
    hosts: Sequence[str]
    unmarked: set[str] = field(default_factory=set)  # names of gates
    unmarked_hosts: set[str] = field(default_factory=set)

    def print_gates(self, *, has_marks: bool = False) -> None:
        """Print the gates, with their whole commands."""
        rows = []
        for number, one in enumerate(self.gates, 1):
            place = f"{one.file}:{one.line}" if one.line else one.file
            shown = f"{one.shown}{f' (in {one.dir})' * bool(one.dir)}"
            mark = [_mark(number, one.name, self.unmarked)] * has_marks
            rows.append([*mark, one.name, place, shown])
        head = [""] * has_marks + ["gate", "found in", "command"]
        lines = table(head, rows, columns=_WIDE) if rows else [NOTHING]
        print(*lines, sep="\n")
        for why in dict.fromkeys(self.cannot_run.values()):
            names = ", ".join(name for name, other in self.cannot_run.items() if other == why)
            words = f"cannot run yet: {names} ({visible(why)})"
            print(Style(sys.stdout).paint(words, "yellow"))
        print(flush=True)

    def ask(self, write: str, *, can_run: bool) -> Answer:
        """Show the screen until a person decides; `write` says what is done with the gates."""
        while True:
            self._show(write, can_run=can_run)
            print("> ", end="", file=sys.stderr, flush=True)
            try:
                words = input().strip()
            except EOFError:
                return "quit"
            if words.lower() in {"", "y", "yes"}:
                return "run" if can_run and self._runs() else "write"
            if words.lower() in {"w", "write"}:
                return "write"
            if words.lower() in {"q", "quit", "n", "no"}:
                return "quit"
            self._change(words)

    def _show(self, write: str, *, can_run: bool) -> None:
        style = Style(sys.stdout)
        if self.gates:
            print("Found in this folder; nothing ran yet:", "", sep="\n")
        self.print_gates(has_marks=True)
        if self.hosts:
            about = "Register notyet with these agents, for all your projects; it runs only gates "
            print(folded(f"{about}that you trusted:", 0), "", sep="\n")
            for number, name in enumerate(self.hosts, len(self.gates) + 1):
                print(f"{_mark(number, name, self.unmarked_hosts)}  {settings_of(name).title}")
            print()
        hosts = [name for name in self.hosts if name not in self.unmarked_hosts]
        titles = [settings_of(name).title for name in hosts]
        steps = [write if self.gates else f"write an example of a {FILE_NAME}"]
        if titles:
            steps.append(f"register notyet with {', '.join(titles)}")
        runs = can_run and self._runs()
        last = len(self.gates) + len(self.hosts)
        keys = [
            ("Enter", ", ".join(["run each gate once"] * runs + steps)),
            *[("w", "the same without running the gates")] * runs,
            ("+ ...", f"add a gate, as in: {style.paint('+ make test', 'bold')}"),
            *[(f"1-{last}" if last > 1 else "1", "mark or unmark it")] * bool(last),
            ("q", "quit; nothing is changed"),
        ]
        for key, words in keys:
            print(f"{style.paint(f'{key:<{_KEY}}', 'bold')} {folded(words, _KEY + 1)}")

    def _runs(self) -> bool:
        names = {one.name for one in self.gates}
        return bool(names - self.unmarked - self.cannot_run.keys())

    def _change(self, words: str) -> None:
        """Mark, unmark or add what a person typed; print a mistake."""
        names = [one.name for one in self.gates]
        every = [*((self.unmarked, name) for name in names)]
        every += [(self.unmarked_hosts, name) for name in self.hosts]
        numbers = words.replace(",", " ").split()
        if words.startswith("+") and words[1:].strip():
            self._add(words[1:].strip(), names)
        elif all(one.isdecimal() and 1 <= int(one) <= len(every) for one in numbers):
            for unmarked, name in (every[int(one) - 1] for one in numbers):
                unmarked ^= {name}
        else:
            print(f"'{visible(words[:40])}' is none of these:", file=sys.stderr)

    def _add(self, run: str, taken: Sequence[str]) -> None:
        wanted = "tests" if "test" in run else "check"
        names = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
        name = next(one for one in names if one not in taken)
        tool = first_program(run)
        self.gates.append(Proposal(name=name, tool=tool, run=run, file=ADDED, line=0))


def _mark(number: int, name: str, unmarked: set[str]) -> str:
    return f"[{' ' if name in unmarked else 'x'}] {number}"
