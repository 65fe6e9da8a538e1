"""`notyet init`: detect tests and linters, run them once, write notyet.toml."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from notyet.cli import install
from notyet.cli.person import agreed, refuse, why_refused
from notyet.cli.schema import REFERENCE, write_schema
from notyet.cli.terminal import Style, table, waiting
from notyet.cli.trust import Show, offer
from notyet.config.compile import compile_text
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    ConfigFile,
    above,
    known_as,
    root_of,
    user_folder,
)
from notyet.config.trust import candidate
from notyet.core import record
from notyet.core.event import StopEvent
from notyet.core.gate import GATE_TIMEOUT, Command
from notyet.core.text import bounded, visible
from notyet.core.verdict import Block, Halt, Problem
from notyet.engine.engine import Engine
from notyet.install.settings import CannotInstall, installable, settings_of
from notyet.project import detect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from notyet.cli.trust import Consent
    from notyet.config.trust import Candidate
    from notyet.core.gate import Gate
    from notyet.core.verdict import Report
    from notyet.project.folder import Proposal

SUMMARY = "detect tests and linters, run them once, write notyet.toml"
EXAMPLES = (
    (
        "notyet init",
        "detect, run each command once, write notyet.toml, trust it; asks before each step",
    ),
    ("notyet init --dry-run", "show the file that would be written; run and change nothing"),
    ("notyet init --yes", "do not ask; hosts are left alone"),
    ("notyet init --yes --install", "do not ask, and register with the hosts that are installed"),
)
_WIDE = 2000
_COLOURS = {"passed": "green", "failed": "yellow", "left out": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print the file, run and change nothing"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask: run, write and trust, in this project only"
    )
    hosts = parser.add_mutually_exclusive_group()
    hosts.add_argument(
        "--install",
        action="store_true",
        help="with --yes: register notyet with the hosts that are here, for all your projects",
    )
    hosts.add_argument(
        "--no-install", action="store_true", help="do not offer to register with hosts"
    )


def run(args: argparse.Namespace) -> int:
    """Write the first notyet.toml of this folder; exit 0 if it is there and in force."""
    why = "" if args.dry_run else why_refused()
    if why:
        return refuse("init", why)
    folder = os.getcwd()
    path = known_as(os.path.join(folder, FILE_NAME))
    found = detect(folder)
    for mistake in found.mistakes:
        _note(f"{mistake}, so it is ignored")
    for words in found.notes:
        _note(words)
    root = root_of(os.path.realpath(folder))
    if not found.proposals and root != os.path.realpath(folder):
        _note(f"this folder is a part of {root}; to gate the whole project, run this there")
    if os.path.lexists(path):
        return _leave_alone(path, found.proposals)
    if args.dry_run:
        print(file_text([Trial(proposal) for proposal in found.proposals]), end="")
        return 0
    return _Init(path, args).run(found.proposals)


def _note(words: str) -> None:
    print(Style(sys.stderr).paint(f"note: {visible(words)}", "yellow"), file=sys.stderr)


class _Init:
    """Writes one file, and asks the user before each step."""

    def __init__(self, path: str, args: argparse.Namespace) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._args = args
        self._consent: Consent = "given" if args.yes else "asked"
        self._paint = Style(sys.stdout).paint

    def run(self, found: Sequence[Proposal]) -> int:
        """Show, run, write, trust; then offer to register with hosts."""
        try:
            # Before commands run for minutes.
            tempfile.TemporaryFile(dir=self._folder).close()
        except OSError as error:
            where = visible(self._folder)
            return refuse("init", f"{where} cannot be written to: {error.strerror}")
        others = [os.path.join(folder, FILE_NAME) for folder in above(self._folder)[1:]]
        for other in list(filter(os.path.exists, others))[:1]:
            _note(f"{other} is in force here now; a {FILE_NAME} in this folder adds to it")
        if not self._show(found):
            print("nothing was changed")
            return 1
        trials = self._try(found)
        has_gates = any(trial.result != "left out" for trial in trials)
        try:
            is_trusted = self._write(file_text(trials), has_gates=has_gates)
        except OSError as error:
            return refuse("init", f"{visible(self._path)}: {error.strerror}; nothing was changed")
        if is_trusted and not self._args.no_install:
            self._install()
        words = "run the gates now with: notyet check"
        if not has_gates:
            words = f"write your gates into {FILE_NAME}, then run: notyet trust"
        elif not is_trusted:
            words = "edit the file, then put it into force with: notyet trust"
        elif any(trial.result == "failed" for trial in trials):
            words = "fix the failing checks, delete the `observe` lines, run: notyet trust"
        print(f"{self._paint('next:', 'bold')} {words}")
        return 0 if is_trusted or not has_gates else 1

    def _show(self, found: Sequence[Proposal]) -> bool:
        """Print what was detected; return True if the user wants to go on."""
        if not found:
            print(f"no tests or linters were found in {visible(self._folder)}")
            return self._args.yes or agreed(
                f"Write a {FILE_NAME} with an example?", "init", "to write one with an example"
            )
        rows = [
            (one.name, f"{one.file}:{one.line}", f"{one.run}{f' (in {one.dir})' * bool(one.dir)}")
            for one in found
        ]
        # Whole: a command that is to run must not be cut.
        for line in table(("gate", "found in", "command"), rows, columns=_WIDE):
            print(line)
        print(flush=True)
        return self._args.yes or agreed(
            f"Run {'it' if len(found) == 1 else 'each of them'} once, to see what passes now?",
            "init",
            "to run these commands, and to trust them",
        )

    def _try(self, found: Sequence[Proposal]) -> list[Trial]:
        width = max((len(one.name) for one in found), default=0)
        trials = []
        for trial in run_once(self._folder, found):
            trials.append(trial)
            result = self._paint(f"{trial.result:<8}", _COLOURS[trial.result])
            why = f"  {self._paint(visible(trial.why), 'dim')}" if trial.why else ""
            print(
                f"{trial.proposal.name:<{width}}  {result}  {trial.seconds:6.1f} s{why}", flush=True
            )
        if trials:
            print()
        return trials

    def _write(self, text: str, *, has_gates: bool) -> bool:
        """Write the file and offer to trust it; remove it on an error. Raises OSError."""
        # A file that the user wrote meanwhile is kept.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        print(f"wrote {visible(self._path)}")
        is_trusted = has_gates and self._trust(text)
        try:
            write_schema(self._folder)
        except OSError as error:
            _note(
                f"editors will not know the keys of {FILE_NAME}: {error.filename}: {error.strerror}"
            )
        return is_trusted

    def _trust(self, text: str) -> bool:
        """Offer to trust the file; remove it if the user breaks off."""
        file = ConfigFile(path=self._path, kind=KIND_NOTYET)
        is_trusted: bool | None = None
        try:
            declined = "none of its gates is in force"
            is_trusted = offer(file, self._consent, os.environ, Show("init"), declined)
        finally:
            if is_trusted is None:
                self._remove(text)
        return is_trusted

    def _remove(self, text: str) -> None:
        """Remove the file that we wrote, unless it was changed meanwhile."""
        try:
            if Path(self._path).read_text(encoding="utf-8") == text:
                os.unlink(self._path)
                return
        except FileNotFoundError:
            return
        except (OSError, ValueError):  # unreadable now
            pass
        _note(f"{self._path} was changed meanwhile; it is kept, and not trusted")

    def _install(self) -> None:
        """Offer `notyet install` for each host here that does not call us yet.

        It registers for all projects, so that consent to this project's gates is not enough.
        """
        for name in hosts_to_offer(self._folder, os.environ):
            if self._args.yes and not self._args.install:
                title = settings_of(name).title
                print(f"{title} does not call notyet yet; register it with: notyet install {name}")
                continue
            print()
            wanted = argparse.Namespace(
                host=name, scope="", timeout=None, trust=False, dry_run=False, yes=self._args.yes
            )
            install.run(wanted)


def hosts_to_offer(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Return the hosts that are on this machine and do not call us yet."""
    return [
        name
        for name in installable()
        if _is_here(name, folder, environ) and not settings_of(name).found(folder, environ)[0]
    ]


