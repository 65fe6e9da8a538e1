"""`notyet status --why`: for one stop, which gates would run, and why the others would not.

The hook's own code finds out, up to the gates; nothing runs and nothing is recorded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notyet.config.load import NO_LOOK
from notyet.core.event import child_key
from notyet.core.gate import EVERY_AGENT, definition_of, machine_of, why_not
from notyet.core.limits import History, Limits, open_turn
from notyet.core.matcher import fits
from notyet.core.plan import HANDED_BACK, Wanted, plan, select
from notyet.core.verdict import skipped
from notyet.engine.stop import NO_SESSION
from notyet.engine.unchanged import files_of, scope_key, trees_of
from notyet.errors import LedgerError, LedgerNeedsRepair
from notyet.git.fingerprint import PATIENCE
from notyet.hook.hook import PROBE, Hook, completed, reply_of
from notyet.hook.payload import HostCall, Options
from notyet.ledger.ledger import Ledger
from notyet.ledger.passes import passed_at, passed_where
from notyet.ledger.past_histories import preview_begin
from notyet.run.drive import drive_sync
from notyet.status.notyet_faults import ledger_faults
from notyet.status.overview import DEFAULT, limits_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.config.load import Setup
    from notyet.core.event import StartEvent, StopEvent
    from notyet.core.gate import Gate
    from notyet.core.plan import Plan
    from notyet.core.verdict import Decision
    from notyet.hosts.host import Reply

_OWN_WORK = "the agent is one of the host's own"
_BACKGROUND = "other agents of the session are running (wait_for_background)"
# Not "it never passed": a failure removes the pass on the same files.
_NEVER = "no pass of it is remembered"
_PASSED = {
    "": _NEVER,
    "files": "it passed on other files",
    "environment": "it passed with another PATH or the like",
}
_UNKNOWN = "it is unknown whether its files changed"
_ELSEWHERE = "its files are on another machine, which was not connected to"


@dataclass(frozen=True, kw_only=True)
class Unchanged:
    """Why a gate is skipped (`cause` is "passed" or "unchanged"), or why it runs after all."""

    cause: str = ""
    because: str
    at: float = 0.0  # when it passed
    stop: int = 0  # at which stop; 0: by hand


@dataclass(frozen=True, kw_only=True)
class GateWhy:
    """One gate, and whether it would run."""

    gate: str
    file: str = ""
    line: int = 0
    applies: bool
    because: str
    asked: bool = False
    spared: Unchanged | None = None

    @property
    def is_skipped(self) -> bool:
        """Whether it would be skipped because its files did not change."""
        return self.spared is not None and bool(self.spared.cause)


@dataclass(frozen=True, kw_only=True)
class Why:
    """What a stop would meet."""

    host: str
    scope: str
    session_id: str
    agent: str  # empty for a main agent
    gates: tuple[GateWhy, ...]
    cause: str = ""  # why no gate runs, as the ledger would record it
    skipped: str = ""  # the same in words
    used: int | None = 0  # send-backs in this turn; None: unknown
    limit: int = 0
    limit_source: str = ""  # the setting, and where it is set
    warnings: tuple[str, ...] = ()
    off: str = ""  # how notyet is switched off; empty if it is not


class ExplainHook(Hook):
    """A call of the hook that runs no gate and records nothing; `cause`: why no gate would run."""

    sees_all = True

    def __init__(
        self,
        event: StopEvent,
        host: str,
        content: bytes,
        change: Callable[[StopEvent], StopEvent],
        workspace: str = "",
    ) -> None:
        environ = {name: value for name, value in os.environ.items() if name != PROBE}
        super().__init__(
            HostCall(Options(["--host", host] if host else []), environ, lambda: content)
        )
        self.host, self.stop = event.host, event
        self.cause = ""
        self.words: tuple[str, ...] = ()
        self._change, self.workspace = change, workspace
        self._setup: Setup | None = None

    @property
    def setup(self) -> Setup:
        """What is in force where the agent works."""
        return self.load(self.stop, NO_LOOK) if self._setup is None else self._setup

    def look(self) -> None:
        """Do what the hook does, up to its gates."""
        reply_of(self)
        self.stop = completed(self.stop, self.setup)

    def answer_stop(self, event: StopEvent) -> Reply:
        """Answer a stop; options replace what its payload says."""
        self.event = self.stop = self._change(event)
        return super().answer_stop(self.stop)

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

    def record_skip(self, cause: str, words: Sequence[str]) -> int:
        """Keep why the agent may stop unchecked."""
        self.cause, self.words = cause, tuple(words)
        return 0

    def repaired(self) -> Sequence[str]:
        """Return nothing: no ledger is repaired here."""
        return ()

    def recover(self, error: Exception) -> Reply:
        """Show a fault of ours."""
        raise error


def why(hook: ExplainHook, environ: Mapping[str, str]) -> Why:
    """Return for every gate in force why it applies to a stop, or why not."""
    hook.look()
    event, setup = hook.stop, hook.setup
    cause, words = _allowed(hook, environ)
    history: History | None = None
    damage = ""
    ledger = Ledger(patience=1.0, repair=False)
    try:
        try:
            history = _history_now(ledger, event)
        except LedgerNeedsRepair as error:  # nothing in it is known then
            damage = str(error)
        except LedgerError as error:
            cause, words = (cause, words) if cause else ("ledger", str(error))
        unchanged = _unchanged_now(event, select(event, setup.gates), ledger, damage)
    finally:
        ledger.close()
    known = open_turn(History(), event) if history is None else history
    gates = select(event, setup.gates)
    planned = plan(event, gates, known, Limits(**setup.limits), setup.gates)
    cause, words = (cause, words) if cause else _skipped(event, planned)
    notes = [*hook.warnings, *setup.distrust, *setup.warnings, *planned.warnings]
    notes += [f"{damage} and counts anew"] if damage else []
    return Why(
        host=event.host,
        scope=event.scope,
        session_id=event.session_id,
        agent=child_key(event) if event.scope == "subagent" else "",
        gates=tuple(_gate(gate, planned, words, unchanged) for gate in setup.gates),
        cause=cause,
        skipped=words,
        used=None if history is None else history.blocks,
        limit=planned.limit.number,
        limit_source=_source(planned.limit.source, setup, environ),
        warnings=tuple(note for note in dict.fromkeys(notes) if note not in hook.words),
        off=words.removeprefix("notyet is ") if cause == "off" else "",
    )


def _allowed(hook: ExplainHook, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the cause for which the hook runs no gate, and its words; both empty if it does."""
    if hook.cause:
        words = f"notyet is {' '.join(hook.words)}" if hook.cause == "off" else ""
        return hook.cause, words or "; ".join(hook.words)
    for found in ledger_faults(environ):
        if found.level == "fault":  # a stop could not be counted
            return "ledger", found.what[0].lower() + found.what[1:].rstrip(".")
    return "", ""


