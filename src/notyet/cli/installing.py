"""What `install` and `uninstall` have in common: they show a change, ask, and write it."""

from __future__ import annotations

import os
import sys

from notyet.cli.person import refuse, why_refused, write_down
from notyet.cli.terminal import Style
from notyet.cli.trusting import agreed
from notyet.config.find import state_folder
from notyet.core.record import replace
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.install.change import Stale, text_of
from notyet.install.edit import is_mixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from typing import Literal

    from notyet.install.change import Change
    from notyet.install.host import Host
    from notyet.install.place import Place
    from notyet.install.registered import Registration

    Outcome = Literal["nothing", "shown", "declined", "done"]

_TRIES = 9  # where others change the same file at the same time
_COLOURS = {"+": "green", "-": "red"}


def add_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options that both commands know; `default` says what none of the scopes means."""
    scope = parser.add_mutually_exclusive_group()
    for name, words in (
        ("user", "your own settings, for every project"),
        ("project", "the project's settings, which are committed, for everybody"),
        ("local", "your own settings for this project (Claude Code)"),
    ):
        scope.add_argument(
            f"--{name}",
            dest="scope",
            action="store_const",
            const=name,
            default="",
            help=words + (default if name == "user" else ""),
        )
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and stop")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def guarded(command: str, args: argparse.Namespace, work: Callable[[Screen], int]) -> int:
    """Do what a person asked for; say in one sentence why, where it cannot be done."""
    why = "" if args.dry_run else why_refused()
    if why:
        return refuse(command, why)
    try:
        return work(Screen(command, args))
    except NotyetError as error:
        return refuse(command, visible(str(error)))
    except OSError as error:
        if error.filename is None:  # of our own output, or of a folder that is gone
            raise
        where = visible(os.fsdecode(error.filename))
        return refuse(command, f"{where}: {error.strerror}; nothing was changed there")


def _nothing() -> None:
    """Do nothing before a change."""


class Screen:
    """Talks to a person about changes, in many words on a terminal and in few elsewhere."""

    def __init__(self, command: str, args: argparse.Namespace) -> None:
        self.command = command
        self._yes: bool = args.yes
        self.is_dry: bool = args.dry_run
        self._backup = ""
        self.change: Change | None = None  # the last one that was settled
        self.first: Callable[[], None] = _nothing  # what has to be done before one is written
        self.paint = Style(sys.stdout).paint
        # Who says yes beforehand and does not look wants to know what was done, not how.
        self._shows = self.is_dry or not self._yes or sys.stdout.isatty()

    def settle(self, host: Host, place: Place, plan: Callable[[], Change], do: str) -> Outcome:
        """Show what would change, ask, and write it. Raises NotyetError and OSError."""
        for _ in range(_TRIES):
            self.change = change = plan()
            if change.is_empty:
                return "nothing"
            places = self._show_all(host, place, change)
            if self.is_dry:
                print("nothing was changed: this is a dry run")
                return "shown"
            if not self._yes and not agreed(f"{do}?", self.command, "to do this"):
                print("nothing was changed")
                return "declined"
            self.first()
            try:
                backup = change.write(state_folder(os.environ))
            except Stale:
                if not self._yes:  # a person said yes to something else
                    raise
                continue
            for where in places:
                write_down(self.command, where.path, host.NAME)
            self._backup = backup if change.before is not None else ""
            return "done"
        raise Stale(f"{place.path} is changed by others all the time; run this again")

    def settle_with_trust(
        self, host: Host, place: Place, plan: Callable[[], Change], do: str
    ) -> Outcome:
        """Settle a change together with what follows from it for the host's trust."""

        def whole() -> Change:
            change = plan()
            before, after = text_of(change.before), text_of(change.after)
            trust = host.disapproval(place, before, after, os.environ)
            if trust is None or trust.path != place.path:
                return replace(change, trust=trust)
            return replace(change, after=trust.after, note=trust.note)

        return self.settle(host, place, whole, do)

    def tell_trust(self, words: str) -> None:
        """Say what became of the host's trust with the last change, which was done."""
        last = self.change
        assert last is not None
        if last.trust is not None:
            self._backup = ""
            self.done(words, file=last.trust.path)
        self.note(last.trust.note if last.trust else last.note)

    def note_mixed(self, entries: Iterable[Registration]) -> bool:
        """Say which entries are a person's own, though they run our hook; tell if there are any."""
        mixed = [one for one in entries if is_mixed(one)]
        for one in mixed:
            self.note(f"{one.where}: this hook also runs other commands; change it yourself")
        return bool(mixed)

    def _show_all(self, host: Host, place: Place, change: Change) -> list[Place]:
        """Show a change with what belongs to it; return the files."""
        parts = [(place, change)]
        if change.trust is not None:
            parts.append((replace(place, scope="user", path=change.trust.path), change.trust))
        for where, part in parts:
            if self._shows:
                self._show(host, where, part)
            for note in part.notes():
                self.note(note)
        return [where for where, _ in parts]

    def _show(self, host: Host, place: Place, change: Change) -> None:
        state = "changed"
        if change.before is None:
            state = "new"
        elif change.after is None:
            state = "removed"
        title = self.paint(f"{host.TITLE}: {visible(place.path)}", "bold")
        print(f"{title}  ({place.scope} settings, {state})")
        for line in change.diff():
            print(f"  {self.paint(visible(line), _COLOURS.get(line[:1], 'dim'))}")

    def done(self, words: str, **facts: str) -> None:
        """Say what was done, and what a person may want to know of it."""
        print(self.paint(words, "green"))
        facts["backup"] = self._backup
        facts = {name: fact for name, fact in facts.items() if fact}
        width = max((len(name) for name in facts), default=0)
        for name, fact in facts.items():
            print(f"  {self.paint(f'{name:<{width}}', 'dim')}  {visible(fact)}")

    def note(self, words: str) -> None:
        """Say what a person should know, if there is something."""
        if words:
            print(self.paint(f"note: {visible(words)}", "yellow"))

    def next(self, words: str) -> None:
        """Say what a person still has to do."""
        print(f"{self.paint('next:', 'bold')} {visible(words)}")