def _is_here(name: str, folder: str, environ: Mapping[str, str]) -> bool:
    host = settings_of(name)
    if shutil.which(host.host.program, path=environ.get("PATH")):
        return True
    try:
        place = host.target("user", folder, environ)
    except CannotInstall:
        return False
    return os.path.isdir(os.path.dirname(place.path))


def _leave_alone(path: str, found: Sequence[Proposal]) -> int:
    """Print what an existing file lacks, and whether it is in force; exit 1."""
    link = f" (a link to {visible(os.readlink(path))})" if os.path.islink(path) else ""
    try:
        known = candidate(ConfigFile(path=path, kind=KIND_NOTYET), os.environ)
    except OSError as error:
        return refuse("init", f"{visible(path)}{link}: {error.strerror}; it is left alone")
    print(f"{visible(path)}{link} is there already, and is left alone")
    missing = _missing(os.path.dirname(path), known.settings.gates, found)
    if missing:
        print("it lacks these gates; to add one, copy it and run: notyet trust")
        for proposal in missing:
            print("\n" + "\n".join(f"  {line}" for line in gate_lines(Trial(proposal))))
    elif not found and not known.settings.gates:
        print("it has no gate, and no tests or linters were found")
    else:
        print("it has a gate for everything that was found; see them with: notyet status")
    if not _is_in_force(known):
        why = "it changed since it was trusted, so the trusted version is in force"
        if known.before is None:
            why = "it is not trusted yet, so none of its gates is in force"
        print(f"{why}; review it, and put it into force with: notyet trust")
    return 1


