"""`notyet status`: how agents are gated here, by which hosts, and what keeps them from it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

from notyet import __version__
from notyet.install import HOSTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from notyet.report.faults.fault import Fault
    from notyet.report.hosts import HostStatus

SUMMARY = "am I gated here, now? and if not, what is wrong"
EXAMPLES = (
    ("notyet status", "am I gated here, now?"),
    ("notyet status codex", "only Codex"),
    ("notyet status --ask", "really ask the gates, as each host would"),
    ("notyet status --json", "the same for programs"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("host", nargs="?", choices=tuple(HOSTS), help="only this one")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--ask", action="store_true", help="really ask the gates, instead of naming them"
    )


def run(args: argparse.Namespace) -> int:
    """Look at everything; exit 1 when something keeps a gate from gating."""
    from notyet.report.faults.fault import is_bad

    try:
        cwd = os.getcwd()
    except OSError:
        print("notyet status: this folder is gone; go to another one", file=sys.stderr)
        return 1
    with _ended_in_order():
        hosts = _hosts(args, cwd)
    own = _own(cwd, hosts)
    bad = is_bad(own) or any(is_bad(status.faults) for status in hosts)
    if args.json:
        from notyet.cli.lines import json_line

        print(json_line(_plain(cwd, own, hosts)))
    else:
        from notyet.cli.status_show import Show

        Show(sys.stdout).all(cwd, own, hosts)
    return 1 if bad else 0


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Leave nothing behind when somebody ends us: neither what was started, nor files."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hosts(args: argparse.Namespace, cwd: str) -> list[HostStatus]:
    from notyet.report.hosts import named, with_others

    if args.host:
        return [named(_looked_at(args.host, args, cwd))]
    return with_others(_looked_at(host, args, cwd) for host in HOSTS)


def _looked_at(host: str, args: argparse.Namespace, cwd: str) -> HostStatus:
    from notyet.cli.waiting import waiting
    from notyet.install import host_named
    from notyet.report.hosts import look_and_ask, look_at

    title = host_named(host).TITLE
    if args.ask:
        with waiting(f"asking the gates as {title} would ..."):
            return look_and_ask(host, cwd, os.environ)
    with waiting(f"looking at {title} ..."):
        return look_at(host, cwd, os.environ)


def _own(cwd: str, hosts: list[HostStatus]) -> list[Fault]:
    from notyet.config.load import NO_LOOK, load
    from notyet.report.own import once_asked, own_faults

    host = next((status.host for status in hosts if status.registrations), hosts[0].host)
    found = own_faults(cwd, os.environ, load(cwd, host, os.environ, patience=NO_LOOK))
    was_asked = any(status.probe is not None and status.probe.asked for status in hosts)
    return once_asked(found) if was_asked else found


def _plain(cwd: str, own: list[Fault], hosts: list[HostStatus]) -> dict[str, Any]:
    from notyet.core.record import as_dict
    from notyet.report.faults.fault import is_bad

    every = [*own, *(found for status in hosts for found in status.faults)]
    return {
        "notyet": __version__,
        "folder": cwd,
        "ok": not is_bad(every),
        "faults": [as_dict(found) for found in own],
        "hosts": [_plain_host(status) for status in hosts],
    }


def _plain_host(status: HostStatus) -> dict[str, Any]:
    from notyet.core.record import as_dict
    from notyet.report.probe import masked

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
    return as_dict(status) | {"registrations": entries}
