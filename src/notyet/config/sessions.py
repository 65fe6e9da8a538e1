"""Session notes: where a session was started, so that its agent cannot leave its gates behind.

Some hosts name their project in a variable. For the others a small file in the state folder holds
the folder that a session was started in, and the places about which its user was told. It is a
cache: a note that is lost costs no more than the gates of a folder that the agent has left.
"""

from __future__ import annotations

from notyet import light
from notyet.config.find import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from notyet.config.load import Setup

_UNTOLD = ".untold"
_MOST_BYTES = 64 * 1024
_LONGEST_NAME = 100
_OLDEST = 30 * 86_400.0  # seconds
_MOST_PRUNED = 500  # notes that are looked at when a session starts


def started_in(environ: Mapping[str, str], host: str, session: object) -> str:
    """Return the folder that a session was started in; empty if there is no note of it."""
    folder = _read(_path(environ, host, session))[0]
    return folder if light.isabs(folder) else ""


def note_start(environ: Mapping[str, str], host: str, session: str, folder: str) -> None:
    """Write down the folder that a session was started in, unless there is a note. Raises OSError.

    Only the first start of a session counts.
    """
    path = _path(environ, host, session)
    if path and light.isabs(folder) and not _read(path)[0]:
        _write(path, [folder])


def is_first_time(environ: Mapping[str, str], host: str, session: str, place: str) -> bool:
    """Return True if the user of a session was not told about a place, and note it. Raises OSError.

    Without a note to keep that in, every time is the first one.
    """
    path = _path(environ, host, session)
    start, *told = _read(path)
    if place in told:
        return False
    if path:
        _write(path, [start, *told, place])
    return True


def mark_untold(environ: Mapping[str, str], host: str, session: str) -> None:
    """Mark that a subagent of a session did not pass (N3). Raises OSError."""
    path = _path(environ, host, session)
    if path:
        _write(path + _UNTOLD, [""])


def has_untold(environ: Mapping[str, str], host: str, session: str) -> bool:
    """Return True if a subagent of a session did not pass, and its user may not know it.

    Without this mark every stop of a main agent without gates would have to open the ledger.
    """
    path = _path(environ, host, session)
    return bool(path) and light.exists(path + _UNTOLD)


def forget_untold(environ: Mapping[str, str], host: str, session: str) -> None:
    """Remove the mark, once the user is told."""
    try:
        light.unlink(_path(environ, host, session) + _UNTOLD)
    except OSError:  # another stop did, or the next one looks into the ledger in vain
        return


def with_note(
    setup: Setup, environ: Mapping[str, str], host: str, session: str, folder: str
) -> Setup:
    """Note where a session was started; tell its user once that the agent left. Raises OSError."""
    if folder:
        note_start(environ, host, session, folder)
    if not setup.left or not is_first_time(environ, host, session, setup.left[1]):
        return setup
    from notyet.core.record import replace
    from notyet.core.text import visible

    started_in, works_in = map(visible, setup.left)
    line = f"works in {works_in}, was started in {started_in}: "
    line += "only the former is checked" if setup.is_left_unchecked else "the gates of both run"
    return replace(setup, warnings=(*setup.warnings, f"the agent {line}"))


def prune(environ: Mapping[str, str], now: float) -> None:
    """Delete some of the notes that are too old. Raises OSError."""
    folder = light.join(state_folder(environ), "sessions")
    with light.scandir(folder) as entries:
        for entry, _ in zip(entries, range(_MOST_PRUNED), strict=False):
            if entry.stat(follow_symlinks=False).st_mtime < now - _OLDEST:
                light.unlink(entry.path)


def _path(environ: Mapping[str, str], host: str, session: object) -> str:
    """Return the path of a note; empty if it can have none."""
    state = state_folder(environ)
    if not state or not isinstance(session, str) or not session.strip():
        return ""
    name = f"{host}-{session}"
    # Most ids are names that a file can have; a digest would load one module more.
    if len(name) > _LONGEST_NAME or not name.isascii() or not name.replace("-", "").isalnum():
        from notyet.core.gate import digest_of

        name = f"{host}.{digest_of(session)}"
    return f"{state}/sessions/{name}"


def _read(path: str) -> list[str]:
    """Return the lines of a note; one empty line without a note."""
    if not path:
        return [""]
    try:
        descriptor = light.open(path, light.O_RDONLY | light.O_NONBLOCK | light.O_CLOEXEC)
    except OSError:
        return [""]
    try:
        return light.fsdecode(light.read(descriptor, _MOST_BYTES)).split("\0")
    except OSError:
        return [""]
    finally:
        light.close(descriptor)


def _write(path: str, lines: list[str]) -> None:
    from notyet.config.compiled import write_private

    write_private(path, light.fsencode("\0".join(lines)), is_lasting=False)
