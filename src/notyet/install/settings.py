"""The settings files in which a host keeps its hooks, and our entries in them.

`Settings` works from the data of a `Host`. A host that also has managed files or trust in hooks
has a subclass, in the module `settings` of its package.
"""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from notyet.config.document import BadSyntax, Document, Mistake, name_of
from notyet.config.find import root_of
from notyet.config.readers import BYTE_ORDER_MARK, read_file
from notyet.errors import NotyetError
from notyet.hosts import DEFAULT, all_hosts, host_named
from notyet.hosts.faults import is_trusted
from notyet.install.edit import NotEditable, edited, read
from notyet.install.host_plugin import hooks_file
from notyet.install.layouts import Layout, drop, positions, value_at
from notyet.install.notyet_line import (
    is_notyets,
    is_notyets_hook,
    notyet_line,
    one_command,
    or_gone,
    portable_line,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
    from typing import Any, Literal, TypeAlias

    from notyet.config.document import Path
    from notyet.hosts.host import Host
    from notyet.install.change import Change
    from notyet.install.edit import Edit

    SettingsLevel: TypeAlias = Literal["user", "project", "local", "managed", "plugin"]
    Form: TypeAlias = Literal["json", "toml", "yaml", "plugin"]

HOOK_TIMEOUT = 1800  # seconds: a stage of gates may take 600, and there may be a few
START_TIMEOUT = 30  # seconds; a start only lists the gates for the agent
_FORMS: dict[str, Form] = {".toml": "toml", ".yaml": "yaml", ".js": "plugin", ".ts": "plugin"}
_OF_PLUGINS = Layout(host_named(DEFAULT))  # plugins are laid out as Claude Code's are
_EVERYTHING = (None, "", "*")  # matchers
# Keys that would keep our entry from being run, or from being waited for.
_HARMFUL = ("args", "if", "async", "asyncRewake", "once", "shell", "commandWindows")


class CannotInstall(NotyetError):  # noqa: N818  # named after what happened
    """A file, or a folder for one, cannot be changed as requested; nothing was written."""

    def __init__(self, why: str | Mistake) -> None:
        super().__init__(str(why))
        self.mistake = why if isinstance(why, Mistake) else None


@dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """A settings file that a host reads if it exists."""

    scope: SettingsLevel
    path: str
    form: Form = "json"

    def is_same_file(self, other: SettingsFile) -> bool:
        """Return True if both are one file, maybe through links."""
        return os.path.realpath(self.path) == os.path.realpath(other.path)

    def refusal(self, message: str, at: tuple[int, int] = (0, 0), hint: str = "") -> CannotInstall:
        """Return the error that refuses this file, for what stands at a line and column."""
        line, column = at
        return CannotInstall(
            Mistake(file=self.path, line=line, column=column, message=message, hint=hint)
        )


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What we register: at this event, run this command; the timeout is in the host's unit."""

    event: str
    command: str
    timeout: int

    def handler(self, host: Host) -> dict[str, Any]:
        """Return the entry as it stands in a settings file of this host."""
        values = {
            "{event}": self.event,
            "{command}": self.command,
            "{timeout}": self.timeout,
        }
        return {
            key: values.get(value, value) if isinstance(value, str) else value
            for key, value in host.handler.items()
        }


@dataclass(frozen=True, kw_only=True)
class Registration:
    """One entry of ours in a settings file, and its position there."""

    file: SettingsFile
    event: str
    path: Path
    command: str  # the whole line, with its arguments
    given_timeout: object = None  # as it stands there
    timeout: float | None = None  # seconds; None: not given, or not a number
    handler: dict[str, Any]  # as it stands there
    matcher: object = None
    usual_matcher: object = None  # of an entry that `install` writes
    is_main: bool = False  # at the stop of a main agent, where hosts ignore the matcher
    line: int = 0
    column: int = 0

    @property
    def position(self) -> tuple[int, ...]:
        """Its position in the list of its event, and in its group if it has one."""
        return positions(self.path)

    @property
    def where(self) -> str:
        """The entry's file, line and column."""
        return f"{self.file.path}:{self.line}:{self.column}"

    @property
    def is_hook(self) -> bool:
        """Whether `install` may have written it, so it may be replaced and removed."""
        return is_notyets_hook(self.command) and not self.is_plugin

    @property
    def is_mixed(self) -> bool:
        """Whether it calls our hook in a line that a person wrote."""
        line = notyet_line(self.command)
        return line is not None and line.verb == "hook" and not line.is_plain

    @property
    def is_plugin(self) -> bool:
        """Whether it is an entry of the plugin: `install` and `uninstall` leave it alone."""
        line = notyet_line(self.command)
        return line is not None and line.via == "plugin"

    @property
    def is_restricted(self) -> bool:
        """Whether its matcher restricts it to some agents or some starts."""
        return not self.is_main and self.matcher not in (*_EVERYTHING, self.usual_matcher)


def installable() -> tuple[str, ...]:
    """Return the names of the hosts that `notyet install` knows."""
    return tuple(host.name for host in all_hosts() if host.settings)


def settings_of(name: str) -> Settings:
    """Return the settings of a host. Raises KeyError."""
    host = host_named(name)
    if host.layout == "file":
        from notyet.install.plugin_file import PluginFile  # which imports this module

        return PluginFile(host)
    try:
        own = import_module(f"notyet.hosts.{name}.settings")
    except ModuleNotFoundError:
        return Settings(host)
    settings: Settings = own.Settings(host)
    return settings


class Settings:
    """The settings files of one host."""

    approve = ""  # how a person approves our hooks; such a host silently skips other hooks

    def __init__(self, host: Host) -> None:
        self.host = host
        self.name, self.title = host.name, host.title
        self.layout = Layout(host)
        self.events = (*host.stops, *host.starts)
        self.scopes: tuple[SettingsLevel, ...] = tuple(host.settings)  # type: ignore[arg-type]

    def files(self, cwd: str, environ: Mapping[str, str]) -> list[SettingsFile]:
        """Return every settings file that the host reads in a folder; they add up."""
        found = []
        user = self.user_folder(environ)
        for scope in self.scopes:
            folder, name = os.path.split(self.host.settings[scope])
            here = os.path.realpath(cwd)
            project = root_of(here) if self.host.looks_above else here
            base = user if scope == "user" else os.path.join(project, folder)
            if base:
                found.append(_file(scope, os.path.join(base, name)))
        return distinct(found)

    def all_files(self, cwd: str, environ: Mapping[str, str]) -> list[SettingsFile]:
        """Return the settings files, and that of the plugin if it is installed and on."""
        found = self.files(cwd, environ)
        path = hooks_file(self.host, [file.path for file in found], cwd, environ)
        return [*found, SettingsFile(scope="plugin", path=path)] if path else found

    def target(self, scope: SettingsLevel, cwd: str, environ: Mapping[str, str]) -> SettingsFile:
        """Return the file to write to. Raises CannotInstall."""
        if scope not in self.scopes:
            options = " or ".join(f"--{known}" for known in self.scopes)
            raise CannotInstall(f"{self.title} has no file for --{scope}; use {options}")
        user = self.user_folder(environ)
        folder, name = os.path.split(self.host.settings[scope])
        if scope == "user":
            if not user:
                raise CannotInstall(self._no_home(environ))
            return _file(scope, os.path.join(user, name))
        path = os.path.join(root_of(os.path.realpath(cwd)), folder, name)
        if scope == "project" and user and _is_in(path, user):
            raise CannotInstall(
                "this folder's settings are your own; use --user, or go to a project"
            )
        return _file(scope, path)

    def user_folder(self, environ: Mapping[str, str]) -> str:
        """Return the host's folder of the user; empty if there is none."""
        named = environ.get(self.host.home_variable, "") if self.host.home_variable else ""
        folders = os.path.dirname(self.host.settings["user"]).split(os.sep)
        depth = self.host.home_depth
        home = named or os.path.join(environ.get("HOME", ""), *folders[:depth])
        path = os.path.join(home, *folders[depth:])
        return path if os.path.isabs(path) else ""

    def _no_home(self, environ: Mapping[str, str]) -> str:
        variable = self.host.home_variable
        if variable and environ.get(variable):
            return (
                f"{variable} is not an absolute path, so it depends on where a host is started; "
                "make it one"
            )
        return f"there is no home folder; set HOME{f', or {variable}' if variable else ''}"

    def is_here(self, cwd: str, environ: Mapping[str, str]) -> bool:
        """Return True if this machine has the host's program, or the folder of its settings."""
        if shutil.which(self.host.program, path=environ.get("PATH")):
            return True
        try:
            file = self.target("user", cwd, environ)
        except CannotInstall:
            return False
        return os.path.isdir(os.path.dirname(file.path))

    def check(self, text: str, file: SettingsFile) -> None:
        """Refuse a file of which the host reads nothing. Raises CannotInstall."""

    def entries(self, start: str, seconds: int) -> tuple[Entry, ...]:
        """Return what to register; an empty `start`: the line that works on every machine."""
        made = []
        seconds = min(seconds, int(self.host.longest_timeout or seconds))
        for event in self.events:
            own = seconds if event in self.host.stops else min(seconds, START_TIMEOUT)
            rest = f"hook --host {self.name} --timeout {own}"
            command = portable_line(rest)
            if start and self.host.takes_one_command:
                command = one_command(f"{start} {rest}")
            elif start:
                command = or_gone(f"{start} {rest}", self.host)
            timeout = round(own / self.host.timeout_unit)
            made.append(Entry(event=event, command=command, timeout=timeout))
        return tuple(made)

    def text_with(self, text: str, file: SettingsFile, entries: Sequence[Entry]) -> str:
        """Return a file's text with exactly these entries of ours. Raises CannotInstall.

        The first entry of an event is changed where it stands, so its position stays; further
        ones, restricted ones and those under other events are removed.
        """
        self.check(text, file)
        document = read_settings(text, file)
        _check_doubles(document, file)
        wanted = {entry.event: entry.handler(self.host) for entry in entries}
        obstacle = self.layout.obstacle(document.value, wanted)
        if obstacle:
            raise _in_the_way(document, file, *obstacle)
        kept, others = kept_and_others(self.registrations(file, document), wanted)

        def edit(settings: MutableMapping[str, Any]) -> None:
            for key, value in self.host.beside.items():
                if key not in settings:
                    settings[key] = value
            for event, one in kept.items():
                handler = value_at(settings, one.path)
                for key in _HARMFUL:
                    handler.pop(key, None)
                handler.update(wanted[event])
            for event, handler in wanted.items():
                if event not in kept:
                    self.layout.add(settings, event, dict(handler))
            drop(settings, [one.path for one in others])

        return edited_settings(text, file, edit)

    def text_without(self, text: str, file: SettingsFile) -> str:
        """Return a file's text without our entries. Raises CannotInstall."""
        ours = [one for one in self.registrations(file, read_settings(text, file)) if one.is_hook]
        return edited_settings(text, file, lambda settings: drop(settings, [o.path for o in ours]))

    def registrations(self, file: SettingsFile, document: Document) -> list[Registration]:
        """Return our entries in a file, in their order."""
        found = []
        layout = _OF_PLUGINS if file.scope == "plugin" else self.layout
        for place in layout.places(document.value):
            handler, event = place.handler, self._event(place.event, file)
            command, arguments = handler.get(layout.command_key), handler.get("args")
            if not isinstance(command, str) or not isinstance(arguments, list | None):
                continue
            if any(not isinstance(word, str) for word in arguments or ()):
                continue
            line = self._command(command, arguments)
            if not is_notyets(line) or self._is_others(event, line):
                continue
            timeout = handler.get(layout.timeout_key)
            number, column = document.locate(place.path)
            found.append(
                Registration(
                    file=file,
                    event=event,
                    path=place.path,
                    command=line,
                    given_timeout=timeout,
                    timeout=self._seconds(timeout),
                    handler=handler,
                    matcher=place.group.get("matcher"),
                    usual_matcher=self.host.matchers.get(event),
                    is_main=self.host.stops.get(event) == "agent",
                    line=number,
                    column=column,
                )
            )
        return found

    def _event(self, name: str, file: SettingsFile) -> str:
        """Return the host's name of an event; a plugin has Claude Code's names for all hosts."""
        usual = host_named(DEFAULT)
        scope = usual.stops.get(name) or usual.starts.get(name)
        if file.scope != "plugin" or name in self.events or scope is None:
            return name
        is_stop = name in usual.stops
        own = self.host.event_name(scope) if is_stop else self.host.start_name(scope)
        known = self.host.stops if is_stop else self.host.starts
        return own if known.get(own) == scope else name

    def _is_others(self, event: str, command: str) -> bool:
        """Return True for an entry of the plugin that is there for other hosts."""
        line = notyet_line(command)
        return line is not None and line.via == "plugin" and event not in self.events

    def _command(self, command: str, arguments: list[str] | None) -> str:
        return shlex.join([command, *arguments]) if arguments is not None else command

    def _seconds(self, timeout: object) -> float | None:
        if not isinstance(timeout, int | float) or isinstance(timeout, bool):
            return None
        unit = 1.0 if timeout < self.host.seconds_below else self.host.timeout_unit
        return timeout * unit

    def found(
        self, cwd: str, environ: Mapping[str, str]
    ) -> tuple[list[Registration], list[Mistake]]:
        """Return our entries in all files that the host reads, and what is wrong with files."""
        return self.found_in(self.all_files(cwd, environ))

    def found_in(self, files: Iterable[SettingsFile]) -> tuple[list[Registration], list[Mistake]]:
        """Return our entries in these files, and what is wrong with unreadable ones."""
        ours: list[Registration] = []
        mistakes: list[Mistake] = []
        for file in files:
            if not os.path.lexists(file.path):
                continue
            text, mistake = read_file(file.path)
            if text is None:
                mistakes.append(mistake or Mistake(file=file.path, message="it cannot be read"))
            elif not _is_blank(text):
                try:
                    ours += self.registrations(file, read(text, file.form))
                except BadSyntax as error:
                    mistakes.append(mistake_of(file, error))
        return ours, mistakes

    def running(self, cwd: str, environ: Mapping[str, str]) -> list[Registration]:
        """Return our entries that the host runs and waits for, without those of the plugin.

        Switches and trust in folders are not looked at: they hold for the plugin, too.
        """
        found = []
        for file in self.files(cwd, environ):
            entries = [one for one in self.found_in([file])[0] if self._is_run(one)]
            if entries and self._are_approved(file, environ):
                found += entries
        return found

    def _is_run(self, one: Registration) -> bool:
        line = notyet_line(one.command)
        is_waited_for = not one.handler.get("async") and not one.handler.get("if")
        is_there = line is None or not line.launcher or os.path.isfile(line.launcher)
        return is_waited_for and is_there and not one.is_plugin

    def _are_approved(self, file: SettingsFile, environ: Mapping[str, str]) -> bool:
        """Return True if the host needs no approval of our entries in a file, or has it."""
        try:
            change = self.approval(file, settings_text(file) or "", environ)
        except CannotInstall:
            return False
        return change is None or change.is_empty

    def approval(self, file: SettingsFile, text: str, environ: Mapping[str, str]) -> Change | None:
        """Return the change that makes the host trust our entries of this text; None: no trust.

        Raises CannotInstall.
        """
        del file, text, environ
        return None

    def trust_update(
        self, file: SettingsFile, before: str, after: str, environ: Mapping[str, str]
    ) -> Change | None:
        """Return the change that keeps trust right when a text changes. Raises CannotInstall."""
        del file, before, after, environ
        return None

    def advice(self, file: SettingsFile, cwd: str) -> list[str]:
        """Return what a person still has to do after an installation."""
        lines = []
        folder, _ = os.path.split(self.host.settings[file.scope])
        root = file.path.removesuffix(os.path.join("/", folder, os.path.basename(file.path)))
        is_elsewhere = file.scope != "user" and root != os.path.realpath(cwd)
        is_elsewhere = is_elsewhere and not self.host.looks_above
        if is_elsewhere:
            lines.append(
                f"start {self.host.program} in {root}: it does not look for settings above its "
                "folder"
            )
        if file.scope == "project":
            lines.append(f"commit {file.path}, for your whole team")
        trust = self.host.folder_trust
        there = root if is_elsewhere else cwd
        if trust and file.scope != "user" and not is_trusted(self.host, there, os.environ):
            how = f"in {root}: {trust.how}" if is_elsewhere else trust.how
            lines.append(f"{how}; until then {self.title} silently skips hooks here")
        return lines


def kept_and_others(
    ours: Iterable[Registration], events: Collection[str]
) -> tuple[dict[str, Registration], list[Registration]]:
    """Return the entries that `install` keeps, by event, and those of ours that it removes."""
    kept: dict[str, Registration] = {}
    others = []
    for one in ours:
        if not one.is_hook:
            continue
        if one.event in events and one.event not in kept and not one.is_restricted:
            kept[one.event] = one
        else:
            others.append(one)
    return kept, others


def edited_settings(text: str, file: SettingsFile, edit: Edit) -> str:
    """Return a file's text after an edit of its hooks. Raises CannotInstall."""
    try:
        return edited(text, file.form, edit)
    except NotEditable:
        message = "it is written in a way that cannot be changed without risk"
        hint = (
            "add or remove the hooks yourself; `--dry-run` of a new file shows what they look like"
        )
        raise file.refusal(message, hint=hint) from None


def read_settings(text: str, file: SettingsFile) -> Document:
    """Read a file's text; an empty one has no settings. Raises CannotInstall."""
    if _is_blank(text):
        return Document(value={})
    try:
        document = read(text, file.form)
    except BadSyntax as error:
        raise CannotInstall(mistake_of(file, error)) from None
    if not isinstance(document.value, dict):
        kind = "null" if document.value is None else type(document.value).__name__
        message = f"expected a table, not {kind}"
        raise file.refusal(message, (1, 1))
    return document


def settings_text(file: SettingsFile) -> str | None:
    """Return a file's text; None if there is no file. Raises CannotInstall."""
    if not os.path.lexists(file.path):
        return None
    is_broken_link = os.path.islink(file.path) and not os.path.exists(file.path)
    if is_broken_link and not os.path.islink(os.path.realpath(file.path)):  # no loop of links
        return None
    text, mistake = read_file(file.path)
    if mistake is not None:
        raise CannotInstall(mistake)
    return text


def mistake_of(file: SettingsFile, error: BadSyntax) -> Mistake:
    """Return a syntax error as a mistake of this file."""
    return Mistake(
        file=file.path,
        line=error.line,
        column=error.column,
        message=error.message,
        hint=error.hint,
    )


def check_tables(document: Document, file: SettingsFile, path: Path) -> None:
    """Refuse a file in which something on this path is not a table. Raises CannotInstall."""
    value = document.value
    for at, key in enumerate(path, 1):
        if key not in value:
            return
        value = value[key]
        if not isinstance(value, dict):
            raise _in_the_way(document, file, path[:at], "a table")


def _file(scope: SettingsLevel, path: str) -> SettingsFile:
    form = _FORMS.get(os.path.splitext(path)[1], "json")
    return SettingsFile(scope=scope, path=path, form=form)


def _check_doubles(document: Document, file: SettingsFile) -> None:
    """Refuse a file in which hooks are written twice: an edit would lose some of them."""
    for twice in document.findings:
        if twice.message.startswith("`hooks"):
            raise file.refusal(twice.message, (twice.line, twice.column), twice.hint)


def distinct(files: list[SettingsFile]) -> list[SettingsFile]:
    """Return the files without a second mention of a file, as in a project that is the home."""
    first: dict[str, SettingsFile] = {}
    for file in files:
        first.setdefault(os.path.realpath(file.path), file)
    return list(first.values())


def _in_the_way(document: Document, file: SettingsFile, path: Path, wanted: str) -> CannotInstall:
    message = f"{name_of(path)} is not {wanted}, so nothing can be added to it"
    return file.refusal(message, document.locate(path), "correct that first")


def _is_in(path: str, folder: str) -> bool:
    return os.path.dirname(os.path.realpath(path)) == os.path.realpath(folder)


def _is_blank(text: str) -> bool:
    return not text.strip(f"{BYTE_ORDER_MARK} \t\r\n")
