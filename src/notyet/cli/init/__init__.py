"""`notyet init`: detect tests, linters and agents, and write notyet.toml after a review."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from notyet.cli import install
from notyet.cli.init.review import Review
from notyet.cli.init.text import file_text, gates_text, text_with
from notyet.cli.init.trial import Trial, missing_before, run_once
from notyet.cli.person import refuse, why_refused
from notyet.cli.progress import Progress
from notyet.cli.terminal import Style, folded
from notyet.cli.trust import Show, offer
from notyet.config.files import ConfigFile
from notyet.config.find import FILE_NAME, KIND_NOTYET, above, known_as, root_of, user_folder
from notyet.config.trust import candidate
from notyet.core.gate import Command
from notyet.core.text import visible
from notyet.install.change import replace_file
from notyet.install.settings import installable, settings_of
from notyet.project import detect

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from notyet.cli.trust import Consent
    from notyet.config.trust import Candidate
    from notyet.core.gate import Gate
    from notyet.project import Detected
    from notyet.project.folder import Proposal

SUMMARY = "detect tests, linters and agents, review them on one screen, write notyet.toml"
EXAMPLES = (
    ("notyet init", "detect, show one screen to review, then write notyet.toml and trust it"),
    ("notyet init --dry-run", "print the file that would be written; run and change nothing"),
    ("notyet init --no-try", "write and trust the file without running the commands"),
    ("notyet init --update", "add gates that were found since then to the existing file"),
    ("notyet init --yes", "do not ask, and register with no host"),
    ("notyet init --yes --install", "do not ask, and register with the agents that are installed"),
)
_UNMARKED = "not marked when `notyet init` asked"
_COLOURS = {"passed": "green", "failed": "yellow", "left out": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "--dry-run", action="store_true", help="print the file, run and change nothing"
    )
    parser.add_argument(
        "--no-try", action="store_true", help="do not run the commands before writing the file"
    )
    parser.add_argument(
        "--update", action="store_true", help="add the gates that an existing file lacks"
    )
    parser.add_argument(
        "--yes", action="store_true", help="do not ask: run, write and trust, in this project only"
    )
    hosts = parser.add_mutually_exclusive_group()
    hosts.add_argument(
        "--install",
        action="store_true",
        help="with --yes: register notyet with the agents installed here, for all your projects",
    )
    hosts.add_argument(
        "--no-install", action="store_true", help="do not offer to register with hosts"
    )


def run(args: argparse.Namespace) -> int:
    """Write the first notyet.toml of this folder, or update it; exit 0 if it is in force."""
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
        bare = [x for x in found.members if not os.path.lexists(os.path.join(folder, x, FILE_NAME))]
        if bare:
            where = f"run this there, and let `members` in {FILE_NAME} here match them"
            _note(f"members with checks and without a {FILE_NAME}: {', '.join(bare)}; {where}")
        return _Init(path, args).extend(found.proposals)
    if args.dry_run:
        print(file_text([Trial(one) for one in found.proposals], folder, found.globs), end="")
        for name, inner in found.members.items():
            lines = gates_text([Trial(one) for one in inner]).splitlines()
            print("", f"# {visible(name)}/{FILE_NAME}:", *(f"#   {x}" for x in lines), sep="\n")
        return 0
    return _Init(path, args).create(found)


def _note(words: str) -> None:
    sys.stdout.flush()  # keeps the order if both go to one file
    print(Style(sys.stderr).paint(f"note: {visible(words)}", "yellow"), file=sys.stderr)


class _Init:
    """Writes one file, after the user has seen all commands and agreed."""

    def __init__(self, path: str, args: argparse.Namespace) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._file = ConfigFile(path=path, kind=KIND_NOTYET)
        self._args = args
        self._paint = Style(sys.stdout).paint
        self._runs = not args.no_try  # each command, once
        self._unmarked: set[str] = set()  # gates that the user does not want
        self._hosts: list[str] = []  # to register with

    def create(self, detected: Detected) -> int:
        """Show what was found and ask; then run, write, trust, and register with hosts."""
        try:
            # Before commands run for minutes.
            tempfile.TemporaryFile(dir=self._folder).close()
        except OSError as error:
            where = visible(self._folder)
            return refuse("init", f"{where} cannot be written to: {error.strerror}")
        others = [os.path.join(folder, FILE_NAME) for folder in above(self._folder)[1:]]
        for other in list(filter(os.path.exists, others))[:1]:
            _note(f"{other} is in force here now; a {FILE_NAME} in this folder adds to it")
        found = list(detected.proposals)
        members = {
            name: inner
            for name, inner in detected.members.items()
            if not os.path.lexists(os.path.join(self._folder, name, FILE_NAME))
        }
        shown = [
            replace(one, name=f"{name}:{one.name}", dir=name, file=os.path.join(name, one.file))
            for name, inner in members.items()
            for one in inner
        ]
        files = FILE_NAME + f" here and in {len(members)} members" * bool(members)
        self._hosts = [] if self._args.no_install else hosts_to_offer(self._folder, os.environ)
        added = self._review([*found, *shown], f"write and trust {files}")
        if added is None:
            print("nothing was changed")
            return 1
        found += added
        tried = self._try({"": found, **members})
        trials = tried.pop("")
        text = file_text(trials, self._folder, detected.globs)
        try:
            # A file that the user wrote meanwhile is kept.
            with open(self._path, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            return refuse("init", f"{visible(self._path)}: {error.strerror}; nothing was changed")
        print(f"wrote {visible(self._path)}")
        written = [self._write_member(*item) for item in tried.items()]
        every = [*trials, *chain(*tried.values())]
        has_gates = any(trial.result != "left out" for trial in every)
        is_trusted = has_gates and offer(
            self._file, "given", os.environ, Show("init"), is_shown=True
        )
        self._install()
        self._say_next(every, has_gates=has_gates, is_trusted=is_trusted)
        return 0 if all(written) and (is_trusted or not has_gates) else 1

    def _write_member(self, name: str, trials: Sequence[Trial]) -> bool:
        """Write and trust the file of a member; return True if it has no gate, or is trusted."""
        if all(trial.result == "left out" for trial in trials):
            return True
        path = os.path.join(self._folder, name, FILE_NAME)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(file_text(trials))
        except OSError as error:
            _note(f"{path}: {error.strerror}; it is left alone")
            return False
        print(f"wrote {visible(path)}")
        member = ConfigFile(path=path, kind=KIND_NOTYET)
        return offer(member, "given", os.environ, Show("init"), is_shown=True)

    def extend(self, found: Sequence[Proposal]) -> int:
        """Add the gates that an existing file lacks; without --update, only print them."""
        is_link = os.path.islink(self._path)
        link = f" (a link to {visible(os.readlink(self._path))})" if is_link else ""
        name = f"{visible(self._path)}{link}"
        try:
            known = candidate(self._file, os.environ)
        except OSError as error:
            return refuse("init", f"{name}: {error.strerror}; it is left alone")
        missing = _missing(self._folder, known.settings.gates, found)
        if not missing or not self._args.update:
            return self._leave_alone(name, known, found, missing)
        if link or known.settings.mistakes:
            why = "it is a link" if link else "it has mistakes; see them with: notyet validate"
            return refuse("init", f"{name}: {why}; it is left alone")
        if self._args.dry_run:
            print(text_with(known.text, [Trial(proposal) for proposal in missing]), end="")
            return 0
        added = self._review(missing, f"add to {FILE_NAME} and trust it")
        if added is None:
            print("nothing was changed")
            return 1
        missing += added
        trials = [trial for trial in self._try({"": missing})[""] if trial.result != "left out"]
        text = text_with(known.text, trials) if trials else known.text
        try:
            if candidate(self._file, os.environ).text != known.text:
                return refuse("init", f"{name} changed in the meantime; it is left alone")
            replace_file(self._path, text.encode())
        except OSError as error:
            return refuse("init", f"{name}: {error.strerror}; nothing was changed")
        print(f"added {len(trials)} gate{'s' * (len(trials) != 1)} to {name}")
        # Other changes in the file are not what the user has agreed to.
        is_agreed = _is_in_force(known)
        consent: Consent = "given" if is_agreed else "refused" if self._args.yes else "asked"
        declined = "none of its gates is in force"
        is_trusted = offer(self._file, consent, os.environ, Show("init"), declined)
        self._say_next(trials, has_gates=True, is_trusted=is_trusted)
        return 0 if is_trusted else 1

    def _review(self, found: Sequence[Proposal], write: str) -> list[Proposal] | None:
        """Print what was detected, and ask; return the gates that the user added, None for no."""
        lacking = {one.name: missing_before(self._folder, one) for one in found}
        cannot_run = {name: why for name, why in lacking.items() if why}
        # What cannot run would send each agent back; where nothing can yet, all is wanted.
        unmarked = {*cannot_run} if len(cannot_run) < len(found) else set()
        review = Review(list(found), cannot_run, self._hosts, unmarked)
        if self._args.yes or not sys.stdin.isatty():
            review.print_gates()
            if self._args.yes:
                return []
            purpose = "to run these commands, and to trust them" if found else f"to {write}"
            refuse("init", f"not a terminal; add --yes {purpose}")
            return None
        answer = review.ask(write, can_run=self._runs)
        self._runs = answer == "run"
        self._unmarked = review.unmarked
        self._hosts = [name for name in self._hosts if name not in review.unmarked_hosts]
        return None if answer == "quit" else review.gates[len(found) :]

    def _try(self, found: Mapping[str, Sequence[Proposal]]) -> dict[str, list[Trial]]:
        """Run the commands of the project and of its members; return trials by member.

        What is found in the project's own folder has the member "".
        """
        named = {
            member: {f"{member}:{one.name}" if member else one.name: one for one in inner}
            for member, inner in found.items()
        }
        with Progress(keeps_ended=False) as progress:
            if self._runs:
                every = [name for inner in named.values() for name in inner]
                progress.jobs.planned([name for name in every if name not in self._unmarked])
            return {member: self._try_in(member, named[member], progress) for member in found}

    def _try_in(
        self, member: str, found: Mapping[str, Proposal], progress: Progress
    ) -> list[Trial]:
        """Run the marked commands of one folder, and print what came of each."""
        folder = os.path.join(self._folder, member)
        trials = {name: Trial(proposal) for name, proposal in found.items()}
        for name in trials.keys() & self._unmarked:
            trials[name] = replace(trials[name], result="left out", why=_UNMARKED)
        marked = {name: one for name, one in found.items() if name not in self._unmarked}
        if not self._runs or not marked:
            for name, one in marked.items():
                if why := missing_before(folder, one):
                    trials[name] = replace(trials[name], result="not installed", why=why)
            return [*trials.values()]

        def note(words: str) -> None:
            with progress.hidden():
                _note(words)

        width = max(map(len, marked))
        text = file_text([trials[name] for name in marked])
        tried = run_once(folder, marked, text, progress.jobs, note)
        for name, trial in zip(marked, tried, strict=True):
            trials[name] = trial
            result = self._paint(f"{trial.result:<8}", _COLOURS.get(trial.result, "yellow"))
            why = f"  {self._paint(visible(trial.why), 'dim')}" if trial.why else ""
            took = f"  {trial.seconds:6.1f} s" if trial.seconds else ""
            with progress.hidden():
                print(f"{visible(name):<{width}}  {result}{took}{why}", flush=True)
        with progress.hidden():
            print()
        return [*trials.values()]

    def _say_next(self, trials: Sequence[Trial], *, has_gates: bool, is_trusted: bool) -> None:
        """Print what to try now; it is the last line."""
        failing = [trial.proposal.name for trial in trials if trial.result == "failed"]
        if failing and is_trusted:
            only, them = ("watches", "it") if len(failing) == 1 else ("watch", "them")
            _note(
                f"{', '.join(failing)} failed, and only {only} for now; fix {them}, delete "
                "`observe` there, and run: notyet trust"
            )
        lacking = [trial.why for trial in trials if trial.result == "not installed"]
        installs = [*dict.fromkeys(why.rpartition("; ")[2] for why in lacking)]
        agent = self._agent()
        words = "notyet check"
        if not has_gates:
            words = f"write a gate into {FILE_NAME}, then run: notyet trust"
        elif not is_trusted:
            words = "review the file, then put it into force: notyet trust"
        elif installs:
            words = f"{'; '.join(installs)}; then: notyet check"
            if all(one.startswith("run: ") for one in installs):
                words = " && ".join([*(one[5:] for one in installs), "notyet check"])
        elif len(failing) == sum(trial.result != "left out" for trial in trials):
            words = "notyet check; until it passes and `observe` is deleted, no agent is sent back"
        elif agent:
            words = f"{agent} for a change and see its stop with: notyet log"
        label = "Try it now: "
        print(self._paint(label, "bold") + folded(visible(words), len(label)))

    def _agent(self) -> str:
        """Return what to do before an agent here calls us, and which to ask; empty for none."""
        steps = []
        for name in installable():
            host = settings_of(name)
            if host.is_here(self._folder, os.environ) and host.found(self._folder, os.environ)[0]:
                approval = install.approval_of(name)
                if not approval:
                    return f"notyet check; or ask {host.title}"
                steps.append(f"{approval}; then ask {host.title}")
        return steps[0] if steps else ""

    def _install(self) -> None:
        """Register with the hosts that the user marked; with --yes, only if that was asked for.

        It counts for all projects, so that `--yes` to this project's gates is not enough.
        """
        for name in self._hosts:
            if self._args.yes and not self._args.install:
                title = settings_of(name).title
                print(f"{title} does not call notyet yet; register it with: notyet install {name}")
                continue
            install.register(name)

    def _leave_alone(
        self, name: str, known: Candidate, found: Sequence[Proposal], missing: Sequence[Proposal]
    ) -> int:
        """Print what an existing file lacks, and whether it is in force; exit 1."""
        # With --dry-run, stdout has TOML alone.
        prose = sys.stderr if self._args.dry_run else sys.stdout
        print(f"{name} already exists, and is left alone", file=prose)
        if missing:
            print("it lacks these gates; to add them, run: notyet init --update", file=prose)
            lines = gates_text([Trial(proposal) for proposal in missing]).splitlines()
            indent = "" if self._args.dry_run else "  "
            print("", *(f"{indent}{line}".rstrip() for line in lines), sep="\n")
        elif not found and not known.settings.gates:
            print(
                "it has no gates, and no tests or linters were found; add a gate to it", file=prose
            )
        else:
            print("it has a gate for everything that was found; see: notyet status", file=prose)
        is_in_force = _is_in_force(known)
        if not is_in_force:
            why = "it changed since it was trusted, so the trusted version is in force"
            if known.before is None:
                why = "it is not trusted yet, so none of its gates is in force"
            print(f"{why}; review it, and put it into force with: notyet trust", file=prose)
        return 0 if self._args.update and is_in_force else 1


def hosts_to_offer(folder: str, environ: Mapping[str, str]) -> list[str]:
    """Return the hosts that are on this machine and do not call us yet."""
    return [
        name
        for name in installable()
        if settings_of(name).is_here(folder, environ)
        and not settings_of(name).found(folder, environ)[0]
    ]


def _is_in_force(known: Candidate) -> bool:
    """Return True if a file is trusted, needs no trust, or has no gates."""
    is_users = os.path.dirname(known.file.path) == os.path.realpath(user_folder(os.environ))
    return is_users or known.is_trusted or not known.settings.gates


def _missing(folder: str, gates: Sequence[Gate], found: Sequence[Proposal]) -> list[Proposal]:
    """Return the proposals that no gate runs, under names that are free."""
    taken = {gate.name for gate in gates}
    missing = []
    for one in found:
        if any(_is_run(one, gate, folder) for gate in gates):
            continue
        names = [one.name, f"{one.name}-{one.tool}", *(f"{one.name}-{n}" for n in range(2, 99))]
        name = next(name for name in names if name not in taken)
        taken.add(name)
        missing.append(replace(one, name=name))
    return missing


def _is_run(one: Proposal, gate: Gate, folder: str) -> bool:
    """Return True if a gate runs a proposal, or the same tool under the same name."""
    check = gate.check
    if not isinstance(check, Command):
        return False
    if one.uses and check.options.get("uses") == one.uses:
        return True
    is_same_tool = gate.name == one.name and one.tool in check.line.replace("/", " ").split()
    place = os.path.realpath(os.path.join(folder, one.dir))
    is_here = place == os.path.realpath(os.path.join(folder, check.dir or ""))
    is_same_run = bool(one.run) and f" {one.run} " in f" {check.line} "
    return is_here and (is_same_tool or is_same_run)
