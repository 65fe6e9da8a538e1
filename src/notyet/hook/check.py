"""The part of `notyet hook` that is needed only where a gate applies, or something is wrong."""

from __future__ import annotations

from time import monotonic

from notyet.core.event import StopEvent
from notyet.core.record import replace
from notyet.core.verdict import Decision, skipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.core.gate import Gate
    from notyet.engine.unchanged import Remembering
    from notyet.ledger.stops import Ledger

_LAST = 1.0  # seconds for what comes after the answer is known
_NOTIFIED = 2.0  # seconds for one notification, where there is time
_LEAST = 0.2
TIDY_EVERY = 50  # stops, of which one tidies up
_WRITTEN_BACK_EVERY = 4  # stops, of which one makes the ledger's log shorter
_ledger: Ledger | None = None
_written: Ledger | None = None  # where a stop was written down that nobody asked gates about


def check(
    event: StopEvent,
    setup: Setup,
    within: float,
    environ: Mapping[str, str],
    said: list[str],
) -> Decision:
    """Ask the gates that are for this stop, and write down what came of it.

    `said` gets what belongs on stderr.
    """
    started = monotonic()
    event = completed(event, setup)
    remembering = _begin_to_look(event, setup.gates, within)
    try:
        decision = _decide(event, setup, within, said, remembering)
    finally:
        if remembering is not None:
            remembering.leave()
    said += [line for line in mended() if line not in said]
    ends = min(started + within + min(_LAST, within / 8), monotonic() + _NOTIFIED)
    for settings in setup.notifications:
        said += _notify(settings, event, decision, setup, environ, ends=ends)
    return decision


def _begin_to_look(event: StopEvent, gates: Sequence[Gate], within: float) -> Remembering | None:
    """Have git look at the files that gates depend on, while what asks them is loaded."""
    from notyet.core.plan import select
    from notyet.engine.stop import Deadline, begin_to_look
    from notyet.run.drive import drive_sync

    return drive_sync(begin_to_look(event, select(event, gates), Deadline(within)))


def _decide(
    event: StopEvent,
    setup: Setup,
    within: float,
    said: list[str],
    remembering: Remembering | None,
) -> Decision:
    from notyet.engine.engine import check_meanwhile
    from notyet.engine.from_project import configured_engine
    from notyet.hook.process import asked_at
    from notyet.ledger.stops import Ledger

    # Kept open for the rest of the process: closing costs a checkpoint, before our answer.
    global _ledger  # noqa: PLW0603  # one per process
    _ledger = Ledger()
    _ledger.asked_at = asked_at()
    engine = configured_engine(setup, _ledger, said.append)
    return check_meanwhile(engine, event, within, while_waiting=_get_ready, remembering=remembering)


def _get_ready() -> None:
    """Do what can be done while the gates are at work: load what is needed once they answered."""
    try:
        import notyet.core.definition
        import notyet.core.note
        import notyet.core.settle  # noqa: F401  # the point is that they are there

        if _ledger is not None and _ledger.newest % _WRITTEN_BACK_EVERY == 0:
            _ledger.file.write_back()  # so that the next process has less to read
    except Exception:  # noqa: BLE001  # it must not end the gates; who needs these will meet it
        return


def mended() -> Sequence[str]:
    """Say that this stop found a damaged ledger, and that its counts are gone."""
    return _ledger.file.mended if _ledger is not None else ()


def completed(event: StopEvent, setup: Setup) -> StopEvent:
    """Return an event with what its payload does not say, and the gates are to know."""
    if event.last_message is None:
        from notyet.hosts.transcript import last_message_of

        event = replace(event, last_message=last_message_of(event))
    if setup.workspace:  # which a file may have named
        event = replace(event, workspace=setup.workspace)
    return event


def _notify(
    settings: Mapping[str, object],
    event: StopEvent,
    decision: Decision,
    setup: Setup,
    environ: Mapping[str, str],
    *,
    ends: float,
) -> list[str]:
    """Send conclaude's notifications; that one cannot be sent is only logged (003)."""
    from notyet.engine.notify import notify
    from notyet.hosts.conclaude import notifications

    sent = notifications(settings, event, decision, setup.gates)
    failed = []
    for title, body in sent:
        left = min(_NOTIFIED, ends - monotonic())
        # One that hangs must not cost the agent its answer, nor may many together.
        failed.append(notify(title, body, environ, patience=left) if left > _LEAST else "no time")
    return [f"notification not sent: {why}" for why in failed if why]


def remember_start(event: StartEvent, setup: Setup, patience: float) -> None:
    """Remember with which files an agent begins (N1). Raises LedgerError."""
    from notyet.git.place import repository_of

    if not (setup.workspace or event.workspace or repository_of(event.cwd)):
        return  # nobody can tell
    from notyet.engine.unchanged import remember_start as remembered
    from notyet.ledger.stops import Ledger
    from notyet.run.drive import drive_sync

    if setup.workspace:  # which a file may have named
        event = replace(event, workspace=setup.workspace)
    ledger = Ledger(mends=False)  # else the next stop would count anew, and nobody know why
    try:
        drive_sync(remembered(event, setup.gates, ledger, patience))
    finally:
        ledger.close()


def write_down(
    event: StopEvent | None, host: str, cause: str, words: Sequence[str]
) -> Sequence[str]:
    """Record a stop that was let go unchecked; return what became of the ledger, if anything.

    Raises LedgerError.
    """
    from notyet.ledger.stops import Ledger

    decision = skipped(cause, *words)
    global _written  # noqa: PLW0603  # one per process
    _written = ledger = Ledger()
    try:
        ledger.skip(event or StopEvent(host=host), decision, patience=_LAST)
    finally:
        ledger.close()
    return ledger.file.mended


def tidy(environ: Mapping[str, str]) -> None:
    """Remove a little of what is too old or too much, rarely; the host has its answer."""
    ledger = _ledger or _written
    if ledger is None or not ledger.newest:
        return
    is_due = ledger.newest % TIDY_EVERY == 0
    if not is_due and not ledger.logged:
        return
    from notyet.config.load import retention
    from notyet.errors import Refused
    from notyet.ledger.logs import make_room

    try:
        wanted = retention(environ)
    except Refused:  # what is wrong with the user's file is said elsewhere
        return
    if is_due:
        from notyet.ledger.prune import tidy

        tidy(ledger, wanted)
    else:
        make_room(ledger.path, wanted, ledger.newest)