def _gate(gate: Gate, planned: Plan, skipped: str, unchanged: Mapping[str, Unchanged]) -> GateWhy:
    event = planned.event
    because = _OWN_WORK if event.internal else why_not(gate, event)
    left_out = "" if because else _left_out(gate, planned, skipped)
    found = None if because or left_out else unchanged.get(gate.name)
    return GateWhy(
        gate=gate.name,
        file=gate.source.file if gate.source is not None else "",
        line=gate.source.line if gate.source is not None else 0,
        applies=not because,
        because=because or left_out or _matched(gate, event),
        asked=not because and not left_out and not (found and found.cause),
        spared=found,
    )


def _left_out(gate: Gate, planned: Plan, skipped: str) -> str:
    """Return why a gate that applies does not run, files aside; empty if it does."""
    if skipped or any(gate in stage for stage in planned.stages):
        return skipped
    if planned.handed_back and gate.native:
        return f"the agent hands back (it says {HANDED_BACK})"
    return f"the agent used all its send-backs ({planned.limit.number})"


def _matched(gate: Gate, event: StopEvent) -> str:
    if event.scope == "agent":
        return "it is for the main agent"
    if gate.match.agents == EVERY_AGENT:
        return "it is for every subagent"
    return fits(gate.match.kind, gate.match.agents, event)


def _skipped(event: StopEvent, planned: Plan) -> tuple[str, str]:
    if event.internal:
        return "no-gate", _OWN_WORK
    if not planned.gates:
        return "no-gate", "no gate applies"
    return (planned.skipped, _BACKGROUND) if planned.skipped else ("", "")


def _source(source: str, setup: Setup, environ: Mapping[str, str]) -> str:
    """Return the setting that a limit comes from, and where it is set."""
    name = source.split(maxsplit=1)[0]
    where = {one["name"]: one["source"] for one in limits_here(setup, environ)}.get(name, "")
    return f"{source}, {'by default' if where == DEFAULT else where}" if where else source


def _history_now(ledger: Ledger, event: StopEvent) -> History:
    """Return the history in which this stop would happen. Raises LedgerError."""
    path = ledger.path
    # A stop that is creating the ledger leaves an empty file for a moment.
    if os.path.isdir(path) or (os.path.exists(path) and os.path.getsize(path) > 0):
        return preview_begin(ledger, event).history
    return open_turn(History(), event)


def _unchanged_now(
    event: StopEvent, gates: Sequence[Gate], ledger: Ledger, damage: str = ""
) -> dict[str, Unchanged]:
    """Return for each gate whether its files changed (N1); run none, and connect to no machine.

    A ledger with a `damage` is not read: the next stop sets it aside.
    """
    known = {gate.name: Unchanged(because="it runs always") for gate in gates}
    local = []
    for gate in gates:
        if gate.when == "changed":
            is_remote = bool(event.workspace) or machine_of(gate) is not None
            known[gate.name] = Unchanged(because=_ELSEWHERE if is_remote else _UNKNOWN)
            local += [] if is_remote else [gate]
    wanted = _wanted(event, local)
    if damage or not os.path.exists(ledger.path):
        return known | {one.gate: Unchanged(because=damage or _NEVER) for one in wanted}
    try:
        recalled = ledger.recall(event, wanted)
        return known | {one.gate: _recalled(one, recalled, ledger) for one in wanted}
    except LedgerError as error:
        return known | {one.gate: Unchanged(because=str(error)) for one in wanted}


def _wanted(event: StopEvent, gates: Sequence[Gate]) -> list[Wanted]:
    """Return the keys of passes on the files as they are now."""
    files = {gate.name: files_of(gate, event) for gate in gates}
    trees = drive_sync(trees_of(files, PATIENCE)) if files else {}
    return [
        Wanted(
            gate=gate.name,
            definition=definition_of(gate),
            scope=scope_key(files[gate.name]),
            tree=trees[gate.name],
        )
        for gate in gates
        if trees[gate.name]
    ]


def _recalled(one: Wanted, recalled: Mapping[str, str], ledger: Ledger) -> Unchanged:
    cause = recalled.get(one.gate, "")
    if cause == "unchanged":
        return Unchanged(cause=cause, because="no file changed since the agent began")
    if cause:
        at, stop = ledger.connection.read(lambda db: passed_at(db, one))
        return Unchanged(cause=cause, because="it passed on these very files", at=at, stop=stop)
    return Unchanged(because=_PASSED[ledger.connection.read(lambda db: passed_where(db, one))])
