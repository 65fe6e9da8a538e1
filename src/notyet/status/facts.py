"""Gather what there is of one host, seen from one folder: its program, settings and our entries."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from notyet.config.readers import read_file
from notyet.core.text import clean, visible
from notyet.hosts.faults import checks_of
from notyet.install.notyet_line import notyet_line
from notyet.install.settings import HOOK_TIMEOUT, CannotInstall, read_settings, settings_of
from notyet.run.command_runner import run_together
from notyet.run.spawn import Job
from notyet.status.fault import Fault, fault, location

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from notyet.config.document import Document, Mistake
    from notyet.hosts.host import Host
    from notyet.install.settings import Registration, Settings, SettingsFile

VERSION_TIMEOUT = 10.0  # seconds for `--version`, which takes less than one
_NUMBER = re.compile(r"(?:(?<![\w.])|(?<=\bv))\d{1,9}(?:\.\d{1,9}){1,3}")


@dataclass(frozen=True, kw_only=True)
class SettingsContent:
    """A settings file: what it says, or in `mistake` why the host reads nothing of it."""

    file: SettingsFile
    document: Document | None = None  # None: there is no such file, or it cannot be read
    mistake: Mistake | None = None

    def get(self, *path: str) -> Any:
        """Return the value under these keys; None if there is none."""
        value: Any = self.document.value if self.document is not None else None
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def where(self, *path: str | int) -> str:
        """Return the place of a key."""
        at = self.document.locate(path) if self.document is not None and path else ()
        return location(self.file.path, *at)


@dataclass(frozen=True, kw_only=True)
class HostFacts:
    """One host, seen from one folder."""

    host: Host
    cwd: str
    environ: Mapping[str, str]
    program: str = ""  # empty: not on the PATH
    version: str = ""  # empty: unknown
    files: tuple[SettingsContent, ...] = ()
    entries: tuple[Registration, ...] = ()  # ours
    # Variables that the settings add for hooks: the value, and the place.
    variables: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def hook_environ(self) -> dict[str, str]:
        """The environment of the host's hooks."""
        return {**self.environ, **{name: value for name, (value, _) in self.variables.items()}}

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine: its program, a settings folder or our entries."""
        folders = [
            os.path.dirname(content.file.path)
            for content in self.files
            if content.file.scope in {"user", "managed"}
        ]
        return bool(self.program or self.entries) or any(map(os.path.isdir, folders))

    def missing(self, events: Iterable[str]) -> list[str]:
        """Return those of these events at which no entry of ours runs."""
        return [event for event in events if all(entry.event != event for entry in self.entries)]

    def fault(self, code: str, what: str, **fields: str) -> Fault:
        """Return a fault of this host."""
        return fault(code, what, host=self.host.name, **fields)

    def entry_fault(
        self, code: str, entry: Registration, what: str, fix: str = "", level: str = ""
    ) -> Fault:
        """Return a fault of one entry of ours."""
        fix = fix or self.install_again(entry)
        found = self.fault(code, what, where=entry.where, fix=fix, level=level)
        return replace(found, events=(entry.event,))

    def install_again(self, entry: Registration, timeout: str = "") -> str:
        """Return the command that writes an entry anew, in its place and with its timeout."""
        if entry.file.scope == "managed":
            return f"ask the administrator of this machine to correct {visible(entry.file.path)}"
        if entry.is_plugin:
            longer = f"run: notyet install {self.host.name} --user --timeout {timeout}"
            return longer if timeout else f"update the plugin notyet in {self.host.title}"
        line = notyet_line(entry.command)
        seconds = line.timeout if line is not None and entry.event in self.host.stops else None
        if not timeout and seconds and seconds != HOOK_TIMEOUT:
            timeout = f"{seconds:g}"
        scope = "" if entry.file.scope == "user" else f" --{entry.file.scope}"
        option = f" --timeout {timeout}" if timeout else ""
        install = f"run: notyet install {self.host.name}{scope}{option}"
        if line is None or line.is_plain:
            return install
        return f"take `notyet hook ...` out of {entry.where} yourself, and {install}"


def gather(host: Host, cwd: str, environ: Mapping[str, str]) -> HostFacts:
    """Read a host's settings, find its program, and run that for its version."""
    settings = settings_of(host.name)
    files = tuple(_read(settings, where) for where in settings.all_files(cwd, environ))
    entries = [
        entry
        for content in files
        if content.document is not None
        for entry in settings.registrations(content.file, content.document)
    ]
    program = shutil.which(host.program, path=environ.get("PATH", "")) or ""
    return HostFacts(
        host=host,
        cwd=cwd,
        environ=environ,
        program=program,
        version=_version(program, environ) if program else "",
        files=files,
        entries=tuple(entries),
        variables=checks_of(host.name).variables(files),
    )


def _read(settings: Settings, where: SettingsFile) -> SettingsContent:
    """Read a settings file as the host does: one that it ignores as a whole says nothing."""
    if not os.path.lexists(where.path):
        return SettingsContent(file=where)
    text, mistake = read_file(where.path)
    if text is None:
        return SettingsContent(file=where, mistake=mistake)
    try:
        settings.check(text, where)
        return SettingsContent(file=where, document=read_settings(text, where))
    except CannotInstall as error:
        return SettingsContent(file=where, mistake=error.mistake)


def _version(program: str, environ: Mapping[str, str]) -> str:
    """Return the version that a program prints; empty if it prints none."""
    job = Job(argv=(program, "--version"), dir="/", environ=environ, timeout=VERSION_TIMEOUT)
    (done,) = run_together([job])
    printed = clean(done.stdout.decode("utf-8", "replace")) if done.code == 0 else ""
    number = _NUMBER.search(printed)
    return number[0] if number is not None else ""
