"""Gates at the end of a turn behind the proxy: which apply, how they run, what the client sees."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from notyet.acp import wire
from notyet.config.find import state_folder, user_folder
from notyet.config.load import Setup, load
from notyet.config.off import switched_off
from notyet.core.event import StartEvent, StopEvent
from notyet.core.message import note, notes
from notyet.core.record import replace
from notyet.core.text import clean, first_line
from notyet.core.verdict import UNCHECKED, Allow, Block, Halt, Problem, in_log, skipped
from notyet.engine.from_project import supervising_engine
from notyet.engine.snapshots import PATIENCE, snapshot_roots, take_snapshots
from notyet.engine.unchanged import remember_start
from notyet.errors import LedgerError, NotyetError
from notyet.run.drive_async import drive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.acp.heard import Facts
    from notyet.acp.marks import Marks
    from notyet.acp.turns import Session, Turn
    from notyet.acp.wire import Message
    from notyet.core.verdict import Decision, Report
    from notyet.hosts.acp_agents import AcpAgent
    from notyet.ledger.ledger import Ledger

HOST = "acp"  # of the events of agents that are no host of ours
_LOOK = 5.0  # seconds to look at the files when a session begins
_MOST_SHOWN = 4_000  # characters of a gate's output that the client is shown


class Gating:
    """Runs the gates of the folders that sessions work in."""

    def __init__(
        self,
        ledger: Ledger,
        agent: AcpAgent | None,
        log: Callable[[str], None],
        *,
        marks: Marks | None = None,
        max_blocks: int | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """`agent` is None for one that we do not know. Hooks of its own files are its own (J8)."""
        self._ledger = ledger
        self._known = agent
        self._log = log
        self._marks = marks
        self._max_blocks = max_blocks
        self._environ = environ
        self._agent = ""  # as it calls itself
        self._said: set[str] = set()  # warnings

    @property
    def sums_up(self) -> bool:
        """Whether the agent's token counts are those of the whole session."""
        return self._known is not None and self._known.sums_up

    @property
    def host_name(self) -> str:
        """The host of our events: an agent's own hook counts under the same name."""
        return self._known.host if self._known is not None else HOST

    def agent_is(self, info: Message) -> None:
        """Note what the agent says about itself."""
        name = info.get("title") or info.get("name")
        self._agent = str(name) if name else ""

    def starts(self, session: Session, *, is_new: bool) -> asyncio.Task[None] | None:
        """Note that a session was opened or loaded: what its gates compare with begins here."""
        if self._marks is not None:
            if session.counted_as == session.name:
                session.counted_as = self._marks.counted_as(session.name)
            try:
                self._marks.add(session.name, session.counted_as)
            except OSError as error:
                self._warn(f"a stop may be gated twice, by the agent's own hook too: {error}")
        if not is_new or self._environ.get("NOTYET_INSIDE"):
            return None  # it began before
        return asyncio.get_running_loop().create_task(self._start(session))

    async def _start(self, session: Session) -> None:
        """Remember the files that a session begins with (N1), and say what is not checked."""
        try:
            if switched_off(session.cwd, self._environ):
                return
            setup = await asyncio.to_thread(self._setup, session.cwd)
            for line in (*setup.distrust, *setup.warnings):
                self._warn(line)
            event = StartEvent(host=self.host_name, session_id=session.name, cwd=session.cwd)
            roots = snapshot_roots(event, setup.gates, user_folder(self._environ))
            seen = await drive(remember_start(event, setup.gates, self._ledger, _LOOK, roots=roots))
            if roots and seen == "first":
                state = state_folder(self._environ)
                await asyncio.to_thread(take_snapshots, state, event, roots, PATIENCE)
        except (NotyetError, OSError) as error:
            self._warn(f"the files at the start of the session were not recorded: {error}")

    def _setup(self, cwd: str) -> Setup:
        setup = load(cwd, "notyet", self._environ, agent=self.host_name)
        if self._max_blocks is not None:
            setup = replace(setup, limits={**setup.limits, "max_blocks": self._max_blocks})
        return setup

    async def check(
        self, turn: Turn, end: Message, show: Callable[[bytes], None]
    ) -> Decision | None:
        """Decide a turn, and show the client what runs and what comes of it."""
        session, version = turn.session, 1 if "sessionUpdate" not in end else 2
        facts = turn.heard.read(session.name)
        event = turn.event(self.host_name, end, facts, self._agent)
        if self._environ.get("NOTYET_INSIDE"):
            return None
        off = switched_off(session.cwd, self._environ)
        if off:
            return await self._skip(turn, event, show, "off", off)
        if not await asyncio.to_thread(os.path.isdir, session.cwd):
            return await self._skip(
                turn, event, show, "unreadable", f"the folder {session.cwd} is gone"
            )
        setup = await asyncio.to_thread(self._setup, session.cwd)
        if not setup.gates and setup.distrust:
            return await self._skip(turn, event, show, "untrusted", *setup.distrust)
        display = Display(version, session.name, turn.turn_id, show)
        turn.close_display = display.cancelled
        engine = supervising_engine(setup, self._environ, self._ledger, self._warn)
        failed = self._failed_call(session, end, facts)
        if failed and engine.asks(event):
            return await self._skip(turn, event, show, "model-error", failed)
        if failed:
            return None
        decision = await engine.check(event, progress=display)
        display.decided(decision)
        for line in (*setup.distrust, *setup.warnings):
            self._warn(line)
            if line not in session.said and line not in note(decision):
                session.said.add(line)
                display.say(line)
        return decision

    def _failed_call(self, session: Session, end: Message, facts: Facts) -> str:
        signs = self._known.failures if self._known is not None else ()
        return session.spending.failed_call(end, facts, sums_up=self.sums_up, signs=signs)

    async def _skip(
        self, turn: Turn, event: StopEvent, show: Callable[[bytes], None], cause: str, *words: str
    ) -> Decision:
        """Let a turn end unchecked: record it, and say so to the client."""
        decision = skipped(cause, *words)
        number, said = 0, "; ".join(words)
        try:
            number = await asyncio.to_thread(self._ledger.skip, event, decision)
        except LedgerError as error:
            said += f" (not recorded: {error})"
        line = f"{UNCHECKED}: {said}{in_log(number)}"
        self._warn(line)
        message = f"notyet-{turn.turn_id[:8]}-skip"
        show(wire.words(turn.session.name, message, f"\n\n**notyet**: {clean(line)}\n"))
        return replace(decision, stop=number)

    def _warn(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._log(line)


class Display:
    """Shows gates to the client, each as a tool call, while they run and when they have ended."""

    def __init__(
        self, version: int, session: str, turn_id: str, show: Callable[[bytes], None]
    ) -> None:
        self._version = version
        self._session = session
        self._prefix = f"notyet-{turn_id[:12]}-{os.urandom(3).hex()}"
        self._show = show
        self._running: dict[str, str] = {}  # gates that run, and their calls
        self._number = 0

    def __call__(self, gate: str, report: Report | None) -> None:
        """Show that a gate starts, or what it reports."""
        if report is None:
            self._running[gate] = call = self._next()
            self._call(call, f"notyet: {gate}", "in_progress", new=True)
            return
        call = self._running.pop(gate, "")
        title, status = _title(gate, report)
        self._call(call or self._next(), title, status, _output(report), new=not call)

    def decided(self, decision: Decision) -> None:
        """Show what the gates came to; say what is not passed, and what else the user is told."""
        verdict = decision.verdict
        line, *others = notes(decision)
        if isinstance(verdict, Block):
            title = f"notyet: sent back {decision.count} of {decision.limit}"
            self._call(self._next(), title, "failed", verdict.prompt, new=True)
        elif decision.outcome == "passed" and line:
            self._call(self._next(), line, "completed", new=True)
        else:
            if isinstance(verdict, Halt):
                line = line or f"notyet: ended by a gate: {verdict.reason or 'no reason given'}"
            others.insert(0, line)
        for text in filter(None, others):
            self.say(text)

    def say(self, line: str) -> None:
        """Show a line as words of the agent."""
        text = f"**notyet**: {clean(line).removeprefix('notyet: ')}"
        self._show(wire.words(self._session, self._next(), f"\n\n{text}\n"))

    def cancelled(self) -> None:
        """Show that gates were ended before they had an answer."""
        for gate, call in self._running.items():
            self._call(call, f"notyet: {gate} cancelled", "failed", new=False)
        self._running = {}

    def _next(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number}"

    def _call(self, call: str, title: str, status: str, text: str = "", *, new: bool) -> None:
        self._show(
            wire.tool_call(
                *(self._version, self._session, call),
                title=clean(title),
                status=status,
                text=clean(text),
                new=new,
            )
        )


def _title(gate: str, report: Report) -> tuple[str, str]:
    """Return the title and the status of a gate's tool call."""
    how = f"{report.seconds:.1f} s"
    if isinstance(report.answer, Allow):
        return f"notyet: {gate} passed ({how})", "completed"
    if isinstance(report.answer, Problem):
        return f"notyet: {gate} NOT CHECKED: {first_line(str(report.answer))}", "failed"
    if report.answer is None:
        return f"notyet: {gate} did not run", "completed"
    how = f"{report.exit}, {how}" if report.exit else how
    observed = ", only observed" if report.observed else ""
    return f"notyet: {gate} failed ({how}{observed})", "failed"


def _output(report: Report) -> str:
    text = report.output or getattr(report.answer, "prompt", "") or ""
    return text if len(text) <= _MOST_SHOWN else f"...\n{text[-_MOST_SHOWN:]}"
