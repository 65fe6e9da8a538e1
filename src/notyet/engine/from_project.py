"""Engines for what is in force at a place: where configuration and engine meet."""

from __future__ import annotations

import os

from notyet.config.load import Setup, load
from notyet.config.off import switched_off
from notyet.core.gate import Function, Starter
from notyet.core.limits import Limits
from notyet.core.message import briefing_for
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.engine.desktop import notify_desktop
from notyet.engine.engine import Engine
from notyet.engine.observers import observer_of
from notyet.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.core.event import StopEvent
    from notyet.core.verdict import Decision
    from notyet.ledger import AnyLedger

_OWN_PROGRAM = "embedded"  # an agent without files of its own
_NOTIFIED = 2.0  # seconds for the notifications of one stop


def configured_engine(
    setup: Setup, ledger: AnyLedger | None = None, warn: Callable[[str], None] | None = None
) -> Engine:
    """Return an engine with the gates, observers and limits that are in force."""
    return Engine(
        setup.gates,
        observers=[observer_of(observer) for observer in setup.observers],
        starters=setup.starters,
        limits=Limits(**setup.limits),
        ledger=ledger,
        warn=warn,
        unchecked=setup.unchecked,
    )


def supervising_engine(
    setup: Setup,
    environ: Mapping[str, str],
    ledger: AnyLedger | None = None,
    warn: Callable[[str], None] | None = None,
) -> Engine:
    """Return an engine that also does what a host's hook does around its own.

    Starting agents are told which gates they will meet, where `[start] tell` says so, and
    conclaude's notifications are sent.
    """
    if setup.start_tell:
        setup = replace(setup, starters=(*_briefing(setup), *setup.starters))
    engine = configured_engine(setup, ledger, warn)
    if setup.notifications:

        def notify(event: StopEvent, decision: Decision) -> None:
            for failed in notify_desktop(event, decision, setup, environ, _NOTIFIED):
                engine.warn(failed)

        engine.on("decision", notify)
    return engine


def project_engine(
    cwd: str,
    agent: str,
    workspace: str,
    ledger: AnyLedger | None,
    warn: Callable[[str], None] | None,
    *,
    untrusted: str = "",
) -> Engine:
    """Return the engine of `Engine.from_project`.

    `untrusted` is said instead of each file that is not trusted; no stop is then called passed.
    """
    cwd = os.path.abspath(cwd)
    off = switched_off(cwd, os.environ)
    setup = Setup()
    if not off:
        program = agent or _OWN_PROGRAM
        setup = load(cwd, "notyet", os.environ, agent=program, workspace=workspace)
    if setup.workspace_problem and is_remote(workspace):
        raise Refused(f"{workspace} cannot be read: {setup.workspace_problem}")
    if untrusted and setup.distrust:
        setup = replace(setup, untrusted=(), unchecked=(*setup.unchecked, untrusted))
    engine = supervising_engine(setup, os.environ, ledger, warn)
    for warning in (*([off] if off else ()), *setup.warnings, *setup.distrust):
        engine.warn(warning)
    return engine


def _briefing(setup: Setup) -> list[Starter]:
    tell = Function(lambda event: briefing_for(event, setup.gates))
    return [
        Starter(name="briefing", check=tell, scope="agent"),
        Starter(name="briefing", check=tell, scope="subagent"),
    ]
