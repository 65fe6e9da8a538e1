"""What people trusted: for each file its text as it was then, and what that text compiles to.

Trust and compiled form are one record, so a hook parses neither TOML nor YAML: it reads a file,
compares it with the record, and takes the compiled gates. Records lie in the XDG state folder,
under the path of the file they are about. `notyet.config.unchanged` reads them at most stops.
"""

from __future__ import annotations

from errno import ENOENT

from notyet import system
from notyet.config.places import has_record, record_path, state_folder
from notyet.config.tree import text_of
from notyet.config.unchanged import GATES, MOST_RECORD, NEXT
from notyet.core.gate import Match
from notyet.core.json_text import dumps, loads
from notyet.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = (
    "Trusted",
    "about_folder",
    "folder_id",
    "has_record",
    "read_record",
    "record_path",
    "remove_record",
    "state_folder",
    "write_private",
    "write_record",
)


class Trusted(Record, kw_only=True):
    """One record: a file as it was trusted."""

    path: str
    content: str
    compiled: Mapping[str, Any]
    at: float = 0.0  # when a person trusted it; 0: the user's own file, which needs no trust
    folder: str = ""  # tells the file's folder from another that took its name


def about_folder(path: str) -> str:
    """Return the folder whose identity counts for a file."""
    folder = system.path.dirname(path)
    # .mux and the like come and go with branches.
    return system.path.dirname(folder) if system.path.basename(folder).startswith(".") else folder


def folder_id(path: str) -> str:
    """Return what tells a file's folder from another that took its name; empty when it is gone."""
    try:
        # Without the device, which a remount changes.
        return str(system.stat(about_folder(path)).st_ino)
    except OSError:
        return ""


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
    from notyet.ledger.private import make_private

    beside = f"{path}.{system.getpid()}"
    try:
        make_private(beside)
        with open(beside, "wb") as file:
            file.write(text.encode())
            file.flush()
            system.fsync(file.fileno())
        system.replace(beside, path)
    except BaseException:
        if system.path.exists(beside):  # else it was put into its place just before
            system.unlink(beside)
        raise


def remove_record(state: str, path: str) -> bool:
    """Forget a file; False when nothing was known of it."""
    if not state:
        return False
    try:
        system.unlink(record_path(state, path))
    except FileNotFoundError:
        return False
    return True
