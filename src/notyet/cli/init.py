"""`notyet init`: find what a project checks itself with, try it, and make gates of it."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from notyet.cli.init_text import Trial, file_text
from notyet.cli.person import refuse, why_refused
from notyet.cli.schema import write_schema
from notyet.cli.style import Style
from notyet.cli.table import table
from notyet.cli.trust_show import Show
from notyet.cli.trusting import agreed, offer
from notyet.config.files import NAME, NATIVE, ConfigFile, above, known_as, root_of
from notyet.core.text import visible
from notyet.project import look_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from notyet.cli.trusting import Consent
    from notyet.project.proposal import Proposal

SUMMARY = "find what this project checks itself with, try it, and make gates of it"
EXAMPLES = (
    ("notyet init", "look, try each command once, write notyet.toml, trust it; asks before each"),
    ("notyet init --dry-run", "show the file that would be written; run and change nothing"),
    ("notyet init --yes", "do not ask; hosts are left alone"),
    ("notyet init --yes --install", "do not ask, and register with Claude Code and Codex, too"),
)
_WIDE = 2000
_COLOURS = {"passed": "green", "failed": "yellow", "left out": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print the file, run and change nothing"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask: try, write and trust, in this project only"
    )
    hosts = parser.add_mutually_exclusive_group()
    hosts.add_argument(
        "--install",
        action="store_true",
        help="with --yes: register notyet with the hosts that are here, for all your projects",
    )
    hosts.add_argument(
        "--no-install", action="store_true", help="say nothing of hosts, and register with none"
    )


def run(args: argparse.Namespace) -> int:
    """Make the first notyet.toml of this folder; exit 0 when it is there and in force."""
    why = "" if args.dry_run else why_refused()
    if why:
        return refuse("init", why)
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return refuse("init", "this folder is gone; go to another one, and run this again")
    path = known_as(os.path.join(folder, NAME))
    found = look_at(folder)
    for mistake in found.mistakes:
        note(f"{mistake}; what it says is not looked at")
    for words in found.notes:
        note(words)
    root = root_of(os.path.realpath(folder))
    if not found.proposals and root != os.path.realpath(folder):
        note(f"this folder is a part of {root}; to gate the whole project, run this there")
    if os.path.lexists(path):
        from notyet.cli.init_there import leave_alone

        return leave_alone(path, found.proposals)
    if args.dry_run:
        print(file_text([Trial(proposal=proposal) for proposal in found.proposals]), end="")
        return 0
    return _Making(path, args).run(found.proposals)


def note(words: str) -> None:
    """Say what a person should know."""
    print(Style(sys.stderr).paint(f"note: {visible(words)}", "yellow"), file=sys.stderr)


class _Making:
    """Makes one file, with a person before it."""

    def __init__(self, path: str, args: argparse.Namespace) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._args = args
        self._consent: Consent = "given" if args.yes else "asked"
        self._paint = Style(sys.stdout).paint

    def run(self, found: Sequence[Proposal]) -> int:
        """Show, try, write, trust; then offer to register with hosts."""
        try:
            # Before minutes are spent on what cannot be kept.
            tempfile.TemporaryFile(dir=self._folder).close()
        except OSError as error:
            where = visible(self._folder)
            return refuse("init", f"{where} cannot be written to: {error.strerror}")
        self._tell_of_others()
        if not self._show(found):
            print("nothing was changed")
            return 1
        trials = self._try(found)
        try:
            is_trusted = self._write(trials)
        except OSError as error:
            return refuse("init", f"{visible(self._path)}: {error.strerror}; nothing was changed")
        if is_trusted and not self._args.no_install:
            self._install()
        self._say_next(trials, is_trusted=is_trusted)
        return 0 if is_trusted or not _gates(trials) else 1

    def _tell_of_others(self) -> None:
        for folder in above(self._folder)[1:]:
            other = os.path.join(folder, NAME)
            if os.path.exists(other):
                note(f"{other} counts here until now; a {NAME} of this folder takes its place")
                return

    def _show(self, found: Sequence[Proposal]) -> bool:
        """Show what was found, and ask whether to go on."""
        if not found:
            print(f"nothing that checks this project was found in {visible(self._folder)}")
            return self._args.yes or agreed(
                f"Write a {NAME} with an example?", "init", "to write one with an example"
            )
        rows = [(one.name, f"{one.file}:{one.line}", _shown(one)) for one in found]
        # Whole: what is to be run must not be cut to the terminal.
        for line in table(("gate", "found in", "command"), rows, columns=_WIDE):
            print(line)
        print(flush=True)
        return self._args.yes or agreed(
            f"Run {'it' if len(found) == 1 else 'each of them'} once, to see what passes now?",
            "init",
            "to run these commands, and to trust them",
        )

    def _try(self, found: Sequence[Proposal]) -> list[Trial]:
        if not found:
            return []
        from notyet.cli.init_try import tried

        width = max(len(one.name) for one in found)
        trials = []
        for trial in tried(self._folder, found):
            trials.append(trial)
            result = self._paint(f"{trial.result:<8}", _COLOURS[trial.result])
            took = f"{trial.seconds:6.1f} s"
            why = f"  {self._paint(visible(trial.why), 'dim')}" if trial.why else ""
            print(f"{trial.proposal.name:<{width}}  {result}  {took}{why}", flush=True)
        print()
        return trials

    def _write(self, trials: Sequence[Trial]) -> bool:
        """Write the file and offer it; whoever breaks that off finds nothing. Raises OSError."""
        # Whoever wrote one in the meantime keeps it.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o666)
        text = file_text(trials)
        with open(descriptor, "w", encoding="utf-8") as file:
            made = os.fstat(descriptor)
            try:
                file.write(text)
                file.flush()
                print(f"wrote {visible(self._path)}")
                is_trusted = self._offer() if _gates(trials) else False
            except BaseException:
                self._take_back(made, text)
                raise
        try:
            write_schema(self._folder)
        except OSError as error:
            note(f"editors will not know the keys of {NAME}: {error.filename}: {error.strerror}")
        return is_trusted

    def _take_back(self, made: os.stat_result, text: str) -> None:
        """Remove the file that we made, unless somebody changed or replaced it meanwhile."""
        try:
            now = os.lstat(self._path)
            is_ours = os.path.samestat(now, made)
            if is_ours and text.encode().startswith(Path(self._path).read_bytes()):
                os.unlink(self._path)
                return
        except FileNotFoundError:
            return
        except OSError:  # whoever did that does not want it looked at
            pass
        note(f"somebody else changed {self._path} meanwhile; it is left as it is, and not trusted")

    def _offer(self) -> bool:
        file = ConfigFile(path=self._path, kind=NATIVE)
        declined = "none of its gates is in force"
        return offer(file, self._consent, os.environ, Show("init"), declined)

    def _install(self) -> None:
        """Offer `notyet install` for each host of this machine that does not call us yet.

        It would be registered for all projects, so that agreeing to this one's gates is not enough.
        """
        from notyet.cli import install
        from notyet.cli.init_hosts import hosts_to_offer
        from notyet.install import host_named

        for name in hosts_to_offer(self._folder, os.environ):
            if self._args.yes and not self._args.install:
                title = host_named(name).TITLE
                print(f"{title} does not call notyet yet; register it with: notyet install {name}")
                continue
            print()
            wanted = argparse.Namespace(
                host=name, scope="", timeout=None, trust=False, dry_run=False, yes=self._args.yes
            )
            install.run(wanted)

    def _say_next(self, trials: Sequence[Trial], *, is_trusted: bool) -> None:
        words = "ask the gates now with: notyet check"
        if not _gates(trials):
            words = f"write your gates into {NAME}, and run: notyet trust"
        elif not is_trusted:
            words = "change the file as you like; to put it into force, run: notyet trust"
        elif any(trial.result == "failed" for trial in trials):
            words = "mend what fails, take out `observe`, and run: notyet trust"
        print(f"{self._paint('next:', 'bold')} {words}")


def _gates(trials: Sequence[Trial]) -> bool:
    return any(trial.result != "left out" for trial in trials)


def _shown(proposal: Proposal) -> str:
    where = f" (in {proposal.dir})" if proposal.dir else ""
    return f"{proposal.run}{where}"
