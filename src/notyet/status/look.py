"""What there is of one host, seen from one folder: its program, its settings and our entries."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from notyet.config.document import BadSyntax, Document, Mistake
from notyet.config.readers import read_file, read_json, read_toml
from notyet.core.text import clean, first_line, visible
from notyet.install.own_line import own_line
from notyet.install.settings import mistake_of, settings_of
from notyet.run.spawn import Job
from notyet.run.stage import run_together
from notyet.status.fault import Fault, fault, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from notyet.hosts.host import Host
    from notyet.install.settings import Place, Registration

VERSION_TIMEOUT = 10.0  # seconds for `--version`, which takes less than one
DEFAULT_TIMEOUT = 1800.0  # seconds that `notyet install` registers
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9}){1,3}")


@dataclass(frozen=True, kw_only=True)
class Content:
    """A settings file: what it says, or in `mistake` why that is unknown."""

    place: Place
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
        return place(self.place.path, *at)


def read_settings(where: Place) -> Content:
    """Read a settings file."""
    if not os.path.lexists(where.path):
        return Content(place=where)
    text, mistake = read_file(where.path)
    if text is None:
        return Content(place=where, mistake=mistake)
    if not text.strip("\ufeff \t\r\n"):
        return Content(place=where, document=Document(value={}))
    try:
        document = (read_toml if where.form == "toml" else read_json)(text)
    except BadSyntax as error:
        return Content(place=where, mistake=mistake_of(where, error))
    if not isinstance(document.value, dict):
        message = f"it holds a {type(document.value).__name__}, not an object"
        return Content(place=where, mistake=Mistake(file=where.path, message=message))
    return Content(place=where, document=document)


@dataclass(frozen=True, kw_only=True)
class Look:
    """One host, seen from one folder."""

    host: Host
    cwd: str
    environ: Mapping[str, str]
    program: str = ""  # empty: not on the PATH
    version: str = ""
    version_problem: str = ""
    contents: tuple[Content, ...] = ()
    entries: tuple[Registration, ...] = ()  # ours
    added: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # variables of the settings

    @property
    def hook_environ(self) -> dict[str, str]:
        """The environment of the host's hooks."""
        return {**self.environ, **{name: value for name, (value, _) in self.added.items()}}

    @property
    def has_settings(self) -> bool:
        """Whether the host left a settings folder for this user or machine."""
        return any(
            os.path.isdir(os.path.dirname(content.place.path))
            for content in self.contents
            if content.place.scope in {"user", "managed"}
        )

    def missing(self, events: Iterable[str]) -> list[str]:
        """Return those of these events at which no entry of ours runs."""
        return [event for event in events if all(entry.event != event for entry in self.entries)]

    def fault(self, code: str, what: str, *, where: str = "", fix: str = "") -> Fault:
        """Return a fault of this host."""
        return fault(code, what, host=self.host.name, where=where, fix=fix)

    def entry_fault(self, code: str, entry: Registration, what: str, fix: str = "") -> Fault:
        """Return a fault of one entry of ours."""
        found = self.fault(code, what, where=entry.where, fix=fix or self.install_again(entry))
        return replace(found, events=(entry.event,))

    def install_again(self, entry: Registration, timeout: str = "") -> str:
        """Return the command that writes an entry anew, in its place and with its timeout."""
        if entry.place.scope == "managed":
            return f"ask the administrator of this machine to correct {visible(entry.place.path)}"
        line = own_line(entry.command)
        seconds = line.timeout if line is not None and entry.event in self.host.stops else None
        if not timeout and seconds and seconds != DEFAULT_TIMEOUT:
            timeout = f"{seconds:g}"
        scope = "" if entry.place.scope == "user" else f" --{entry.place.scope}"
        option = f" --timeout {timeout}" if timeout else ""
        install = f"run: notyet install {self.host.name}{scope}{option}"
        if line is None or line.is_plain:
            return install
        return f"take `notyet hook ...` out of {entry.where} yourself, and {install}"


def look_around(host: Host, cwd: str, environ: Mapping[str, str]) -> Look:
    """Read a host's settings and find its program; ask it for its version."""
    settings = settings_of(host.name)
    places = settings.places(cwd, environ)
    contents = tuple(read_settings(where) for where in places)
    entries = [
        entry
        for content in contents
        if content.document is not None
        for entry in settings.registrations(content.place, content.document)
    ]
    program = shutil.which(host.program, path=environ.get("PATH", "")) or ""
    version, problem = version_of(program, environ) if program else ("", "")
    return Look(
        host=host,
        cwd=cwd,
        environ=environ,
        program=program,
        version=version,
        version_problem=problem,
        contents=contents,
        entries=tuple(entries),
    )


def version_of(program: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the version that a program prints, or why it prints none."""
    job = Job(argv=(program, "--version"), dir="/", environ=environ, timeout=VERSION_TIMEOUT)
    (done,) = run_together([job])
    if done.problem:
        return "", done.problem
    if done.timed_out:
        return "", f"it did not answer within {VERSION_TIMEOUT:g} s"
    said = clean(done.stdout.decode("utf-8", "replace"))
    if done.code != 0:
        why = first_line(clean(done.stderr.decode("utf-8", "replace")) or said)
        ended = f"exit code {done.code}" if done.code is not None else f"signal {done.signal}"
        return "", f"it ended with {ended}" + (f": {why}" if why else "")
    number = _NUMBER.search(said)
    return (number[0], "") if number is not None else ("", "it did not name a version")