def _is_in_force(known: Candidate) -> bool:
    """Return True if a file is trusted, needs no trust, or has no gates."""
    is_users = os.path.dirname(known.file.path) == os.path.realpath(user_folder(os.environ))
    return is_users or known.is_trusted or not known.settings.gates


def _missing(folder: str, gates: Sequence[Gate], found: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that no gate runs, under names that are free."""
    checks = [gate.check for gate in gates if isinstance(gate.check, Command)]
    taken = {gate.name for gate in gates}

    def is_run(one: Proposal) -> bool:
        place = os.path.realpath(os.path.join(folder, one.dir))
        return any(
            f" {one.run} " in f" {check.line} "
            and place == os.path.realpath(os.path.join(folder, check.dir or ""))
            for check in checks
        )

    return [
        replace(one, name=f"{one.name}-{one.tool}") if one.name in taken else one
        for one in found
        if not is_run(one)
    ]


_SLOW = 5.0  # seconds from which on a gate runs after the others
_MAX_WHY = 200  # characters
_HEAD = f"""\
#:schema {REFERENCE}
#
# What must be true before an agent may stop here. `notyet init` wrote this file; it is yours now.
# After a change run `notyet trust`: until then the version you trusted stays in force.
# `notyet check` runs the gates now. `notyet schema` lists all keys.
"""
_EXAMPLE = """
# No tests or linters were found here. A gate is a command; an exit code other than 0 sends
# the agent back to work, with what the command printed:
#
# [gates.tests]
# run = "make test"
"""
# English output of tools, and of a make that no other make started.
_ENVIRON = (("LANGUAGE", "en"), ("MAKEFLAGS", ""), ("GNUMAKEFLAGS", ""), ("MAKELEVEL", "0"))
# What unittest and pytest print about no tests, and about some.
_NO_TESTS = re.compile(r"^Ran 0 tests in |^NO TESTS RAN|\bno tests ran\b", re.MULTILINE)
_TESTS = re.compile(r"^Ran [1-9]|\b\d+ (?:passed|failed|skipped|errors?)\b", re.MULTILINE)
# What make prints if there is nothing to do, and about the folders that it goes through.
_MOVES = re.compile(r"g?make(?:\[\d+\])?: (?:Entering|Leaving) directory ")
_IDLE = re.compile(
    rf"{_MOVES.pattern}|g?make(?:\[\d+\])?: (?:.* is up to date\.$|Nothing to be done for .*\.$)"
)


@dataclass(frozen=True)
class Trial:
    """A detected command, and the result of running it once."""

    proposal: Proposal
    result: str = "not tried"  # passed, failed or left out
    seconds: float = 0.0
    why: str = ""  # it failed, or was left out


def run_once(folder: str, found: Sequence[Proposal]) -> Iterator[Trial]:
    """Run each command, one after another so that their times are right."""
    trials = [Trial(proposal) for proposal in found]
    # Parse all before the first one runs: it might write to our file.
    gates = compile_text(file_text(trials), os.path.join(folder, FILE_NAME)).gates
    for number, (trial, gate) in enumerate(zip(trials, gates, strict=True), 1):
        words = f"trying {number} of {len(gates)}: {visible(trial.proposal.run)} ..."
        with waiting(words):
            report = _run_gate(gate, folder)
        yield judged(trial, report)


def _run_gate(gate: Gate, folder: str) -> Report:
    check = gate.check
    assert isinstance(check, Command)
    check = record.replace(check, env=(*check.env, *_ENVIRON))
    engine = Engine([record.replace(gate, priority=0, check=check)])
    event = StopEvent(host="notyet", session_id="init", cwd=folder)
    (report,) = engine.decide_sync(event, asked="all").reports
    return report


def judged(trial: Trial, report: Report) -> Trial:
    """Return a trial with its result: a gate that gives no answer is left out."""
    answer = report.answer
    trial = replace(trial, seconds=report.seconds)
    nothing = answer.detail if isinstance(answer, Problem) else _ran_nothing(report.output)
    if nothing or isinstance(answer, Problem):
        return replace(trial, result="left out", why=bounded(nothing, _MAX_WHY))
    if not isinstance(answer, Block | Halt):
        return replace(trial, result="passed")
    said = answer.prompt if isinstance(answer, Block) else answer.reason
    # The last line mostly sums it up.
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")
    why = f"{report.exit}: {last}" if last else report.exit
    return replace(trial, result="failed", why=bounded(why, _MAX_WHY))


def _ran_nothing(output: str) -> str:
    """Return why a command checked nothing, by the words of its tool; empty if that is not sure."""
    if _NO_TESTS.search(output) and not _TESTS.search(output):
        return "it ran no tests"
    said = [line for line in output.splitlines() if line.strip()]
    if said and all(map(_IDLE.match, said)) and not all(map(_MOVES.match, said)):
        return "make ran nothing: it has no recipe, or is a file's name and not .PHONY"
    return ""


def file_text(trials: Sequence[Trial]) -> str:
    """Return the text of the file."""
    if not trials:
        return _HEAD + _EXAMPLE
    return "\n".join([_HEAD, *("\n".join([*gate_lines(trial), ""]) for trial in trials)])


def gate_lines(trial: Trial) -> Iterator[str]:
    """Yield the lines of one gate; those of one that was left out are comments."""
    proposal, took = trial.proposal, f"{trial.seconds:.1f} s"
    why = visible(" ".join(trial.why.split()))
    result = {
        "passed": f", passed in {took}",
        "failed": f", failed in {took} ({why})",
        "left out": f", left out: {why}" if why else "",
    }.get(trial.result, "")
    yield f"# {visible(proposal.file)}:{proposal.line}{result}"
    lines = [f"[gates.{proposal.name}]", f"run = {_quoted(proposal.run)}"]
    if proposal.dir:
        lines.append(f"dir = {_quoted(proposal.dir)}")
    if proposal.paths:
        lines.append(f"paths = [{', '.join(map(_quoted, proposal.paths))}]")
    if trial.seconds > _SLOW:
        lines.append("slow = true  # runs when the others passed")
    if 2 * trial.seconds > GATE_TIMEOUT:
        lines.append(f'timeout = "{ceil(trial.seconds / 30)}m"')
    if trial.result == "failed":
        fails = "it fails already: fix it, then delete this line so that it blocks"
        lines.append(f"observe = true  # {fails}")
    comment = "# " if trial.result == "left out" else ""
    yield from (comment + line for line in lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
