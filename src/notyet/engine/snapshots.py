"""Take a snapshot of the files that an agent begins with, for gates that compare with it."""

from __future__ import annotations

from notyet.config.find import state_folder, user_folder
from notyet.core.event import stop_of
from notyet.core.gate import Command, folder_of, machine_of
from notyet.core.plan import select
from notyet.engine.unchanged import goes_on
from notyet.git.snapshot_store import note_unknown, prune, root_for, take_first
from notyet.run.drive import Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.run.drive import Steps

PATIENCE = 20.0  # seconds
LATE = "files had changed before the start of the session was recorded"
CANNOT_TAKE = "cannot take a snapshot of the files at the start"
_KINDS = frozenset({"guard", "judge", "run", "uses"})  # of gates that look at what changed


def wants_snapshot(gate: Gate) -> bool:
    """Return True if a gate compares the files with those at the start."""
    if not isinstance(gate.check, Command) or machine_of(gate) is not None:
        return False
    options = gate.check.options
    return bool(options.get("new_failures_only")) or options.get("kind") in _KINDS


def snapshot_roots(event: StartEvent, gates: Sequence[Gate], users_folder: str) -> tuple[str, ...]:
    """Return the repositories of which an agent that begins needs a snapshot."""
    if event.workspace or not event.session_id.strip():
        return ()
    wanting = [gate for gate in gates if wants_snapshot(gate)]
    if wanting and event.scope == "subagent":  # a session's start stands for its subagents too
        wanting = [*select(stop_of(event), wanting)]
    roots = (root_for(folder_of(gate), event.cwd, users_folder) for gate in wanting)
    return tuple(dict.fromkeys(root for root in roots if root))


def take_snapshots(
    state: str, event: StartEvent, roots: Sequence[str], patience: float, late: str = ""
) -> None:
    """Take a snapshot of each repository; with `late`, only note why there is none.

    Raises OSError.
    """
    for root in roots:
        agent = {
            "host": event.host,
            "session_id": event.session_id,
            "agent_id": event.agent_id or "",
            "root": root,
        }
        if late:
            note_unknown(state, **agent, reason=late)
        else:
            take_first(state, **agent, patience=patience / len(roots))
    if event.scope == "agent":
        prune(state)


def snapshots_at_start(
    event: StartEvent,
    gates: Sequence[Gate],
    environ: Mapping[str, str],
    warn: Callable[[str], None],
) -> Steps[None]:
    """Take the snapshots that the gates of an engine want; only an agent's first start counts."""
    roots = snapshot_roots(event, gates, user_folder(environ)) if gates else ()
    state = state_folder(environ)
    if not roots or not state or goes_on(event):
        return
    try:
        yield Call(take_snapshots, (state, event, roots, PATIENCE))
    except OSError as error:
        warn(f"{CANNOT_TAKE}: {error.strerror or error}")
