"""What the hook would do with a stop before it asks a gate, found out by the hook's own code."""

from __future__ import annotations

import os
import sys
import time

from notyet.cli.about_event import about, read
from notyet.cli.moments import age
from notyet.cli.status_show import INDENT, near
from notyet.cli.terminal import Style, one_line, table, waiting, width
from notyet.config.load import NO_LOOK
from notyet.core.plan import select
from notyet.core.text import visible
from notyet.core.verdict import skipped
from notyet.engine.stop import NO_SESSION
from notyet.errors import LedgerError, LedgerUnmended, NotyetError
from notyet.hook.main import Hook, answer_by, completed
from notyet.hook.payload import Call, Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from notyet.cli.about_event import About
    from notyet.cli.terminal import Cell
    from notyet.config.settings import Setup
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.limits import History
    from notyet.core.verdict import Decision
    from notyet.hosts import Reply
    from notyet.status.spared import Spared
    from notyet.status.why import GateWhy, Why

_OTHERS = "NOTYET_PROBE"  # of `notyet status` itself


class Looked(Hook):
    """A call of the hook that asks and records nothing; `cause` is why no gate would be asked."""

    sees_all = True

    def __init__(
        self, stop: About, event: StopEvent, environ: Mapping[str, str], workspace: str = ""
    ) -> None:
        argv = ["--host", stop.host] if stop.host else []
        kept = {name: value for name, value in environ.items() if name != _OTHERS}
        super().__init__(Call(Options(argv), kept, lambda: stop.content))
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
        """Go the way of the hook, as far as its gates."""
        answer_by(self)
        self.stop = completed(self.stop, self.setup)

    def stopping(self, event: StopEvent) -> Reply:
        """Answer a stop, with what the options say in place of what its payload says."""
        self.event = self.stop = self._about.changed(event)
        return super().stopping(self.stop)

    def load(self, event: StopEvent | StartEvent, _longest: float) -> Setup:
        """Return what is in force; no other machine is asked for it."""
        self._setup = super().load(event, NO_LOOK)
        return self._setup

    def check(self, event: StopEvent, setup: Setup) -> Decision:
        """Ask nobody; only say whether somebody would be."""
        if not select(event, setup.gates):
            return skipped("no-gate")
        if not event.session_id.strip():
            self.record_skip("no-session", (NO_SESSION,))
        return skipped("looked")

    def record_skip(self, cause: str, words: Sequence[str]) -> Sequence[str]:
        """Keep why the agent is let go unchecked."""
        self.cause, self.words = cause, tuple(words)
        return ()

    def repaired(self) -> Sequence[str]:
        """Return nothing: no ledger is repaired here."""
        return ()

    def recover(self, error: Exception) -> Reply:
        """Let whoever asks see a fault of ours."""
        raise error


_HEAD = ("gate", "now", "from", "because")
_NARROW = 30  # columns for reasons, at least
_LONGEST = 1_000  # characters of a reason


def explain(args: argparse.Namespace, cwd: str) -> int:
    """Say which gates a stop would meet; exit 1 when none would be in its way."""
    from notyet.core.plan import select
    from notyet.ledger.stops import Ledger
    from notyet.status.spared import spared_now
    from notyet.status.why import explained, history_now

    if args.host and args.as_host and args.host != args.as_host:
        said = f"{args.host} and --as {args.as_host} are two hosts; name one"
        print(f"notyet status: {said}", file=sys.stderr)
        return 2
    args.as_host = args.as_host or args.host
    try:
        stop = about(args, cwd)
        looked = Looked(stop, read(stop, os.environ), os.environ, args.workspace or "")
    except NotyetError as error:
        print(f"notyet status: {error}", file=sys.stderr)
        return 2
    looked.look()
    event, setup = looked.stop, looked.setup
    ledger = Ledger(patience=1.0, mends=False)
    let_go, damage = _let_go(looked), ""
    history: History | None = None
    try:
        try:
            history = history_now(ledger, event)
        except LedgerUnmended as error:  # then nothing of it is known, whatever can be read
            damage = str(error)
        except LedgerError as error:
            let_go = let_go if let_go[0] else ("ledger", str(error))
        with waiting("looking at the files ..."):
            spared = spared_now(event, select(event, setup.gates), ledger, damage)
        why = explained(event, setup, history, os.environ, spared, let_go=let_go)
    finally:
        ledger.close()
    notes = [*looked.said, *setup.distrust, *setup.warnings, *why.warnings]
    notes += [f"{damage} and counts anew"] if damage else []
    notes = [note for note in dict.fromkeys(notes) if note not in looked.words]
    if args.json:
        _print_json(why, notes)
    else:
        _print(why, notes, event)
    return 0 if any(gate.asked or _is_spared(gate) for gate in why.gates) else 1


