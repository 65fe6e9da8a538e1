"""`notyet status`: are agents checked here? By which gates and hosts, and what is wrong."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from notyet.cli.hosts import add_host
from notyet.cli.person import refuse
from notyet.cli.progress import waiting
from notyet.cli.signals import ended_in_order
from notyet.cli.status.screen import Screen
from notyet.cli.stop_options import add_event_options, described_stop, read_stop
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, table, width
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.hosts import host_named
from notyet.install.settings import installable
from notyet.status.overview import near
from notyet.status.report import StatusReport, look_at, not_found, without_unused
from notyet.status.why import ExplainHook, why
from notyet.times import age

if TYPE_CHECKING:
    import argparse

    from notyet.status.report import HostStatus
    from notyet.status.why import GateWhy, Why

SUMMARY = "are agents checked here? and if not, what is wrong"
EXAMPLES = (
    ("notyet status", "are agents checked here?"),
    ("notyet status codex", "only Codex"),
    ("notyet status --why", "which gates a stop would meet now, and why not the others"),
    ("notyet status --why --agent-type coder", "the same for a subagent of this type"),
    ("notyet status --why --payload stop.json", "the same for what a host really sent"),
    ("notyet status --ask", "run the gates, as each host would"),
    ("notyet status --json", "everything for programs"),
)
NOTES = "`notyet doctor` is the same command."
_ABOUT_STOP = ("as_host", "event", "agent_type", "agent_id", "agent_name", "payload", "workspace")
_LONGEST = 1_000  # characters of a reason


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host(parser, "only ", nargs="?")
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--ask", action="store_true", help="run the gates, as each host would")
    what.add_argument(
        "--why", action="store_true", help="explain one stop: which gates would run, and why"
    )
    add_event_options(parser)


def run(args: argparse.Namespace) -> int:
    """Look at everything; exit 0 if agents are checked and nothing keeps a gate from working."""
    cwd = os.getcwd()
    is_about_stop = any(getattr(args, name) is not None for name in _ABOUT_STOP)
    if args.why or (is_about_stop and not args.ask):
        return _explain(args, cwd)
    if is_about_stop:
        return refuse("status", "options about a stop are for --why", 2)
    with ended_in_order():
        hosts = _hosts(args, cwd)
    found = StatusReport(cwd, os.environ, hosts)
    if args.json:
        print(json_line(found.plain()))
    else:
        Screen(found).show()
    return 0 if found.is_well else 1


def _explain(args: argparse.Namespace, cwd: str) -> int:
    """Print which gates a stop would meet; exit 1 if none."""
    if args.host and args.as_host and args.host != args.as_host:
        return refuse("status", f"{args.host} and --as {args.as_host} are two hosts; name one", 2)
    args.as_host = args.as_host or args.host
    try:
        stop = described_stop(args, cwd)
        event = read_stop(stop, os.environ)
    except NotyetError as error:
        return refuse("status", str(error), 2)
    hook = ExplainHook(event, stop.host, stop.content, stop.changed, args.workspace or "")
    with waiting("looking at the files ..."):
        found = why(hook, os.environ)
    if args.json:
        print(json_line({"why": asdict(found)}))
    else:
        _print_why(found, hook.stop.agent_type)
    return 0 if any(gate.asked or gate.is_skipped for gate in found.gates) else 1


def _hosts(args: argparse.Namespace, cwd: str) -> list[HostStatus]:
    found = []
    for host in [args.host] if args.host else installable():
        title = host_named(host).title
        words = f"running the gates as {title} would ..." if args.ask else f"looking at {title} ..."
        with waiting(words):
            found.append(look_at(host, cwd, os.environ, is_asked=args.ask))
    return [not_found(found[0])] if args.host else without_unused(found)


def _print_why(why: Why, agent_type: str | None) -> None:
    style, cwd, now = Style(sys.stdout), os.getcwd(), time.time()
    who = f"subagent {why.agent}" if why.scope == "subagent" else "main agent"
    kind = f" ({agent_type})" if agent_type else ""
    print(visible(f"a stop of the {who}{kind} of {why.host}, session {why.session_id or '-'}"))
    if why.skipped:
        colour = "yellow" if why.cause in {"no-gate", "background"} else "red"
        print(style.paint(f"no gate runs: {visible(why.skipped)}", colour))
    rows = [
        (
            gate.gate,
            _now(gate),
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
    for line in why.warnings:
        print(f"{style.paint('note:', 'dim')} {visible(line)}")
    used = f"{why.used} of {why.limit} send-backs used in this turn"
    if why.used is None:
        used = f"the number of send-backs used in this turn, of {why.limit}, is unknown"
    print(visible(f"{used} ({why.limit_source.replace(cwd + '/', '')})"))


def _now(gate: GateWhy) -> tuple[str, str]:
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
