"""`notyet status --why`: for one stop, each gate with the reason why it applies or does not."""

from __future__ import annotations

import os
import sys
import time

from notyet.cli.about_event import event_from
from notyet.cli.moments import age
from notyet.cli.status_now import near
from notyet.cli.style import Style
from notyet.cli.table import table
from notyet.cli.waiting import waiting
from notyet.core.text import visible
from notyet.errors import NotyetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from notyet.config.setup import Setup
    from notyet.core.event import StopEvent
    from notyet.report.spared import Spared
    from notyet.report.why import GateWhy, Why


def explain(args: argparse.Namespace, cwd: str) -> int:
    """Say which gates a stop would meet; exit 1 when none would be in its way."""
    from notyet.config.load import NO_LOOK, load
    from notyet.config.switch import switched_off
    from notyet.core.plan import select
    from notyet.ledger.sqlite import Ledger
    from notyet.report.spared import spared_now
    from notyet.report.why import explained, history_now

    args.as_host = args.as_host or args.host
    try:
        event = event_from(args, cwd, os.environ)
    except NotyetError as error:
        print(f"notyet status: {error}", file=sys.stderr)
        return 2
    place = event.cwd or cwd
    workspace = args.workspace or ""
    setup = load(place, event.host, os.environ, workspace=workspace, patience=NO_LOOK)
    ledger = Ledger(patience=1.0)
    try:
        with waiting("looking at the files ..."):
            spared = spared_now(event, select(event, setup.gates), ledger)
        why = explained(event, setup, history_now(ledger, event), os.environ, spared)
    finally:
        ledger.close()
    off = switched_off(place, os.environ)
    if args.json:
        _print_json(why, setup, off)
    else:
        _print(why, setup, off, event)
    return 0 if any(gate.applies for gate in why.gates) and not off else 1


def _print_json(why: Why, setup: Setup, off: str) -> None:
    from notyet.cli.lines import json_line
    from notyet.core.record import as_dict

    said = [*setup.distrust, *setup.warnings, *why.warnings]
    print(json_line({"why": as_dict(why) | {"off": off, "warnings": said}}))


def _print(why: Why, setup: Setup, off: str, event: StopEvent) -> None:
    style = Style(sys.stdout)
    who = f"subagent {why.agent}" if why.scope == "subagent" else "main agent"
    kind = f" ({event.agent_type})" if event.agent_type else ""
    print(visible(f"a stop of the {who}{kind} of {why.host}, session {why.session_id or '-'}"))
    if off:
        print(style.paint(f"nothing is asked: notyet is {visible(off)}", "red"))
    elif why.skipped:
        print(style.paint(f"nothing is asked: {visible(why.skipped)}", "yellow"))
    if why.gates:
        now = time.time()
        rows = [(gate.gate, _word(gate), _place(gate), _because(gate, now)) for gate in why.gates]
        print()
        for line in table(("gate", "now", "from", "because"), rows, style):
            print(f"  {line}")
        print()
    for line in (*setup.distrust, *setup.warnings, *why.warnings):
        print(f"{style.paint('note:', 'dim')} {visible(line)}")
    source = why.limit_source.replace(os.getcwd() + "/", "")
    print(visible(f"{why.used} of {why.limit} send-backs used in this turn ({source})"))


def _place(gate: GateWhy) -> str:
    return near(f"{gate.file}:{gate.line}" if gate.line else gate.file, os.getcwd())


def _word(gate: GateWhy) -> tuple[str, str]:
    if gate.asked:
        return "asked", "green"
    if gate.spared is not None and gate.spared.cause:
        return "spared", "cyan"
    return ("not asked", "yellow") if gate.applies else ("not for it", "dim")


def _because(gate: GateWhy, now: float) -> str:
    if gate.spared is None:
        return gate.because
    return f"{gate.because}; {_files(gate.spared, now)}"


def _files(spared: Spared, now: float) -> str:
    if not spared.at:
        return spared.because
    by = f" (stop {spared.stop})" if spared.stop else ""
    return f"{spared.because} {age(now - spared.at)} ago{by}"
