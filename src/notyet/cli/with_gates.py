"""The gates of one run of `notyet with`: what is in force, and what its user is told of that."""

from __future__ import annotations

import os

from notyet.core.event import StopEvent
from notyet.core.gate import place_of
from notyet.core.limits import History, limit_in_force
from notyet.core.plan import select
from notyet.core.record import replace
from notyet.core.remote import is_remote
from notyet.core.text import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from notyet.cli.with_screen import Screen
    from notyet.core.gate import Gate
    from notyet.engine import Engine
    from notyet.ledger.sqlite import Ledger


class Gates:
    """What is in force for an agent, looked at once."""

    def __init__(self, args: argparse.Namespace, cwd: str) -> None:
        from notyet.config.load import Setup

        self._args = args
        self._cwd = cwd
        self._setup = Setup()
        self._off = ""  # why nobody is gated
        self.cause = "no-gate"  # why nobody is asked
        self.warnings: list[str] = []

    @property
    def workspace(self) -> str:
        """Where the files are that the agent works on, if elsewhere."""
        named = self._args.workspace
        return str(named if is_remote(named) else self._setup.workspace)

    def look(self, agent: str) -> str:
        """Find out what is in force; say why the agent must not begin, if so.

        It does not begin where nobody could look at its work. Looking may mean to connect, so it
        is done before there is a loop, and Ctrl-C ends it.
        """
        from notyet.cli.waiting import waiting
        from notyet.config.load import load
        from notyet.config.switch import switched_off

        self._off = switched_off(self._cwd, os.environ)
        self.cause = "off" if self._off else self.cause
        if os.environ.get("NOTYET_INSIDE"):
            self._off = "off because a gate runs this, and a gate's own agent is not gated"
            self.cause = "inside"
        if self._off:
            return ""
        there = self._args.workspace
        what = visible(there) if is_remote(there) else "the gates"
        with waiting(f"looking at {what} ..."):
            setup = load(self._cwd, "notyet", os.environ, agent=agent, workspace=there)
        if is_remote(there) and setup.unreached:
            return f"{visible(there)} cannot be read: {setup.unreached}"
        if setup.distrust and not setup.gates:
            self.cause = "untrusted"
        self.warnings += (*setup.warnings, *setup.distrust)
        if self._args.max_blocks is not None:
            limits = {**setup.limits, "max_blocks": self._args.max_blocks}
            setup = replace(setup, limits=limits)
        self._setup = setup
        return ""

    def engine(self, ledger: Ledger, screen: Screen) -> Engine:
        """Return the engine, and show what the agent will meet."""
        from notyet.configured import supervising_engine

        for said in self.warnings:
            screen.warn(said)
        engine = supervising_engine(self._setup, os.environ, ledger, screen.warn)
        stop = StopEvent(scope="agent", host="notyet", session_id="-", cwd=self._cwd)
        names = [_named(gate) for gate in select(stop, self._setup.gates)]
        if names:
            screen.gates(names, limit_in_force(engine.limits, History(), 0).number)
        else:
            screen.say(self._off or "no gates are in force here, so nothing will be checked")
        return engine


def _named(gate: Gate) -> str:
    """Return a gate's name, and where it runs, if that is elsewhere."""
    place = place_of(gate)
    return f"{gate.name} on {place.destination}" if place else gate.name