def _let_go(looked: Looked) -> tuple[str, str]:
    """Return for which cause the hook asks nobody, and its words; both empty if it does ask."""
    if looked.cause == "off":
        return looked.cause, f"notyet is {' '.join(looked.words)}"
    if looked.cause:
        return looked.cause, "; ".join(looked.words)
    from notyet.status.own import ledger_faults

    for found in ledger_faults(os.environ):
        if found.level == "fault":  # then a stop cannot be counted, and nobody is asked
            return "ledger", found.what[0].lower() + found.what[1:].rstrip(".")
    return "", ""


def _print_json(why: Why, notes: Sequence[str]) -> None:
    from notyet.cli.streams import json_line
    from notyet.core.record import as_dict

    off = why.skipped.removeprefix("notyet is ") if why.cause == "off" else ""
    print(json_line({"why": as_dict(why) | {"off": off, "warnings": notes}}))


def _print(why: Why, notes: Sequence[str], event: StopEvent) -> None:
    style = Style(sys.stdout)
    who = f"subagent {why.agent}" if why.scope == "subagent" else "main agent"
    kind = f" ({event.agent_type})" if event.agent_type else ""
    print(visible(f"a stop of the {who}{kind} of {why.host}, session {why.session_id or '-'}"))
    if why.skipped:
        colour = "yellow" if why.cause in {"no-gate", "background"} else "red"
        print(style.paint(f"nothing is asked: {visible(why.skipped)}", colour))
    if why.gates:
        print()
        for line in _table(why.gates, style):
            print(f"{'':<{INDENT}}{line}")
        print()
    for line in notes:
        print(f"{style.paint('note:', 'dim')} {visible(line)}")
    source = why.limit_source.replace(os.getcwd() + "/", "")
    if why.used is None:
        said = f"how many of {why.limit} send-backs were used in this turn is not known ({source})"
    else:
        said = f"{why.used} of {why.limit} send-backs used in this turn ({source})"
    print(visible(said))


def _table(gates: Sequence[GateWhy], style: Style) -> list[str]:
    """Return a table in which reasons are folded: cut short they would be none."""
    import textwrap

    now, columns = time.time(), width() - INDENT
    cells = [(gate.gate, _word(gate), _place(gate)) for gate in gates]
    taken = sum(max(map(len, column)) + 2 for column in zip(*_plain(cells), strict=True))
    rows: list[tuple[Cell, ...]] = []
    for gate, cell in zip(gates, cells, strict=True):
        reason = one_line(_because(gate, now), _LONGEST)
        first, *more = textwrap.wrap(reason, max(_NARROW, columns - taken)) or [""]
        rows += [(*cell, first), *(("", "", "", part) for part in more)]
    return table(_HEAD, rows, style, columns=max(columns, taken + _NARROW))


def _plain(cells: list[tuple[str, tuple[str, str], str]]) -> list[tuple[str, str, str]]:
    return [_HEAD[:3], *((name, word, place) for name, (word, _), place in cells)]


def _place(gate: GateWhy) -> str:
    return near(f"{gate.file}:{gate.line}" if gate.line else gate.file, os.getcwd())


def _word(gate: GateWhy) -> tuple[str, str]:
    if gate.asked:
        return "asked", "green"
    if _is_spared(gate):
        return "spared", "cyan"
    return ("not asked", "yellow") if gate.applies else ("not for it", "dim")


def _is_spared(gate: GateWhy) -> bool:
    return gate.spared is not None and bool(gate.spared.cause)


def _because(gate: GateWhy, now: float) -> str:
    if gate.spared is None:
        return gate.because
    return f"{gate.because}; {_files(gate.spared, now)}"


def _files(spared: Spared, now: float) -> str:
    if not spared.at:
        return spared.because
    by = f" (stop {spared.stop})" if spared.stop else ""
    return f"{spared.because} {age(now - spared.at)} ago{by}"
