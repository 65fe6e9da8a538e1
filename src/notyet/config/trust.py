"""Which files are the user's own, so that they count without being trusted first."""

from __future__ import annotations

import time
from errno import ENOENT

from notyet import light
from notyet.config.compile import compile_text, freeze
from notyet.config.find import has_record, record_path, state_folder, text_of
from notyet.config.trusted import GATES, MOST_RECORD, NEXT
from notyet.core.gate import Match
from notyet.core.record import Record
from notyet.light import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.files import ConfigFile
    from notyet.config.settings import Settings

__all__ = [
    "Trusted",
    "has_record",
    "read_record",
    "record_path",
    "remove_record",
    "state_folder",
    "write_private",
    "write_record",
]

# What people trusted: for each file its text as it was then, and what that text compiles to.
#
# Trust and compiled form are one record, so a hook parses neither TOML nor YAML: it reads a file,
# compares it with the record, and takes the compiled gates. Records lie in the XDG state folder,
# under the path of the file they are about. `notyet.config.trusted` reads them at most stops.


class Trusted(Record, kw_only=True):
    """One record: a file as it was trusted."""

    path: str
    content: str
    compiled: Mapping[str, Any]
    at: float = 0.0  # when a person trusted it; 0: the user's own file, which needs no trust
    folder: str = ""  # tells the file's folder from another that took its name


def read_record(state: str, path: str) -> Trusted | None:
    """Return the record about a file; None when there is none that can be read."""
    if not state:
        return None
    try:
        record = loads(text_of(record_path(state, path), MOST_RECORD))
        content, compiled, at = record["content"], record["compiled"], record["at"]
        is_sound = isinstance(content, str) and isinstance(compiled, dict)
        if record["path"] != path or not is_sound or not isinstance(at, int | float):
            return None
        folder = str(record.get("folder", ""))
        return Trusted(path=path, content=content, compiled=compiled, at=at, folder=folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(state: str, record: Trusted) -> None:
    """Write a record, so that a reader sees the old one or the new one. Raises OSError."""
    if not state:
        raise OSError(ENOENT, "there is no home folder to remember it in; set XDG_STATE_HOME")
    write_private(record_path(state, record.path), laid_out(record))


def laid_out(record: Trusted) -> str:
    """Return a record as JSON, on the lines on which `unchanged` looks for its parts."""
    settings = dict(record.compiled)
    runs: list[tuple[list[str], list[str]]] = []
    for gate in settings.pop("gates", ()):
        scopes = list(gate.get("match", {}).get("events", Match().events))
        if not runs or runs[-1][0] != scopes:
            runs.append((scopes, []))
        runs[-1][1].append(dumps(gate))
    about = {name: record.__dict__[name] for name in ("path", "at", "folder")}
    lines = [
        dumps(about | {"runs": [scopes for scopes, _ in runs]})[:-1] + ', "content": ',
        dumps(record.content),
        f'{NEXT}"compiled": {dumps(settings)[:-1]}',
        *((NEXT if place else GATES) + ", ".join(gates) for place, (_, gates) in enumerate(runs)),
        "]}}" if runs else "}}",
    ]
    return "\n".join(lines)


def write_private(path: str, text: str) -> None:
    """Write a file of our own whole or not at all, for nobody else to read. Raises OSError."""
    from notyet.ledger.file import make_private

    beside = f"{path}.{light.getpid()}"
    try:
        make_private(beside)
        with open(beside, "wb") as file:
            file.write(text.encode())
            file.flush()
            light.fsync(file.fileno())
        light.replace(beside, path)
    except BaseException:
        if light.exists(beside):  # else it was put into its place just before
            light.unlink(beside)
        raise


def remove_record(state: str, path: str) -> bool:
    """Forget a file; False when nothing was known of it."""
    if not state:
        return False
    try:
        light.unlink(record_path(state, path))
    except FileNotFoundError:
        return False
    return True


class Candidate(Record, kw_only=True):
    """A file that could be trusted: what it says now, and what was trusted before."""

    file: ConfigFile
    text: str
    settings: Settings
    before: Trusted | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether this very text was trusted."""
        return self.before is not None and self.before.content == self.text

    @property
    def is_outdated(self) -> bool:
        """Whether the trusted text means something else by now: it names OpenClaw's file, say."""
        if self.before is None or not self.is_trusted:
            return False
        return bool(self.before.compiled != loads(dumps(freeze(self.settings))))


def candidate(file: ConfigFile, environ: Mapping[str, str]) -> Candidate:
    """Read a file that a person may want to trust. Raises OSError."""
    text = file.tree.text_of(file.path)
    return Candidate(
        file=file,
        text=text,
        settings=compile_text(text, file.path, file.kind, file.tree),
        before=read_record(state_folder(environ), file.path),
    )


def hosts_read(file: ConfigFile, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts whose files a file wants to be read; none where nobody can tell."""
    try:
        return () if file.is_gone else candidate(file, environ).settings.read_hosts
    except OSError:
        return ()


def grant(chosen: Candidate, environ: Mapping[str, str]) -> None:
    """Put the text that was read into force, not what the file may say by now. Raises OSError."""
    record = Trusted(
        path=chosen.file.path,
        content=chosen.text,
        compiled=freeze(chosen.settings),
        at=time.time(),
        folder=chosen.file.tree.folder_id(chosen.file.path),
    )
    write_record(state_folder(environ), record)
