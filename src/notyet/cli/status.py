"""`notyet status`: am I gated here, now? By which gates and hosts, and what keeps them from it."""

from __future__ import annotations

import os
import sys
import time

from notyet import __version__
from notyet.cli.about_event import add_event_options
from notyet.cli.ending import ended_in_order
from notyet.install import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from notyet.config.settings import Setup
    from notyet.status.faults.fault import Fault
    from notyet.status.hosts import HostStatus
    from notyet.status.lately import Lately

SUMMARY = "am I gated here, now? and if not, what is wrong"
EXAMPLES = (
    ("notyet status", "am I gated here, now?"),
    ("notyet status codex", "only Codex"),
    ("notyet status --why", "which gates a stop would meet now, and why not the others"),
    ("notyet status --why --agent-type coder", "the same for a subagent of this type"),
    ("notyet status --why --payload stop.json", "the same for what a host really sent"),
    ("notyet status --ask", "really ask the gates, as each host would"),
    ("notyet status --json", "everything for programs"),
)
_OF_THE_STOP = (
    "as_host",
    "event",
    "agent_type",
    "agent_id",
    "agent_name",
    "payload",
    "workspace",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "host", nargs="?", metavar="HOST", choices=tuple(HOSTS), help=f"only {' or '.join(HOSTS)}"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--ask", action="store_true", help="really ask the gates, instead of naming them"
    )
    what.add_argument(
        "--why", action="store_true", help="for one stop: which gates apply, and why the others not"
    )
    add_event_options(parser)


def run(args: argparse.Namespace) -> int:
    """Look at everything; exit 0 if agents are gated, and nothing keeps a gate from it."""
    cwd = os.getcwd()
    is_about_a_stop = any(getattr(args, name) is not None for name in _OF_THE_STOP)
    if args.why or (is_about_a_stop and not args.ask):
        from notyet.cli.status_why import explain

        return explain(args, cwd)
    if is_about_a_stop:
        print("notyet status: options about a stop are for --why", file=sys.stderr)
        return 2
    return _everything(args, cwd)


class Found:
    """All that was looked at, for those who print it."""

    def __init__(self, cwd: str, own: list[Fault], hosts: list[HostStatus], setup: Setup) -> None:
        from notyet.status.faults.fault import is_bad
        from notyet.status.gated import answered, caps_here, gates_here, limits_here

        self.cwd, self.own, self.hosts = cwd, own, hosts
        wired = {s.host: s.setup for s in hosts if s.registrations and s.setup is not None}
        self.setups: Mapping[str, Setup] = wired or {hosts[0].host: setup}
        self.answer = answered(own, hosts, setup)
        self.gates = gates_here(self.setups)
        self.limits = limits_here(next(iter(self.setups.values())), os.environ)
        self.caps = caps_here(status for status in hosts if status.registrations)
        self.faults = [*own, *(found for status in hosts for found in status.faults)]
        self.is_well = self.answer.is_gated and not is_bad(self.faults)
        self.variables = sorted(name for name in os.environ if name.startswith("NOTYET_"))
        self.lately = self._lately()

    def _lately(self) -> Lately:
        from notyet.config.files import root_of
        from notyet.ledger.stops import Ledger
        from notyet.status.lately import looked_into

        ledger = Ledger(patience=1.0, mends=False)
        caps = {status.host: status.cap for status in self.hosts}
        place = root_of(os.path.realpath(self.cwd))
        try:
            return looked_into(ledger, place, time.time(), self.setups, caps)
        finally:
            ledger.close()


def _everything(args: argparse.Namespace, cwd: str) -> int:
    with ended_in_order():
        hosts = _hosts(args, cwd)
    own, setup = _own(cwd, hosts)
    found = Found(cwd, own, hosts, setup)
    if args.json:
        from notyet.cli.streams import json_line

        print(json_line(_plain(found)))
    else:
        from notyet.cli.status_show import Show

        Show(sys.stdout).all(found)
    return 0 if found.is_well else 1


def _hosts(args: argparse.Namespace, cwd: str) -> list[HostStatus]:
    from notyet.status.hosts import named, with_others

    if args.host:
        return [named(_looked_at(args.host, args, cwd))]
    return with_others(_looked_at(host, args, cwd) for host in HOSTS)


def _looked_at(host: str, args: argparse.Namespace, cwd: str) -> HostStatus:
    from notyet.cli.terminal import waiting
    from notyet.install import host_named
    from notyet.status.hosts import look_and_ask, look_at

    title = host_named(host).TITLE
    if args.ask:
        with waiting(f"asking the gates as {title} would ..."):
            return look_and_ask(host, cwd, os.environ)
    with waiting(f"looking at {title} ..."):
        return look_at(host, cwd, os.environ)


def _own(cwd: str, hosts: list[HostStatus]) -> tuple[list[Fault], Setup]:
    from notyet.config.load import NO_LOOK, load
    from notyet.status.own import once_asked, own_faults

    host = next((status.host for status in hosts if status.registrations), hosts[0].host)
    setup = load(cwd, host, os.environ, patience=NO_LOOK)
    found = own_faults(cwd, os.environ, setup)
    was_asked = any(status.probe is not None and status.probe.asked for status in hosts)
    return (once_asked(found) if was_asked else found), setup


def _plain(found: Found) -> dict[str, Any]:
    from notyet.core.record import as_dict, plain

    return {
        "notyet": __version__,
        "folder": found.cwd,
        "ok": found.is_well,
        "gated": found.answer.is_gated,
        "answer": as_dict(found.answer),
        "faults": [as_dict(one) for one in found.own],
        "gates": plain(found.gates),
        "limits": plain([*found.limits, *found.caps]),
        "hosts": [_plain_host(status) for status in found.hosts],
        "sessions": plain(found.lately.sessions),
        "decisions": plain(found.lately.decisions),
        "ledger": {"path": found.lately.path, "size": found.lately.size},
        "variables": found.variables,
    }


def _plain_host(status: HostStatus) -> dict[str, Any]:
    from notyet.core.record import as_dict, replace
    from notyet.status.probe import masked

    entries = [
        {
            "event": entry.event,
            "command": masked(entry.command),
            "timeout": entry.timeout,
            "scope": entry.place.scope,
            "file": entry.place.path,
            "line": entry.line,
            "column": entry.column,
        }
        for entry in status.registrations
    ]
    plain = as_dict(replace(status, setup=None)) | {"registrations": entries}
    del plain["setup"]  # what is in force is told once for all hosts
    return plain
