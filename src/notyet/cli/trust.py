"""`notyet trust`: show the commands that a project's files name, and put them into force."""

from __future__ import annotations

import os
import shlex
import sys
from difflib import unified_diff
from shlex import quote
from typing import TYPE_CHECKING

from notyet.cli.person import agreed, record_act, refuse, why_refused
from notyet.cli.progress import waiting
from notyet.cli.terminal import Style
from notyet.config.compiled import read_record, remove_record
from notyet.config.files import (
    ConfigFile,
    folders_of,
    host_files,
    is_config_name,
    looked_for,
    project_tomls,
    toml_files,
)
from notyet.config.find import (
    FILE_NAME,
    KIND_NOTYET,
    LOCAL_SOURCE,
    PYPROJECT,
    above,
    has_table,
    known_as,
    real_folder,
    state_folder,
)
from notyet.config.load import NO_LOOK, PATIENCE, load
from notyet.config.members import member_files, trusted_members, untrusted_members
from notyet.config.records import has_record, place_of, work_tree
from notyet.config.remote import RemoteSource
from notyet.config.shapes import meant_workspace
from notyet.config.trust import candidate, grant, hosts_read
from notyet.core.gate import NATIVE, Command
from notyet.core.remote import is_remote, remote_from
from notyet.core.text import visible
from notyet.errors import Refused
from notyet.hosts.files import ABOVE, EXECUTABLE, READABLE, format_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    from notyet.config.trust import Candidate

    Consent = Literal["given", "asked", "refused"]  # "refused": only show the file

