"""`notyet install`: register notyet with a host, and trust the gates of this project."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from notyet.cli.hosts import add_host
from notyet.cli.person import agreed, record_act, refuse, why_refused
from notyet.cli.terminal import Style
from notyet.cli.times import duration
from notyet.cli.trust import Show, files_to_trust, offer
from notyet.config.files import toml_files
from notyet.config.find import FILE_NAME, state_folder
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.install.change import text_of, to_install
from notyet.install.launcher import (
    Start,
    absolute_start,
    is_laid,
    launched_start,
    lay,
    own_folder,
    own_root,
)
from notyet.install.settings import (
    HOOK_TIMEOUT,
    START_TIMEOUT,
    CannotInstall,
    installable,
    settings_of,
)
from notyet.status.overview import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    from notyet.install.change import Change
    from notyet.install.settings import Entry, Registration, Settings, SettingsFile

    Outcome = Literal["nothing", "shown", "declined", "done"]

SUMMARY = "register notyet with a host, and trust the gates of this project"
EXAMPLES = (
    ("notyet install claude", "for all your projects"),
    ("notyet install codex --trust", "also approve the hooks, which Codex skips otherwise"),
    ("notyet install claude --project", "in the project's settings, for the whole team"),
    ("notyet install claude --dry-run", "only show what would change"),
    ("notyet install codex --timeout 1h", "let Codex wait longer for the gates"),
)
_COLOURS = {"+": "green", "-": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host(parser, nargs="?")
    add_options(parser, " (default)")
    parser.add_argument(
        "--timeout",
        metavar="T",
        help="how long the host waits for the gates, like 600, 90s or 1h (default: 30m)",
    )
    parser.add_argument(
        "--trust", action="store_true", help="also approve the hooks, which Codex skips otherwise"
    )


def run(args: argparse.Namespace) -> int:
    """Show what changes, write it, and offer to trust the gates of this project."""
    if not args.host:
        return refuse("install", _name_a_host(os.getcwd()), 2)
    host = settings_of(args.host)
    seconds = HOOK_TIMEOUT
    if args.timeout is not None:
        try:
            seconds = max(1, int(duration(args.timeout)))
        except ValueError as error:
            return refuse("install", str(error))
    if args.trust and not host.approve:
        return refuse("install", f"{host.title} does not need trusted hooks; leave out --trust")
    return guarded("install", args, lambda screen: _install(screen, host, args, seconds))


def register(name: str) -> int:
    """Register with a host that the user agreed to, and print that in few words."""
    args = argparse.Namespace(host=name, scope="", trust=False, dry_run=False, yes=True)
    args.is_brief, args.timeout = True, None
    host = settings_of(name)
    return guarded("install", args, lambda screen: _install(screen, host, args, HOOK_TIMEOUT))


def approval_of(name: str) -> str:
    """Return how a person makes a host trust our hooks; empty if it does, or needs no trust."""
    host = settings_of(name)
    if not host.approve:
        return ""
    try:
        file = host.target("user", os.getcwd(), os.environ)
    except CannotInstall:
        return ""
    wanted = host.entries(_start(os.environ).line, HOOK_TIMEOUT)
    return "" if _is_approved(host, file, wanted) else _how_to_approve(host)


def _how_to_approve(host: Settings) -> str:
    return f"{host.approve} (or run: notyet install {host.name} --trust)"


def _install(screen: Screen, host: Settings, args: argparse.Namespace, seconds: int) -> int:
    environ = os.environ
    file = host.target(args.scope or "user", os.getcwd(), environ)
    plugin = _plugin_of(host)
    if plugin and not args.scope and args.timeout is None:
        print(f"{host.title} has the plugin notyet already: {visible(plugin)}")
        screen.note("to register notyet as well, so that the plugin stands aside, add --user")
        return _finish(screen, host, args)
    if not _is_wanted(host, file, args):
        return 1
    start = Start(line="") if file.scope == "project" else _start(environ)
    wanted = host.entries(start.line, seconds)
    _note_dropped(screen, host, file)
    screen.first = lambda: _lay(start)  # a line in force must find what it starts
    outcome = screen.settle_with_trust(
        host, file, to_install(host, file, wanted), f"Register notyet with {host.title}"
    )
    if outcome == "declined":
        return 1
    if outcome == "nothing":
        print(f"already installed for {host.title}: {visible(file.path)}")
        if start.folder and not args.dry_run and not is_laid(start.folder, own_root()):
            _lay(start)
            screen.done("renewed the launcher", folder=start.folder)
    elif outcome == "done":
        facts = {"file": file.path, "command": wanted[0].command}
        facts["timeout"] = _timeouts(host, seconds)
        short = f"registered with {host.title}: {visible(near(file.path, ''))}"
        screen.done(f"installed for {host.title}: {', '.join(host.events)}", short, **facts)
        screen.report_trust(f"{host.title}'s trust follows its hooks")
    screen.note(start.note)
    _note_longest(screen, host, seconds if args.timeout else 0)
    _look_around(screen, host, file)
    if args.trust:
        outcome = _approve(screen, host, file, wanted)
    elif host.approve and not screen.is_brief and not _is_approved(host, file, wanted):
        screen.next(_how_to_approve(host))
    for line in host.advice(file, os.getcwd()):
        screen.next(line)
    code = _finish(screen, host, args)
    return 1 if outcome == "declined" else code


def _finish(screen: Screen, host: Settings, args: argparse.Namespace) -> int:
    """Offer to trust the gates of this project, and name the next step."""
    if args.dry_run or screen.is_brief:
        return 0
    is_gated = _offer_gates(screen, args)
    screen.next(f"check the setup with: notyet status {host.name}")
    return 0 if is_gated else 1


def _plugin_of(host: Settings) -> str:
    """Return the file with the hooks of the plugin; empty if the host does not have it."""
    found, _ = host.found(os.getcwd(), os.environ)
    return next((one.file.path for one in found if one.is_plugin), "")


def _name_a_host(cwd: str) -> str:
    """Return which hosts could be meant: those on this machine."""
    here = [name for name in installable() if settings_of(name).is_here(cwd, os.environ)]
    if not here:
        return "name a host, as in: notyet install claude; list them with: notyet hosts"
    return f"name a host; on this machine: {', '.join(here)}; as in: notyet install {here[0]}"


def _is_wanted(host: Settings, file: SettingsFile, args: argparse.Namespace) -> bool:
    """Return True if the host is here, or if the user wants to register with it all the same."""
    if args.yes or args.dry_run or file.scope == "project" or host.is_here(os.getcwd(), os.environ):
        return True
    folder = visible(os.path.dirname(file.path))
    what = f"{host.title} was not found: no `{host.host.program}` on your PATH, and no {folder}"
    if not sys.stdin.isatty():
        refuse("install", f"{what}; add --yes to register notyet anyway")
        return False
    if agreed(f"{what}. Register notyet anyway?", "install", ""):
        return True
    print("nothing was changed")
    return False


def _timeouts(host: Settings, seconds: int) -> str:
    seconds = min(seconds, int(host.host.longest_timeout or seconds))
    starts = f", {min(seconds, START_TIMEOUT)} s at a start" if host.host.starts else ""
    return f"{seconds} s at a stop{starts}"


def _note_longest(screen: Screen, host: Settings, seconds: int) -> None:
    """Print how long the host waits, if that is less than its user wants."""
    longest = host.host.longest_timeout
    if 0 < longest < seconds:
        screen.note(f"{host.title} waits at most {longest / 60:g} min for a hook")


def _note_dropped(screen: Screen, host: Settings, file: SettingsFile) -> None:
    """Print which matchers of ours are replaced by entries for every agent."""
    for one in host.found_in([file])[0]:
        if one.event in host.events and one.is_hook and one.is_restricted:
            screen.note(
                f"{one.where}: the matcher {one.matcher!r} is removed; {FILE_NAME} says which "
                "agents are gated"
            )


def _start(environ: Mapping[str, str]) -> Start:
    main = os.path.join(own_root(), "notyet", "__main__.py")
    usual = absolute_start(sys.argv[0], sys.prefix, sys.executable, main)
    return launched_start(usual, own_folder(environ, own_root()), sys.executable)


def _lay(start: Start) -> None:
    if start.folder and not is_laid(start.folder, own_root()):
        lay(start.folder, own_root())


def _look_around(screen: Screen, host: Settings, file: SettingsFile) -> None:
    """Print what is unproven, where else notyet is registered, and which files are unreadable."""
    if host.host.proof == "source":
        screen.note(f"unproven: this follows {host.host.derived_from}; no test of ours runs it")
    found, mistakes = host.found(os.getcwd(), os.environ)
    screen.note_mixed(one for one in found if one.file.is_same_file(file))
    if _plugin_of(host):
        screen.note("the plugin notyet is installed, too: it stands aside for these settings")
    others = {
        one.file.path: one for one in found if not one.file.is_same_file(file) and not one.is_plugin
    }
    for path, one in others.items():
        how = f"notyet uninstall {host.name} --{one.file.scope}"
        remove = f"; remove one, as with: {how}" if one.file.scope in host.scopes else ""
        twice = "" if host.host.layout == "file" else ", so every stop is checked twice"
        if host.host.project_wins:
            twice, remove = f"; of the two, {host.title} runs only the project's here", ""
        screen.note(f"also registered in {path}{twice}{remove}")
    for mistake in mistakes:
        screen.note(f"{host.title} cannot read a file: {mistake}")


def _approval(host: Settings, file: SettingsFile, wanted: tuple[Entry, ...]) -> Change:
    """Return the change that makes a host trust our hooks. Raises CannotInstall."""
    after = to_install(host, file, wanted).after or b""
    change = host.approval(file, after.decode(), os.environ)
    if change is None:
        raise CannotInstall(f"there is no home folder in which {host.title} keeps its trust")
    return change


def _is_approved(host: Settings, file: SettingsFile, wanted: tuple[Entry, ...]) -> bool:
    try:
        return _approval(host, file, wanted).is_empty
    except CannotInstall:  # unknown: let a person look
        return False


def _approve(
    screen: Screen, host: Settings, file: SettingsFile, wanted: tuple[Entry, ...]
) -> Outcome:
    """Make the host trust our entries, after printing what that means."""
    change = _approval(host, file, wanted)
    print(
        f"--trust: {host.title} will run these commands at every stop without asking, outside "
        "its sandbox; after a change it asks again"
    )
    config = replace(file, scope="user", path=change.path)
    outcome = screen.settle(host, config, change, f"Let {host.title} trust them")
    if outcome == "done":
        screen.done(f"trusted by {host.title}", file=config.path)
    return outcome


def _offer_gates(screen: Screen, args: argparse.Namespace) -> bool:
    """Show the gates of this project, and trust them if the user agrees."""
    environ = os.environ
    files = files_to_trust(".", [], environ)
    if files:
        show = Show("install")
        results = [offer(f, "given" if args.yes else "asked", environ, show) for f in files]
        return all(results)  # each is offered, whatever became of others
    if not toml_files(os.path.realpath("."), environ, lambda _path: False):
        screen.next("detect the checks of this project with: notyet init")
    return True


def add_options(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options that both commands know; `default` says what none of the scopes means."""
    scope = parser.add_mutually_exclusive_group()
    for name, words in (
        ("user", "your own settings, for every project"),
        ("project", "the project's settings, which are committed, for the whole team"),
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
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def guarded(command: str, args: argparse.Namespace, work: Callable[[Screen], int]) -> int:
    """Run a command for a person; print one sentence if it cannot be done."""
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


class Screen:
    """Show changes to a person and ask; in few words if no person looks."""

    def __init__(self, command: str, args: argparse.Namespace) -> None:
        self.command = command
        self._yes: bool = args.yes
        self.is_dry: bool = args.dry_run
        self._backup = ""
        self.change: Change | None = None  # the last one that was settled
        self.first: Callable[[], None] = lambda: None  # to do before one is written
        self.paint = Style(sys.stdout).paint
        self.is_brief: bool = getattr(args, "is_brief", False)
        # With --yes and no terminal, print only what was done.
        self._shows = self.is_dry or not self._yes or (sys.stdout.isatty() and not self.is_brief)

    def settle(self, host: Settings, file: SettingsFile, change: Change, do: str) -> Outcome:
        """Show what would change, ask, and write it. Raises NotyetError and OSError."""
        self.change = change
        if change.is_empty:
            return "nothing"
        files = self._show_all(host, file, change)
        if self.is_dry:
            print("dry run: nothing was changed")
            return "shown"
        if not self._yes and not agreed(f"{do}?", self.command, "to do this"):
            print("nothing was changed")
            return "declined"
        self.first()
        backup = change.write(state_folder(os.environ))
        for where in files:
            record_act(self.command, where.path, host.name)
        self._backup = backup if change.before is not None else ""
        return "done"

    def settle_with_trust(
        self, host: Settings, file: SettingsFile, change: Change, do: str
    ) -> Outcome:
        """Settle a change together with what follows from it for the host's trust."""
        before, after = text_of(change.before), text_of(change.after)
        trust = host.trust_update(file, before, after, os.environ)
        if trust is None or trust.path != file.path:
            change = replace(change, trust=trust)
        else:
            change = replace(change, after=trust.after, note=trust.note)
        return self.settle(host, file, change, do)

    def report_trust(self, words: str) -> None:
        """Print how the last change affected the host's trust."""
        last = self.change
        assert last is not None
        if last.trust is not None:
            self._backup = ""
            self.done(words, file=last.trust.path)
        self.note(last.trust.note if last.trust else last.note)

    def note_mixed(self, entries: Iterable[Registration]) -> bool:
        """Print which entries also run other commands; return True if there are any."""
        mixed = [one for one in entries if one.is_mixed]
        for one in mixed:
            self.note(f"{one.where}: this hook also runs other commands; edit it yourself")
        return bool(mixed)

    def _show_all(self, host: Settings, file: SettingsFile, change: Change) -> list[SettingsFile]:
        """Show a change with what belongs to it; return the files."""
        parts = [(file, change)]
        if change.trust is not None:
            parts.append((replace(file, scope="user", path=change.trust.path), change.trust))
        for where, part in parts:
            if self._shows:
                self._show(host, where, part)
        return [where for where, _ in parts]

    def _show(self, host: Settings, file: SettingsFile, change: Change) -> None:
        state = "changed"
        if change.before is None:
            state = "new"
        elif change.after is None:
            state = "removed"
        title = self.paint(f"{host.title}: {visible(file.path)}", "bold")
        print(f"{title}  ({file.scope} settings, {state})")
        for line in change.diff():
            print(f"  {self.paint(visible(line), _COLOURS.get(line[:1], 'dim'))}")

    def done(self, words: str, short: str = "", **facts: str) -> None:
        """Print what was done, and facts about it; in brief only the short words for it."""
        if self.is_brief and short:
            print(self.paint(short, "green"))
            return
        print(self.paint(words, "green"))
        facts["backup"] = self._backup
        facts = {name: fact for name, fact in facts.items() if fact}
        width = max((len(name) for name in facts), default=0)
        for name, fact in facts.items():
            print(f"  {self.paint(f'{name:<{width}}', 'dim')}  {visible(fact)}")

    def note(self, words: str) -> None:
        """Print a note, if there is one."""
        if words:
            print(self.paint(f"note: {visible(words)}", "yellow"))

    def next(self, words: str) -> None:
        """Print the next step."""
        print(f"{self.paint('next:', 'bold')} {visible(words)}")
