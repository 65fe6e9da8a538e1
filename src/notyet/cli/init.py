"""`notyet init`: find what a project checks itself with, try it, and make gates of it."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from notyet.cli.init_text import Trial, file_text, lines
from notyet.cli.person import refuse, why_refused
from notyet.cli.schema import write_schema
from notyet.cli.terminal import Style, table, waiting
from notyet.cli.trusting import Show, agreed, offer
from notyet.config.files import NAME, NATIVE, ConfigFile, above, known_as, root_of, user_folder
from notyet.config.native import read_native
from notyet.config.trust import candidate
from notyet.core.event import StopEvent
from notyet.core.gate import Command
from notyet.core.record import replace
from notyet.core.text import bounded, visible
from notyet.core.verdict import Block, Halt, Problem
from notyet.engine.engine import Engine
from notyet.install import HOSTS, host_named
from notyet.install.refused import CannotInstall
from notyet.project import look_at
from notyet.run.shell import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.cli.trusting import Consent
    from notyet.config.trust import Candidate
    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.project.folder import Proposal

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


def hosts_to_offer(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Return the hosts that are here and do not call us yet, wherever that would be said."""
    return [
        name
        for name in HOSTS
        if _is_here(name, folder, environ) and not host_named(name).found(folder, environ)[0]
    ]


def _is_here(name: str, folder: str, environ: Mapping[str, str]) -> bool:
    host = host_named(name)
    if shutil.which(host.PROGRAM, path=environ.get("PATH")):
        return True
    try:
        place = host.target("user", folder, environ)
    except CannotInstall:
        return False
    return os.path.isdir(os.path.dirname(place.path))


def leave_alone(path: str, found: Sequence[Proposal]) -> int:
    """Say what would be added to a file that is there already, and whether it is in force."""
    link = f" (a link to {visible(os.readlink(path))})" if os.path.islink(path) else ""
    try:
        known = candidate(ConfigFile(path=path, kind=NATIVE), os.environ)
    except OSError as error:
        return refuse("init", f"{visible(path)}{link}: {error.strerror}; it is left alone")
    print(f"{visible(path)}{link} is there already, and is left alone")
    missing = [Trial(proposal=one) for one in _missing(known.settings.gates, found)]
    if missing:
        print("it does not have these gates; to add one, copy it, and run: notyet trust")
        for trial in missing:
            print("\n" + "\n".join(f"  {line}" for line in lines(trial)))
    elif not found and not known.settings.gates:
        print("it has no gate, and nothing that checks this project was found")
    else:
        print("it has a gate for all that was found; see them with: notyet status")
    untrusted = _untrusted(known)
    if untrusted:
        print(f"{untrusted}; look at it, and put it into force with: notyet trust")
    return 1


def _untrusted(known: Candidate) -> str:
    """Say that gates of a file are not in force; nothing where they are."""
    is_own = os.path.dirname(known.file.path) == os.path.realpath(user_folder(os.environ))
    if is_own or known.is_trusted or not known.settings.gates:
        return ""
    if known.before is None:
        return "nobody trusted it yet, so none of its gates is in force"
    return "it changed since it was trusted, so what it said then is in force"


def _missing(gates: Sequence[Gate], found: Sequence[Proposal]) -> list[Proposal]:
    """Return what no gate runs, under names that are free."""
    runs = [run for gate in gates for run in _runs(gate)]
    taken = {gate.name for gate in gates}
    missing = [one for one in found if (one.run.split(), one.dir) not in runs]
    return [
        replace(one, name=f"{one.name}-{one.tool}") if one.name in taken else one for one in missing
    ]


def _runs(gate: Gate) -> Iterator[tuple[list[str], str]]:
    """Yield every command that a gate runs, and the folder in the project where it does."""
    check = gate.check
    if not isinstance(check, Command):
        return
    folder = os.path.dirname(gate.source.file) if gate.source else ""
    below = os.path.relpath(check.dir, folder) if check.dir else "."
    where = "" if below == "." else below
    yield list(check.argv), where
    for words in commands(check.script):
        if words[:1] == ["cd"]:  # what follows runs elsewhere
            return
        yield words, where


_MOST_WHY = 200  # characters
# So that we can read what its tools say: in English, and as if no other make had started us.
_LOUD = (("LANGUAGE", "en"), ("MAKEFLAGS", ""), ("GNUMAKEFLAGS", ""), ("MAKELEVEL", "0"))
# What unittest and pytest say of no tests, and of some.
_NO_TESTS = re.compile(r"^Ran 0 tests in |^NO TESTS RAN|\bno tests ran\b", re.MULTILINE)
_TESTS = re.compile(r"^Ran [1-9]|\b\d+ (?:passed|failed|skipped|errors?)\b", re.MULTILINE)
# What make says when there is nothing to do, and of the folders that it goes through.
_MOVES = re.compile(r"g?make(?:\[\d+\])?: (?:Entering|Leaving) directory ")
_IDLE = re.compile(
    rf"{_MOVES.pattern}|g?make(?:\[\d+\])?: (?:.* is up to date\.$|Nothing to be done for .*\.$)"
)


def tried(folder: str, found: Sequence[Proposal]) -> Iterator[Trial]:
    """Run each command, one after another so that their times tell something."""
    path = os.path.join(folder, NAME)
    untried = [Trial(proposal=proposal) for proposal in found]
    gates = read_native(file_text(untried), path).gates
    # All of them, before the first one runs: none may answer for another.
    asked = list(zip(untried, gates, strict=True))
    for number, (trial, gate) in enumerate(asked, 1):
        words = f"trying {number} of {len(gates)}: {visible(trial.proposal.run)} ..."
        with waiting(words):
            report = _asked(gate, folder)
        yield judged(trial, report)


def _asked(gate: Gate, folder: str) -> Report:
    check = gate.check
    if isinstance(check, Command):
        check = replace(check, env=(*check.env, *_LOUD))
    engine = Engine([replace(gate, priority=0, check=check)])
    event = StopEvent(host="notyet", session_id="init", cwd=folder)
    (report,) = engine.decide_sync(event, asked="all").reports
    return report


def judged(trial: Trial, report: Report) -> Trial:
    """Return what a gate's answer means for the file that is to be written."""
    answer = report.answer
    trial = replace(trial, seconds=report.seconds)
    if isinstance(answer, Problem):
        # What cannot be asked would only be noise at every stop.
        return replace(trial, result="left out", why=bounded(answer.detail, _MOST_WHY))
    nothing = _ran_nothing(report.output)
    if nothing:
        return replace(trial, result="left out", why=nothing)
    if isinstance(answer, Block):
        return replace(trial, result="failed", why=_why(report.exit, answer.prompt))
    if isinstance(answer, Halt):
        return replace(trial, result="failed", why=_why(report.exit, answer.reason))
    return replace(trial, result="passed")


def _ran_nothing(output: str) -> str:
    """Say that a tool had nothing to do, by its own words: whatever its exit code, nobody passed.

    Only what is certain: another tool in the same command may have had something to do.
    """
    if _NO_TESTS.search(output) and not _TESTS.search(output):
        return "it ran no tests"
    said = [line for line in output.splitlines() if line.strip()]
    if said and all(map(_IDLE.match, said)) and not all(map(_MOVES.match, said)):
        return "make ran nothing: it has no recipe, or is a file's name and not .PHONY"
    return ""


def _why(ended: str, said: str) -> str:
    """Return how it ended and its last line, which mostly sums it up."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    return bounded(f"{ended}: {last}" if last else ended, _MOST_WHY)
