"""How the hook answers the start of an agent: it remembers the files, and names the gates.

The user reads in one line what would keep the agent from being checked: at the start, not only
when the agent stops.
"""

from __future__ import annotations

from time import time

from notyet.config.find import state_folder, user_folder
from notyet.core.message import briefing_for
from notyet.core.record import replace
from notyet.core.text import clean, visible
from notyet.engine.snapshots import (
    CANNOT_TAKE,
    LATE,
    PATIENCE,
    snapshot_roots,
    take_snapshots,
)
from notyet.engine.unchanged import remember_start
from notyet.errors import LedgerError
from notyet.git.repository import repository_of
from notyet.hook.process import host_started_at
from notyet.hosts import host_named
from notyet.hosts.registered import events_called_at, settings_files
from notyet.ledger.ledger import Ledger
from notyet.run.drive import drive_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.hook.hook import Hook
    from notyet.hosts.host import Host, Reply

_LOOK = 5.0  # seconds to look at files


def answer_start(hook: Hook, event: StartEvent) -> Reply:
    """Answer the start of an agent."""
    off = hook.switched_off(event)
    if off:
        return _reply(hook, event, [off])
    setup = hook.load(event, 0.0)
    roots = snapshot_roots(event, setup.gates, user_folder(hook.environ))
    if hook.members or roots or any(gate.when == "changed" for gate in setup.gates):
        try:
            _remember_files(hook, event, setup, roots)
        except LedgerError as error:  # then its gates run once more, that is all
            hook.warnings.append(f"{error} (the files at the start were not recorded)")
    if setup.start_tell and setup.workspace:  # the gates may be in files on that machine
        setup = hook.load(event, _LOOK)
    if setup.gates and event.scope == "agent":
        _prune_notes(hook.environ)
    words = briefing_for(event, setup.gates) if setup.start_tell else ""
    news = [*setup.distrust, *setup.warnings]
    if setup.gates:
        host = host_named(hook.host)
        folder = hook.environ.get(host.project_variable) or event.cwd
        news += _unregistered(host, folder, hook.environ, setup.gates)
    return _reply(hook, event, news, words)


def _prune_notes(environ: Mapping[str, str]) -> None:
    from notyet.config.sessions import prune

    try:
        prune(environ, time())
    except OSError:  # there are none, or the next start does it
        return


def _reply(hook: Hook, event: StartEvent, news: Sequence[str], words: str = "") -> Reply:
    """Return the reply with words for the agent, and news for the user of a session that begins."""
    if event.scope == "subagent" or event.source == "compact":
        news = ()
    note = clean(" | ".join(f"notyet: {line}" for line in news))
    if not words and not note:
        return hook.allow_reply()
    return host_named(hook.host).write_context(words, event, note)


def _remember_files(hook: Hook, event: StartEvent, setup: Setup, roots: Sequence[str]) -> None:
    """Remember with which files an agent begins (N1). Raises LedgerError.

    `roots` are the repositories of which gates need a snapshot.
    """
    if not (setup.workspace or event.workspace or repository_of(event.cwd)):
        return  # outside of git, every gate runs
    if setup.workspace:  # a file may have named one
        event = replace(event, workspace=setup.workspace)
    since = None
    if host_started_at() is not None and not event.agent_id:
        from notyet.config.caller import host_began_at

        since = host_began_at(host_named(hook.host).program)
    patience = min(_LOOK, hook.time_left() / 3)
    ledger = Ledger(repair=False)  # the next stop repairs it, and tells the user
    try:
        members = hook.members
        seen = drive_sync(
            remember_start(
                event, setup.gates, ledger, patience, since=since, members=members, roots=roots
            )
        )
    finally:
        ledger.close()
    if roots and seen != "known":
        _take_snapshots(hook, event, roots, LATE if seen == "late" else "")


def _take_snapshots(hook: Hook, event: StartEvent, roots: Sequence[str], late: str) -> None:
    state, patience = state_folder(hook.environ), min(PATIENCE, hook.time_left() / 3)
    try:
        take_snapshots(state, event, roots, patience, late)
    except OSError as error:
        why = error.strerror or str(error)
        hook.warnings.append(f"{CANNOT_TAKE}: {why}")


# Whether the host still calls us at a stop.


def _unregistered(
    host: Host, folder: str, environ: Mapping[str, str], gates: Sequence[Gate]
) -> list[str]:
    """Return what to tell the user if settings call us at starts, and no longer at stops.

    Nothing is said where no file calls us at starts: then a plugin or an option does.
    """
    called = events_called_at(host, folder, environ)
    start = called.get(host.start_name("agent"), "")
    needed = {scope for gate in gates for scope in gate.match.events}
    missing = [name for name, of in host.stops.items() if of in needed and name not in called]
    if not start or not missing or _has_plugin(host, folder, environ):
        return []
    whom = "agents" if host.event_name("agent") in missing else "subagents"
    what = f"{' and '.join(missing)} is not registered in {visible(start)}: {whom} are not checked"
    return [f"{what}; run: notyet install {host.name}"]


def _has_plugin(host: Host, folder: str, environ: Mapping[str, str]) -> bool:
    if host.plugin is None:
        return False
    from notyet.install.host_plugin import hooks_file

    return bool(hooks_file(host, [*settings_files(host, folder, environ)], folder, environ))
