"""`notyet status`: are agents checked here? By which gates and hosts, and what is wrong."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from notyet.cli.hosts import add_host
from notyet.cli.person import refuse
from notyet.cli.signals import ended_in_order
from notyet.cli.stop_options import add_event_options, described_stop, read_stop
from notyet.cli.streams import json_line
from notyet.cli.terminal import Style, folded, outcome_cell, table, waiting, width
from notyet.config.records import work_tree
from notyet.core.remote import remote_from
from notyet.core.text import visible
from notyet.errors import NotyetError
from notyet.hosts import host_named
from notyet.install.settings import installable
from notyet.status.overview import near
from notyet.status.report import StatusReport, look_at, not_found, without_unused
from notyet.status.why import ExplainHook, why
from notyet.times import age, when

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from notyet.cli.terminal import Cell
    from notyet.status.answer import Answer
    from notyet.status.fault import Fault
    from notyet.status.overview import GateHere
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
_ABOUT_STOP = ("as_host", "event", "agent_type", "agent_id", "agent_name", "payload", "workspace")
_MOST_NAMED = 4  # hosts that are not here
_ANSWERS = {"yes": "green", "partly": "yellow", "perhaps": "yellow", "no": "red"}
_LEVELS = {"fault": "red", "warning": "yellow", "note": "dim"}
_INDENT = "  "
_LONGEST = 1_000  # characters of a reason
_LABEL = 10  # columns of the word at the start of a line
_TEXT = len(_INDENT) + _LABEL + 2  # columns before what follows it


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
        _Screen().show(found)
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


class _Screen:
    """Prints what was found; control characters are escaped."""

    def __init__(self) -> None:
        self._style = Style(sys.stdout)
        self._paint = self._style.paint

    def show(self, found: StatusReport) -> None:
        """Print the answer first, then gates and limits, hosts, and what happened recently."""
        self._answer(found.answer)
        for one in found.faults:
            if one.what not in found.answer.says:
                self._fault(one)
        self._table(*_gate_table(found.gates, len(found.setups | found.elsewhere), found.cwd))
        linked = [path for setup in found.setups.values() for path in setup.linked]
        if linked:
            main = visible(work_tree(linked[0])[1])
            print(self._paint(f"  a work tree of {main}, with its trust", "dim"))
        if found.gates:
            rows = [
                (one["name"], _value(one["value"]), near(one["source"], found.cwd))
                for one in found.limits
            ]
            self._table(("limit", "value", "from"), rows)
        for status in found.hosts:
            if status.is_here:
                self._host(status)
        absent = [status.title for status in found.hosts if not status.is_here]
        if absent:
            is_long = len(absent) > _MOST_NAMED
            names = f"{len(absent)} hosts (notyet hosts)" if is_long else ", ".join(absent)
            print(self._paint(f"\nnot found: {names}", "dim"))
        self._recent(found)

    def _answer(self, answer: Answer) -> None:
        _, _, says = answer.says.partition(": ")
        state = self._paint(answer.state.upper(), "bold", _ANSWERS[answer.state])
        print(f"{state}  {folded(visible(says), len(answer.state) + 2)}")
        for words in answer.but:
            print(f"{_INDENT}{self._paint('but', 'yellow')} {folded(visible(words), 6)}")
        if answer.fix:
            print(f"{_INDENT}{self._paint('fix:', 'dim')} {folded(visible(answer.fix), 7)}")

    def _recent(self, found: StatusReport) -> None:
        now = time.time()
        sessions = [
            (
                one["session_id"],
                one["agent_id"] or "main",
                one["host"],
                str(one["turn"]),
                f"{one['used']} of {one['limit']}",
                outcome_cell(one["outcome"]),
                f"{age(now - one['seen_at'])} ago",
            )
            for one in found.recent.sessions
        ]
        self._table(("session", "agent", "host", "turn", "sent back", "last", "seen"), sessions)
        decisions = [
            (str(one["id"]), when(one["at"]), outcome_cell(one["outcome"]), one["host"], one["why"])
            for one in found.recent.decisions
        ]
        self._table(("stop", "when", "outcome", "host", "why"), decisions)
        if found.recent.problem or found.variables:
            print()
        if found.recent.problem:
            wrong = f"{near(found.recent.path, '')} cannot be read: {found.recent.problem}"
            self._fact("ledger", visible(wrong))
        if found.variables:
            self._fact("variables", visible(", ".join(found.variables)))

    def _table(self, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        if rows:
            print()
            for line in table(head, rows, self._style, columns=width() - len(_INDENT)):
                print(f"{_INDENT}{line}")

    def _host(self, status: HostStatus) -> None:
        print()
        title = f"{status.title} {status.version}".strip()
        print(
            f"{self._paint(title, 'bold')}  {self._paint(visible(status.program), 'dim')}".rstrip()
        )
        places: dict[str, list[str]] = {}
        for entry in status.entries:
            events = places.setdefault(f"{near(entry.file.path, '')} ({entry.file.scope})", [])
            events += [] if visible(entry.event) in events else [visible(entry.event)]
        for place, events in places.items():
            self._fact("registered", f"{', '.join(events)} in {visible(place)}")
        probe = status.probe
        if probe is not None and not probe.problem:
            took = f"({probe.seconds:.2f} s)"
            self._fact("answer" if probe.asked else "reply", f"{visible(probe.says)} {took}")
        for found in status.faults:
            self._fault(found)

    def _fault(self, found: Fault) -> None:
        label = self._paint(f"{found.level:<{_LABEL}}", _LEVELS[found.level])
        print(f"{_INDENT}{label}  {folded(f'{visible(found.what)} [{found.code}]', _TEXT)}")
        for word, text in (("at", found.where), ("fix", found.fix)):
            if text:
                shown = folded(visible(text), _TEXT + len(word) + 2)
                print(f"{'':<{_TEXT}}{self._paint(f'{word}:', 'dim')} {shown}")

    def _fact(self, label: str, text: str) -> None:
        print(f"{_INDENT}{self._paint(f'{label:<{_LABEL}}', 'dim')}  {folded(text, _TEXT)}")


def _gate_table(
    gates: Sequence[GateHere], hosts: int, cwd: str
) -> tuple[tuple[str, ...], list[tuple[Cell, ...]]]:
    """Return the head and the rows of the table of gates, without columns that are empty."""
    columns = {
        "gate": [one.name for one in gates],
        "stage": [_stage(one) for one in gates],
        "for": [one.whom for one in gates],
        "runs": [_when(one) for one in gates],
        "timeout": [_span(one.timeout) for one in gates],
        "on": [remote_from(one.place).destination if one.place else "" for one in gates],
        "under": [_under(one, hosts) for one in gates],
        "from": [near(f"{one.file}:{one.line}" if one.line else one.file, cwd) for one in gates],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    return tuple(shown), list(zip(*shown.values(), strict=True))


def _under(one: GateHere, hosts: int) -> str:
    """Return under which hosts a gate runs; empty if it runs under all of them."""
    return "" if not one.trusted or len(one.hosts) == hosts else ", ".join(one.hosts)


def _stage(one: GateHere) -> str:
    if not one.trusted:
        return "not trusted"
    return f"{one.stage}, observes" if one.observe else str(one.stage)


def _when(one: GateHere) -> str:
    if one.when == "always":
        return "always"
    return f"{', '.join(one.paths)} changed" if one.paths else "files changed"


def _span(seconds: float | None) -> str:
    """Return a timeout as people write it in a file."""
    if seconds is None:
        return "none"
    for size, unit in ((3_600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g}{unit}"
    return f"{seconds:g}s"


def _value(value: object) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


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
