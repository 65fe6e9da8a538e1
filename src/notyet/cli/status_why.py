"""`notyet status --why`: what the hook would do with one stop, found out by the hook's own code."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from notyet.cli.made_up_stop import about, read
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, table, waiting, width
from notyet.cli.times import age
from notyet.config.load import NO_LOOK
from notyet.core.plan import select
from notyet.core.text import visible
from notyet.core.verdict import skipped
from notyet.engine.stop import NO_SESSION
from notyet.errors import LedgerError, LedgerNeedsRepair, NotyetError
from notyet.hook.answer import PROBE, Hook, answer_by, completed
from notyet.hook.payload import HostCall, Options
from notyet.ledger.stops import Ledger
from notyet.status.overview import near
from notyet.status.own_faults import ledger_faults
from notyet.status.why import explained, history_now, unchanged_now

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from notyet.cli.made_up_stop import About
    from notyet.config.load import Setup
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.limits import History
    from notyet.core.verdict import Decision
    from notyet.hosts.host import Reply
    from notyet.status.why import GateWhy, Why

_LONGEST = 1_000  # characters of a reason


class _DryHook(Hook):
    """A call of the hook that runs no gate and records nothing; `cause`: why no gate would run."""

    sees_all = True

    def __init__(
        self, stop: About, event: StopEvent, environ: Mapping[str, str], workspace: str = ""
    ) -> None:
        argv = ["--host", stop.host] if stop.host else []
        kept = {name: value for name, value in environ.items() if name != PROBE}
        super().__init__(HostCall(Options(argv), kept, lambda: stop.content))
        self.host = event.host
        self.cause = ""
        self.words: tuple[str, ...] = ()
        self.stop = event
        self._about, self.workspace = stop, workspace
        self._setup: Setup | None = None

    @property
    def setup(self) -> Setup:
        """What is in force where the agent works."""
        return self.load(self.stop, NO_LOOK) if self._setup is None else self._setup

    def look(self) -> None:
        """Do what the hook does, up to its gates."""
        answer_by(self)
        self.stop = completed(self.stop, self.setup)

    def stopping(self, event: StopEvent) -> Reply:
        """Answer a stop; options replace what its payload says."""
        self.event = self.stop = self._about.changed(event)
        return super().stopping(self.stop)

    def load(self, event: StopEvent | StartEvent, _longest: float) -> Setup:
        """Return what is in force, without connecting to another machine."""
        self._setup = super().load(event, NO_LOOK)
        return self._setup

    def check(self, event: StopEvent, setup: Setup) -> Decision:
        """Run no gate."""
        if not select(event, setup.gates):
            return skipped("no-gate")
        if not event.session_id.strip():
            self.record_skip("no-session", (NO_SESSION,))
        return skipped("looked")

    def record_skip(self, cause: str, words: Sequence[str]) -> Sequence[str]:
        """Keep why the agent may stop unchecked."""
        self.cause, self.words = cause, tuple(words)
        return ()

    def repaired(self) -> Sequence[str]:
        """Return nothing: no ledger is repaired here."""
        return ()

    def recover(self, error: Exception) -> Reply:
        """Show a fault of ours."""
        raise error


def explain(args: argparse.Namespace, cwd: str) -> int:
    """Print which gates a stop would meet; exit 1 if none."""
    if args.host and args.as_host and args.host != args.as_host:
        said = f"{args.host} and --as {args.as_host} are two hosts; name one"
        print(f"notyet status: {said}", file=sys.stderr)
        return 2
    args.as_host = args.as_host or args.host
    try:
        stop = about(args, cwd)
        hook = _DryHook(stop, read(stop, os.environ), os.environ, args.workspace or "")
    except NotyetError as error:
        print(f"notyet status: {error}", file=sys.stderr)
        return 2
    hook.look()
    why, notes = _why(hook)
    if args.json:
        off = why.skipped.removeprefix("notyet is ") if why.cause == "off" else ""
        print(json_line({"why": asdict(why) | {"off": off, "warnings": notes}}))
    else:
        _print(why, notes, hook.stop)
    return 0 if any(gate.asked or gate.is_skipped for gate in why.gates) else 1


def _why(hook: _DryHook) -> tuple[Why, list[str]]:
    """Return what the stop would meet, and notes for a person."""
    event, setup = hook.stop, hook.setup
    allowed, damage = _allowed(hook), ""
    history: History | None = None
    ledger = Ledger(patience=1.0, repair=False)
    try:
        try:
            history = history_now(ledger, event)
        except LedgerNeedsRepair as error:  # nothing in it is known then
            damage = str(error)
        except LedgerError as error:
            allowed = allowed if allowed[0] else ("ledger", str(error))
        with waiting("looking at the files ..."):
            unchanged = unchanged_now(event, select(event, setup.gates), ledger, damage)
    finally:
        ledger.close()
    why = explained(event, setup, history, os.environ, unchanged, allowed=allowed)
    notes = [*hook.said, *setup.distrust, *setup.warnings, *why.warnings]
    notes += [f"{damage} and counts anew"] if damage else []
    return why, [note for note in dict.fromkeys(notes) if note not in hook.words]


def _allowed(hook: _DryHook) -> tuple[str, str]:
    """Return the cause for which the hook runs no gate, and its words; both empty if it does."""
    if hook.cause:
        words = f"notyet is {' '.join(hook.words)}" if hook.cause == "off" else ""
        return hook.cause, words or "; ".join(hook.words)
    for found in ledger_faults(os.environ):
        if found.level == "fault":  # a stop could not be counted
            return "ledger", found.what[0].lower() + found.what[1:].rstrip(".")
    return "", ""


def _print(why: Why, notes: Sequence[str], event: StopEvent) -> None:
    style, cwd, now = Style(sys.stdout), os.getcwd(), time.time()
    who = f"subagent {why.agent}" if why.scope == "subagent" else "main agent"
    kind = f" ({event.agent_type})" if event.agent_type else ""
    print(visible(f"a stop of the {who}{kind} of {why.host}, session {why.session_id or '-'}"))
    if why.skipped:
        colour = "yellow" if why.cause in {"no-gate", "background"} else "red"
        print(style.paint(f"no gate runs: {visible(why.skipped)}", colour))
    rows = [
        (
            gate.gate,
            _state(gate),
            near(f"{gate.file}:{gate.line}" if gate.line else gate.file, cwd),
            _because(gate, now)[:_LONGEST],
        )
        for gate in why.gates
    ]
    if rows:
        print()
        head = ("gate", "now", "from", "because")
        for line in table(head, rows, style, columns=width() - 2, wrap=True):
            print(f"  {line}")
        print()
    for line in notes:
        print(f"{style.paint('note:', 'dim')} {visible(line)}")
    used = f"{why.used} of {why.limit} send-backs used in this turn"
    if why.used is None:
        used = f"the number of send-backs used in this turn, of {why.limit}, is unknown"
    print(visible(f"{used} ({why.limit_source.replace(cwd + '/', '')})"))


def _state(gate: GateWhy) -> tuple[str, str]:
    if gate.asked:
        return "runs", "green"
    if gate.is_skipped:
        return "skipped", "cyan"
    return ("does not run", "yellow") if gate.applies else ("not for it", "dim")


def _because(gate: GateWhy, now: float) -> str:
    if gate.spared is None:
        return gate.because
    spared = gate.spared
    by = f" (stop {spared.stop})" if spared.stop else ""
    ago = f" {age(now - spared.at)} ago{by}" if spared.at else ""
    return f"{gate.because}; {spared.because}{ago}"
