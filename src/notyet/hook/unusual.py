"""What the hook needs rarely: something is wrong, is made up, or is to be sent or deleted."""

from __future__ import annotations

from notyet import __version__
from notyet.core.event import StopEvent
from notyet.core.plan import select
from notyet.core.verdict import skipped
from notyet.hook.payload import kind_of, of_wrong_kind
from notyet.hook.process import OutOfTime, be_brief, be_undisturbed
from notyet.hosts import host_named
from notyet.light import LOCAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent
    from notyet.hook.main import Hook
    from notyet.hosts.host import Host, Reply
    from notyet.ledger.stops import Ledger

PROBE = "NOTYET_PROBE"  # the variable that marks a probe, with the name of its session
PROBE_SESSION = "notyet-status-"  # how that begins; no host names a session so
WOULD_RUN_NOTHING = "would ask nothing"
_RECORDING = 1.0  # seconds
_NOT_FOR_USERS = frozenset({"inside", "supervised", "unreadable"})  # causes they cannot fix


def allow(hook: Hook, cause: str, words: Sequence[str]) -> Reply:
    """Allow a stop unchecked: say why on stderr and to the user, and record it (G5)."""
    hook.said += words
    repaired: Sequence[str] = ()
    try:
        if not hook.is_probe():
            repaired = hook.record_skip(cause, words)
    except Exception as error:  # noqa: BLE001  # without a record, but with an answer
        hook.said.append(f"that was not recorded: {error}")
    hook.said += repaired
    news = repaired if cause in _NOT_FOR_USERS else (*words, *repaired)
    return hook.nothing(" | ".join(f"notyet: {line}" for line in news))


def record_skip(hook: Hook, cause: str, words: Sequence[str]) -> Sequence[str]:
    """Record a stop that is allowed unchecked; return what was repaired. Raises LedgerError."""
    from notyet.ledger.stops import Ledger

    ledger = Ledger()
    hook.call.ledger = hook.call.ledger or ledger
    event = hook.event or StopEvent(host=hook.host)
    try:
        ledger.skip(event, skipped(cause, *words), patience=_RECORDING)
    finally:
        ledger.close()
    return ledger.connection.repairs


def allow_other_event(hook: Hook, payload: Mapping[str, Any]) -> Reply:
    """Answer an event that is not about starting or stopping."""
    host = host_named(hook.host)
    name = host.value(payload, "event")
    if not isinstance(name, str) or not name.strip():
        return hook.allow("unreadable", f"the event on stdin has no {host.fields['event'][0]}")
    stops = " and ".join(host.stops)
    hook.said.append(f"{name[:80]} is not about a stop; use notyet for {stops}")
    return hook.nothing()


def give_up(hook: Hook) -> Reply:
    """Allow the stop because the host waits no longer."""
    said = f"no answer within the {hook.patience():g} s that the host waits; NOT CHECKED"
    try:
        # A stop that was begun in the ledger is recorded there as cancelled.
        if hook.call.ledger is None or not hook.call.ledger.newest:
            be_brief()
            return hook.allow("deadline", said)
    except OutOfTime:  # not even recorded in time
        be_undisturbed()
    hook.said.append(said)
    return hook.nothing(f"notyet: {said}")


# What of a payload cannot be used.


def unusable(payload: Mapping[str, Any], event: StopEvent | StartEvent, host: Host) -> list[str]:
    """Return which fields have a type that cannot be used, so that they count as missing."""
    if host.name == "notyet":  # its fields are the event's own
        wrong = [
            name
            for name, default in event._defaults.items()  # noqa: SLF001  # our own record
            if name != "workspace"  # see `no_workspace`
            and not _is_nothing(payload.get(name), default)
            and getattr(event, name) == default
        ]
    else:
        wrong = of_wrong_kind(payload, host)
    return [f"the event's {name} is {kind_of(payload[name])}; not used" for name in wrong]


def no_workspace(payload: Mapping[str, Any], event: StopEvent) -> str:
    """Return why an event's workspace cannot be used; empty where it can.

    To look here for what is on another machine would be wrong.
    """
    from notyet.core.remote import remote_from

    said = payload.get("workspace")
    if event.workspace or _is_nothing(said, LOCAL):
        return ""
    why = f"it is {kind_of(said)}"
    try:
        if isinstance(said, str):
            remote_from(said)
    except ValueError as error:
        why = str(error)
    return f"the event's workspace cannot be used, so nothing was checked: {why}"


def _is_nothing(value: object, default: object) -> bool:
    if isinstance(value, str) and not value.strip():
        return True
    return value is None or value in (default, [])


# The stop that `notyet status` makes up: the hook answers which gates would run.


def is_probe(session: object, environ: Mapping[str, str]) -> bool:
    """Return True if `notyet status` made up this stop.

    An agent can set a variable, in the settings of its host; but it cannot name its session.
    """
    mark = environ.get(PROBE, "")
    return mark.startswith(PROBE_SESSION) and session == mark


def would_run(event: StopEvent, setup: Setup) -> str:
    """Return which gates this stop would run, and which run for subagents; or why none does."""
    running = [gate.name for gate in select(event, setup.gates)]
    said = [f"would ask {', '.join(running)}" if running else WOULD_RUN_NOTHING]
    others = [gate.name for gate in setup.gates if "subagent" in gate.match.events]
    if others and event.scope == "agent":
        said.append(f"of subagents {', '.join(others)}")
    return f"notyet {__version__}: {'; '.join((*said, *setup.distrust, *setup.warnings))}"


# Afterwards.


def tidy(ledger: Ledger, environ: Mapping[str, str], *, logs_only: bool) -> None:
    """Delete a little of what is too old or too much."""
    from notyet.config.load import retention
    from notyet.errors import Refused
    from notyet.ledger.logs import make_room

    try:
        wanted = retention(environ)
    except Refused:  # `notyet status` says what is wrong with the user's file
        return
    if logs_only:
        make_room(ledger.path, wanted, ledger.newest)
    else:
        from notyet.ledger import prune

        prune.tidy(ledger, wanted)
