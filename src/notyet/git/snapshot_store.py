"""Where snapshots are kept: one for each agent and repository, from the agent's first start.

A snapshot that could not be taken leaves a note that says why. Both are folders that are renamed
into place once they are finished, so of two processes one wins, and a later start changes nothing.
"""

from __future__ import annotations

from time import time

from notyet import light
from notyet.core.record import replace
from notyet.git.fingerprint import blake2b  # type: ignore[attr-defined]  # not of ours
from notyet.git.repository import read_small_file, repository_of
from notyet.git.run import ODD, Unknown
from notyet.git.snapshot import OBJECTS, Snapshot, remove, take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NO_SNAPSHOT = "no snapshot was taken when the session began"
_RECORD, _NOTE = "snapshot.json", "unknown"
_UNFINISHED = "."  # how the names of unfinished folders begin
_OLDEST = 30 * 86_400.0  # seconds
_OLDEST_UNFINISHED = 3_600.0
_OF_BASELINE = "run-"
_OLDEST_BASELINE = 86_400.0  # of a run that was killed, if no other run removed it
_MOST_PRUNED = 500  # folders that are looked at when a session starts
_MOST_NOTE = 64 * 1024
_PRIVATE = 0o700


def snapshots_folder(state: str) -> str:
    """Return the folder of all snapshots; `state` is notyet's folder of state."""
    return light.join(state, "snapshots")


def baselines_folder(state: str) -> str:
    """Return the folder in which commands run on snapshots."""
    return light.join(state, "baselines")


def root_for(folder: str, cwd: str, users_folder: str) -> str:
    """Return the top of the repository that a gate is about; empty outside of git.

    `folder` holds the file that names the gate. A gate of the user's own is about any project.
    """
    is_users = not folder or light.realpath(folder) == light.realpath(users_folder)
    return repository_of(cwd if is_users else folder)


def snapshot_folder(state: str, host: str, session_id: str, agent_id: str, root: str) -> str:
    """Return the folder of an agent's snapshot; a session's own agent has an empty id."""
    words = (host, session_id, agent_id, light.realpath(root))
    key = "\0".join(words).encode("utf-8", "surrogatepass")
    return f"{snapshots_folder(state)}/{blake2b(key, digest_size=16).hexdigest()}"


def take_first(
    state: str, *, host: str, session_id: str, agent_id: str, root: str, patience: float
) -> Snapshot | None:
    """Take and save a snapshot for an agent's first start; note the reason if that fails.

    Return it; None if the agent has a snapshot or a note, or now has a note. Raises OSError.
    """
    final = snapshot_folder(state, host, session_id, agent_id, root)
    if light.lexists(final):
        return None
    folder = _unfinished(state)
    try:
        snapshot = take(root, folder, patience)
    except Unknown as unknown:
        _note(folder, final, unknown.reason)
        return None
    return save(snapshot, final)


def save(snapshot: Snapshot, final: str) -> Snapshot | None:
    """Move a snapshot to its folder; return None if another one is there. Raises OSError."""
    folder = light.dirname(snapshot.objects)
    about = {"root": snapshot.root, "tree": snapshot.tree, "head": snapshot.head, "at": snapshot.at}
    try:
        _write(f"{folder}/{_RECORD}", light.dumps(about).encode())
        is_first = _rename(folder, final)
    except OSError:
        remove(folder)
        raise
    return replace(snapshot, objects=f"{final}/{OBJECTS}") if is_first else None


def note_unknown(
    state: str, *, host: str, session_id: str, agent_id: str, root: str, reason: str
) -> None:
    """Note why an agent has no snapshot, unless it has one. Raises OSError."""
    _note(_unfinished(state), snapshot_folder(state, host, session_id, agent_id, root), reason)


def _note(folder: str, final: str, reason: str) -> None:
    light.mkdir(folder, _PRIVATE)
    try:
        _write(f"{folder}/{_NOTE}", reason.encode("utf-8", "replace"))
        _rename(folder, final)
    except OSError:
        remove(folder)
        raise


def find(
    state: str,
    *,
    host: str,
    session_id: str,
    agent_id: str,
    parent_session_id: str,
    root: str,
    task_id: str = "",
) -> Snapshot:
    """Return the snapshot that counts for an agent. Raises Unknown with the reason if it has none.

    Its own start counts; without one, the start of its session, then of the session around it. An
    agent whose own snapshot could not be taken has none: on older files, a failure that was fixed
    before it began would count as there from the start. A supervised agent may have begun before
    its session had an id; its task stands for that.
    """
    for session, agent in _starts(session_id, agent_id, parent_session_id, task_id):
        folder = snapshot_folder(state, host, session, agent, root)
        if light.lexists(folder):
            return _read(folder, light.realpath(root))
    raise Unknown(NO_SNAPSHOT)


def prune(state: str, now: float | None = None) -> None:
    """Delete some of the snapshots and baselines that are too old. Raises OSError."""
    now = time() if now is None else now
    seen = []
    for folder in (snapshots_folder(state), baselines_folder(state)):
        try:
            with light.scandir(folder) as entries:
                seen += [entry for entry, _ in zip(entries, range(_MOST_PRUNED), strict=False)]
        except FileNotFoundError:
            continue
    for entry in seen:
        oldest = _OLDEST_UNFINISHED if entry.name.startswith(_UNFINISHED) else _OLDEST
        if entry.name.startswith(_OF_BASELINE):
            oldest = _OLDEST_BASELINE
        try:
            is_old = entry.stat(follow_symlinks=False).st_mtime < now - oldest
        except OSError:  # another process deleted it
            continue
        if is_old:
            remove(entry.path)


def _starts(session: str, agent: str, parent: str, task: str) -> Iterator[tuple[str, str]]:
    yield session, agent
    if task:
        yield task, agent
    if agent:
        yield session, ""
    if agent and parent:
        yield parent, ""


def _read(folder: str, root: str) -> Snapshot:
    try:
        note = read_small_file(f"{folder}/{_NOTE}", _MOST_NOTE)
        if note:
            raise Unknown(note.decode("utf-8", "replace"))
        told = light.loads(read_small_file(f"{folder}/{_RECORD}", _MOST_NOTE).decode())
        values = {name: told[name] for name in ("root", "tree", "head")}
        at = float(told["at"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Unknown(ODD) from error
    objects = f"{folder}/{OBJECTS}"
    if values["root"] != root or not light.isdir(objects):
        raise Unknown(ODD)
    return Snapshot(**{name: str(value) for name, value in values.items()}, at=at, objects=objects)


def _unfinished(state: str) -> str:
    """Return a new name for a folder among the snapshots, and make theirs. Raises OSError."""
    folder = snapshots_folder(state)
    _make_folder(folder)
    return f"{folder}/{_UNFINISHED}{light.urandom(12).hex()}"


def _make_folder(folder: str) -> None:
    if light.isdir(folder):
        return
    _make_folder(light.dirname(folder))
    try:
        light.mkdir(folder, _PRIVATE)
    except FileExistsError:  # another process made it
        return


def _rename(folder: str, final: str) -> bool:
    """Rename a finished folder; remove it and return False if there is one. Raises OSError."""
    try:
        light.rename(folder, final)
    except OSError:
        if not light.isdir(final):
            raise
        remove(folder)
        return False
    return True


def _write(path: str, content: bytes) -> None:
    fd = light.open(path, light.O_WRONLY | light.O_CREAT | light.O_EXCL | light.O_CLOEXEC, 0o600)
    try:
        light.write(fd, content)
    finally:
        light.close(fd)
