"""How the hook answers the start of an agent: it remembers the files, and names the gates."""

from __future__ import annotations

from notyet.core.message import briefing_for
from notyet.core.record import replace
from notyet.engine.unchanged import remember_start
from notyet.errors import LedgerError
from notyet.git.repository import repository_of
from notyet.hosts import host_named
from notyet.ledger.ledger import Ledger
from notyet.run.drive import drive_sync

TYPE_CHECKING = False
if TYPE_CHECKING:
    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.hook.hook import Hook
    from notyet.hosts.host import Reply

_LOOK = 5.0  # seconds to look at files


def answer_start(hook: Hook, event: StartEvent) -> Reply:
    """Answer the start of an agent."""
    if hook.switched_off(event.cwd):
        return hook.allow_reply()
    setup = hook.load(event, 0.0)
    if any(gate.when == "changed" for gate in setup.gates):
        try:
            _remember_files(event, setup, min(_LOOK, hook.time_left() / 3))
        except LedgerError as error:  # then its gates run once more, that is all
            hook.warnings.append(f"{error} (the files at the start were not recorded)")
    if setup.start_tell and setup.workspace:  # the gates may be in files on that machine
        setup = hook.load(event, _LOOK)
    if not setup.start_tell:
        return hook.allow_reply()
    words = briefing_for(event, setup.gates)
    return host_named(hook.host).write_context(words, event) if words else hook.allow_reply()


def _remember_files(event: StartEvent, setup: Setup, patience: float) -> None:
    """Remember with which files an agent begins (N1). Raises LedgerError."""
    if not (setup.workspace or event.workspace or repository_of(event.cwd)):
        return  # outside of git, every gate runs
    if setup.workspace:  # a file may have named one
        event = replace(event, workspace=setup.workspace)
    ledger = Ledger(repair=False)  # the next stop repairs it, and tells the user
    try:
        drive_sync(remember_start(event, setup.gates, ledger, patience))
    finally:
        ledger.close()