SUMMARY = "review the gates of this project and put them into force"
EXAMPLES = (
    ("notyet trust", "review this project's gates, and put them into force"),
    ("notyet trust --show", "only show which files are trusted"),
    ("notyet trust --read claude", "also the hooks of Claude Code, for other agents"),
    ("notyet trust ssh://dev@box/srv/app", "the gates of a workspace on another machine"),
    ("notyet trust --revoke", "stop trusting"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "path",
        nargs="?",
        default=".",
        help="a folder or file (default: here), or a workspace: ssh://host/path",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show which files are trusted")
    what.add_argument("--revoke", action="store_true", help="stop trusting")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--read", action="append", choices=READABLE, default=[], help="also files of this host"
    )


def run(args: argparse.Namespace) -> int:
    """Show, trust or revoke; exit 0 when all files that were found are trusted."""
    environ = os.environ
    show = Show()
    why = "" if args.show else why_refused()
    if why:
        return refuse("trust", why)
    if args.revoke:
        return _revoke(args.path, environ, show)
    try:
        files = _files(args, environ)
    except Refused as error:
        return refuse("trust", str(error))
    consent: Consent = "refused" if args.show else "given" if args.yes else "asked"
    results = [offer(file, consent, environ, show) for file in files]
    return 0 if all(results) else 1


def _files(args: argparse.Namespace, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files to trust. Raises Refused."""
    others = "add --read HOST for files of another host"
    if is_remote(args.path):
        files, place = _files_there(args, environ)
        if not files:
            raise Refused(f"no {FILE_NAME} in {visible(place)} or above; {others}")
        return files
    files = files_to_trust(args.path, args.read, environ)
    if not files and not os.path.exists(args.path):
        hint = meant_workspace(args.path)
        raise Refused(
            f"no such file or folder: {visible(args.path)}" + (f"; {visible(hint)}" if hint else "")
        )
    if not files:
        raise Refused(f"no {FILE_NAME} in {os.path.abspath(args.path)} or above; {others}")
    return files


def _files_there(
    args: argparse.Namespace, environ: Mapping[str, str]
) -> tuple[list[ConfigFile], str]:
    """Return the files of a workspace, and its folder."""
    try:
        folder, named = folder_there(args.path)
    except ValueError as error:
        raise Refused(f"{visible(args.path)}: {error}") from None
    with waiting(f"looking at {visible(folder)} ..."):
        hosts = READABLE if named else args.read
        source = RemoteSource(folder, PATIENCE, hosts, records(environ))
        files = files_there(source, named, args.read, environ)
    if source.problem:
        raise Refused(f"{visible(folder)} cannot be read: {source.problem}")
    return files, named or folder


def _revoke(place: str, environ: Mapping[str, str], show: Show) -> int:
    state = state_folder(environ)
    try:
        known = trusted_paths(place, state)
    except ValueError as error:
        return refuse("trust", f"{visible(place)}: {error}")
    for path in known:
        try:
            remove_record(state, path)
        except OSError as error:
            reason = error.strerror or str(error)
            return refuse("trust", f"{visible(path)}: cannot remove the trust: {reason}")
        record_act("revoke", path, "")
        show.done(f"no longer trusted: {visible(path)}{in_work_trees(path)}")
    what = "here" if place == "." else f"of {visible(place)}"
    return 0 if known else refuse("trust", f"nothing {what} is trusted")


def trusted_paths(path: str, state: str) -> list[str]:
    """Return the trusted files that count for a folder, or the one that is named.

    Only records say so: the machine of a workspace, or a file that cannot be read, could hide
    them. Raises ValueError for a bad workspace.
    """
    if is_remote(path):
        folder, named = folder_there(path)
        found = [named] if named else _around(folder, state)
    elif os.path.isdir(path):
        # A folder may have been replaced by a link to another one since it was trusted.
        places = (os.path.realpath(path), os.path.abspath(path))
        found = [name for place in places for name in _around(place, state)]
    elif os.path.basename(path) == FILE_NAME:
        found = _around(os.path.dirname(known_as(path)), state)
    else:
        found = [known_as(path)]
    trusted = [name for name in dict.fromkeys(found) if _was_trusted(state, name)]
    # Work trees share their records; the nearest one stands for the others.
    return [*{place_of(name): name for name in reversed(trusted)}.values()][::-1]


def in_work_trees(path: str) -> str:
    """Return words for where a file is trusted, if that is in more than one work tree."""
    root, main = work_tree(path)
    has_others = root != main or os.path.isdir(os.path.join(root, ".git", "worktrees"))
    return f", in every work tree of {visible(main)}" if root and has_others else ""


def _around(place: str, state: str) -> list[str]:
    """Return the files that may count for a folder."""
    every, projects = looked_for(READABLE)
    # Of these only the nearest one: one further up may be for other folders too.
    tomls = (FILE_NAME, PYPROJECT)
    nearest = [_nearest(place, names, state) for names in (tomls, tuple(ABOVE))]
    names = [name for name in (*every, *projects) if name not in (*tomls, *ABOVE)]
    others = [os.path.join(folder, name) for folder in above(place) for name in names]
    return [*(path for paths in nearest for path in paths), *others]


def _nearest(place: str, names: tuple[str, ...], state: str) -> list[str]:
    for folder in above(place):
        paths = [os.path.join(folder, name) for name in names]
        found = [path for path in paths if _is_here(path) or _was_trusted(state, path)]
        if found:
            return found
    return []


def _is_here(path: str) -> bool:
    if is_remote(path) or not os.path.lexists(path):
        return False
    return os.path.basename(path) != PYPROJECT or has_table(path, LOCAL_SOURCE)


def _was_trusted(state: str, path: str) -> bool:
    """Return True if a person trusted a file; the user's own file has a record without a time."""
    own = read_record(state, path, path)  # trusted by its path, and in a work tree only now
    known = own if own is not None and own.at else read_record(state, path)
    if known is None:
        return has_record(state, place_of(path))
    return known.at > 0 or bool(known.work_tree_of)


class Show:
    """Prints for a person; control characters are escaped."""

    def __init__(self, command: str = "trust") -> None:
        self.command = command
        self._paint = Style(sys.stdout).paint

    def problem(self, path: str, why: str) -> None:
        """Print what is wrong with a file, to stderr."""
        sys.stdout.flush()
        print(f"notyet {self.command}: {visible(path)}: {why}", file=sys.stderr)

    def done(self, words: str) -> None:
        """Print what was done."""
        print(self._paint(words, "green"))

    def file(self, found: Candidate) -> None:
        """Print one file: its state, its text or what changed in it, mistakes, and commands."""
        state = "not trusted"
        if found.is_trusted:
            state = f"trusted{in_work_trees(found.file.path)}"
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
        """Print all of a new text: any line can matter, a limit of 0 undoes every gate."""
        lines = text.removesuffix("\n").split("\n")
        width = len(str(len(lines)))
        for number, line in enumerate(lines, 1):
            print(f"  {self._paint(f'{number:>{width}} |', 'dim')} {visible(line)}".rstrip())

    def _difference(self, before: str, now: str) -> None:
        # Split at line feeds only: other separators would show as equal what is not.
        old, new = before.split("\n"), now.split("\n")
        for line in unified_diff(old, new, "trusted", "now", lineterm="", n=1):
            colour = {"+": "green", "-": "red"}.get(line[:1], "dim")
            print(f"  {self._paint(visible(line), colour)}")

    def _commands(self, found: Candidate) -> None:
        entries = [(gate.name, gate.check) for gate in found.settings.gates]
        entries += [(starter.name, starter.check) for starter in found.settings.starters]
        entries += [(f"observer {o.name}", o.check) for o in found.settings.observers]
        # By machine, because a command means something else on another one.
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
    """Return everything that would run, line by line."""
    assert isinstance(check, Command)
    options = check.options
    if format_of(found.file.kind) == EXECUTABLE:
        return ["the file itself"]
    text = str(options.get("python") or check.line)
    before = [f"{name}={value}" for name, value in check.env]
    if options.get("interpreter"):
        before.append(f"interpreter: {options['interpreter']}")
    for key in ("fix", "with"):
        if options.get(key):
            words = options[key]
            before.append(f"{key}: {words if isinstance(words, str) else shlex.join(words)}")
    return [visible(line) for line in (*before, *text.split("\n"))]


def files_to_trust(path: str, hosts: Sequence[str], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files of projects that need trust; the user's own ones do not."""
    path = os.path.realpath(path) if os.path.isdir(path) else known_as(path)
    if not os.path.isdir(path) and os.path.basename(path) not in (FILE_NAME, PYPROJECT):
        return _named(path, environ)
    is_recorded = records(environ)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    files = toml_files(folder, environ, is_recorded)
    named = [host for file in files for host in hosts_read(file, environ)]
    found = [file for file in files if not file.is_users]
    if path != folder:
        found = [file for file in found if file.path == path]
    found = [file for file in found if not file.is_gone] or found[:1]
    paths = {file.path for file in found}
    found += [file for file in members_of(found, environ) if file.path not in paths]
    for host in dict.fromkeys([*hosts, *named]):
        for place in dict.fromkeys([folder, *folders_of(folder, host, is_recorded)]):
            files = host_files(host, place, environ, is_recorded)
            found += [file for file in files if not file.is_users and file not in found]
    return found


def members_of(files: Sequence[ConfigFile], environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the files of the members that files name, as they are now."""
    state, is_recorded = state_folder(environ), records(environ)
    found: dict[str, ConfigFile] = {}
    waiting = [*files]
    while waiting:
        file = waiting.pop(0)
        try:
            globs = () if file.is_gone else candidate(file, environ).settings.members
        except OSError:
            continue
        folder = os.path.dirname(file.path)
        known = trusted_members(state, folder, globs) if globs else []
        others = untrusted_members(folder, globs, known, print) if globs else []
        for name in sorted({*known, *others}):
            for member in member_files(os.path.join(folder, name), is_recorded):
                if not member.is_gone and member.path not in found:
                    found[member.path] = member
                    waiting.append(member)
    return [*found.values()]


def records(environ: Mapping[str, str]) -> Callable[[str], bool]:
    """Return a function that is True for places with a record of trust."""
    state = state_folder(environ)
    return lambda place: has_record(state, place)


def folder_there(url: str) -> tuple[str, str]:
    """Return the folder of an address in a workspace, and the file it names, if any."""
    place = remote_from(url)
    if not is_config_name(place.path):
        return place.url, ""
    kind = KIND_NOTYET if os.path.basename(place.path) in (FILE_NAME, PYPROJECT) else ""
    return ConfigFile(path=place.url, kind=kind).project, place.url


def files_there(
    source: RemoteSource, named: str, hosts: Sequence[str], environ: Mapping[str, str]
) -> list[ConfigFile]:
    """Return the files of a workspace that need trust, or only the one that was named."""
    is_recorded = records(environ)
    wanted = list(READABLE) if named else list(hosts)
    found = project_tomls(source.workspace, is_recorded, source)
    found = [file for file in found if not file.is_gone] or found[:1]
    wanted += [host for file in found for host in hosts_read(file, environ)]
    source.look_for(wanted)
    here = real_folder(".")
    for host in dict.fromkeys(wanted):
        places = [source.workspace, *folders_of(source.workspace, host, is_recorded, source)]
        for folder in dict.fromkeys(places):
            files = host_files(host, folder, environ, is_recorded, source=source, here=here)
            # The user's own files are on this machine.
            found += [file for file in files if is_remote(file.path) and file not in found]
    return [file for file in found if named in {"", file.path}]


def same_here(file: ConfigFile, text: str, environ: Mapping[str, str]) -> str:
    """Return the file here that names this one's workspace and has its text; empty for none."""
    if file.kind != KIND_NOTYET or not is_remote(file.path):
        return ""
    setup = load(os.getcwd(), NATIVE, environ, patience=NO_LOOK)
    if not setup.named_by or file.project not in above(setup.workspace):
        return ""
    known = read_record(state_folder(environ), setup.named_by)
    return setup.named_by if known is not None and known.content == text else ""


def _named(path: str, environ: Mapping[str, str]) -> list[ConfigFile]:
    """Return the one file that was named, of whatever host."""
    folder = os.path.dirname(path)
    for place in (folder, os.path.dirname(folder)):
        for host in READABLE:
            for file in host_files(host, place, environ):
                if file.path == path:
                    return [file]
    return [ConfigFile(path=path, kind="notyet")] if os.path.exists(path) else []


def offer(
    file: ConfigFile,
    consent: Consent,
    environ: Mapping[str, str],
    show: Show,
    declined: str = "nothing was changed",
    *,
    is_shown: bool = False,
) -> bool:
    """Show one file, and trust it if a person agrees; return True if it is trusted.

    `declined` is printed if the person does not agree. `is_shown` says that the person has seen
    all commands of the file.
    """
    try:
        found = candidate(file, environ)
    except OSError as error:
        show.problem(file.path, str(error.strerror or error))
        return False
    same = same_here(file, found.text, environ)
    if same:
        print(f"{visible(file.path)} is the same as {visible(same)} here; it needs no trust")
        return True
    if not is_shown:
        show.file(found)
    if consent == "refused" or (found.is_trusted and not found.is_outdated):
        return found.is_trusted
    if found.settings.mistakes:
        show.problem(file.path, "fix these mistakes, then run: notyet trust")
        return False
    is_agreed = consent == "given" or found.is_trusted  # the text is the one that was trusted
    if not is_agreed and not agreed(
        "Trust this file, and run these commands?", show.command, "to trust this"
    ):
        print(declined)
        return False
    try:
        grant(found, environ)
    except OSError as error:
        show.problem(file.path, f"cannot store the trust: {error.strerror or error}")
        return False
    count = len(found.settings.gates)
    record_act("trust", file.path, f"{count} gates")
    gates = f"{count} gate{'' if count == 1 else 's'} of this file"
    whose = "" if file.kind == KIND_NOTYET else ", for hosts that read it"
    if is_remote(file.path):
        whose += f", for agents whose workspace is {visible(file.project)} or below"
    done = "brought up to date" if found.is_trusted else "trusted"
    whose += in_work_trees(file.path)
    show.done(f"{done}: {gates} in force now{whose}" if count else f"{done}: it has no gates")
    there = found.settings.workspace
    if is_remote(there):
        see = f"notyet trust {visible(quote(there))}"
        print(f"files of its workspace that differ need their own trust: {see}")
    return True
