"""What people trusted: for each file its text as it was then, and what that text compiles to.

Trust and compiled form are one record, so a hook parses neither TOML nor YAML: it reads a file,
compares it with the record, and takes the compiled gates. Records lie in the XDG state folder,
under the path of the file they are about.
"""

from __future__ import annotations

from errno import EFBIG, EINVAL, ENOENT

from notyet import system
from notyet.core.json_text import dumps, loads
from notyet.core.record import Record
from notyet.core.remote import is_remote, remote_from

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MOST_BYTES = 4 * 1024 * 1024  # of a configuration file
_KIND, _REGULAR = 0o170000, 0o100000  # S_IFMT and S_IFREG, without importing stat
_MOST_RECORD = 64 * 1024 * 1024


class Trusted(Record, kw_only=True):
    """One record: a file as it was trusted."""

    path: str
    content: str
    compiled: Mapping[str, Any]
    at: float = 0.0  # when a person trusted it; 0: the user's own file, which needs no trust
    folder: str = ""  # tells the file's folder from another that took its name


def state_folder(environ: Mapping[str, str]) -> str:
    """Return our folder below the XDG state folder; empty where there is no home."""
    from notyet.ledger.place import state_home

    home = state_home(environ)
    return system.path.join(home, "notyet") if home else ""


def text_of(path: str) -> str:
    """Return a file's text, whatever bytes it holds. Raises OSError."""
    # Not blocking, because opening a pipe that nobody writes to would wait for ever.
    descriptor = system.open(path, system.O_RDONLY | system.O_NONBLOCK | system.O_CLOEXEC)
    try:
        if not _is_regular(descriptor):
            raise OSError(EINVAL, "it is not a regular file", path)
        content = b""
        while len(content) <= MOST_BYTES:
            part = system.read(descriptor, MOST_BYTES + 1)
            if not part:
                return content.decode("utf-8", "surrogateescape")
            content += part
    finally:
        system.close(descriptor)
    raise OSError(EFBIG, f"it is larger than {MOST_BYTES // 1024 // 1024} MB", path)


def _is_regular(descriptor: int) -> bool:
    return system.fstat(descriptor).st_mode & _KIND == _REGULAR


def about_folder(path: str) -> str:
    """Return the folder whose identity counts for a file."""
    folder = system.path.dirname(path)
    # .mux and the like come and go with branches.
    return system.path.dirname(folder) if system.path.basename(folder).startswith(".") else folder


def folder_id(path: str) -> str:
    """Return what tells a file's folder from another that took its name; empty when it is gone."""
    try:
        return str(
            system.stat(about_folder(path)).st_ino
        )  # without the device, which a remount changes
    except OSError:
        return ""


def record_path(state: str, path: str) -> str:
    """Return where the record about a file lies; no path here is taken for one elsewhere."""
    if is_remote(path):
        place = remote_from(path)
        machine = place.machine.replace("//", "")  # ssh:dev@box, so that no host is named ".."
        return system.path.join(state, "trust-there", machine, place.path.lstrip("/")) + ".json"
    return system.path.join(state, "trust", path.lstrip("/")) + ".json"


def has_record(state: str, path: str) -> bool:
    """Tell whether there is a record about a file, which need not be there itself.

    Nobody without a home trusted anything: what lies in the folder they are in is not theirs.
    """
    return bool(state) and system.path.exists(record_path(state, path))


def read_record(state: str, path: str) -> Trusted | None:
    """Return the record about a file; None when there is none that can be read."""
    if not state:
        return None
    try:
        with open(record_path(state, path), "rb") as file:
            record = loads(file.read(_MOST_RECORD).decode("ascii", "replace"))
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
    fields = {name: record.__dict__[name] for name in record._fields}
    write_private(record_path(state, record.path), dumps(fields))


def write_private(path: str, text: str) -> None:
    """Write a file of our own whole or not at all, for nobody else to read. Raises OSError."""
    from notyet.ledger.place import make_private

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
