"""One run of `notyet with`: load the gates, supervise the agent, react to Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notyet.agents import ACP, open_session, reopen
from notyet.agents.acp import AcpSession
from notyet.cli.progress import waiting
from notyet.cli.recovery import resume_command, task_of_session
from notyet.cli.signals import ended_in_order
from notyet.cli.with_agent.keys import Presses
from notyet.cli.with_agent.screen import Screen
from notyet.config.load import Setup, load, retention
from notyet.config.off import switched_off
from notyet.core.event import StopEvent, Usage
from notyet.core.gate import machine_of
from notyet.core.limits import History, limit_in_force
from notyet.core.plan import select
from notyet.core.record import as_dict, replace
from notyet.core.remote import is_remote
from notyet.core.text import visible
from notyet.engine.from_project import supervising_engine
from notyet.errors import NotyetError, Refused
from notyet.ledger.ledger import Ledger
from notyet.run.groups import adopt_orphans, sweep
from notyet.supervise import Supervisor, SupervisorSettings
from notyet.supervise.actions import PROGRAM, recover

if TYPE_CHECKING:
    import argparse
    from collections.abc import Coroutine
    from typing import Any

    from notyet.core.gate import Gate
    from notyet.core.session import Session, Turn
    from notyet.core.task import Figures, Result
    from notyet.engine.engine import Engine
    from notyet.supervise import Handle, Progress

_AFTER_KILL = 12.0  # seconds after which we leave, even if the agent still runs
_GRACE = 1.0  # seconds in which the success of a script may follow its error
_QUICK, _SLOW = 0.5, 2.0  # seconds for a sweep, while a user waits and else
_BEGUN = {"accepted", "text", "tool"}  # progress of an agent that has its prompt
_FIGURES = ("tool_calls", "turns", "duration_ms")  # that are summed up, beside the usage


@dataclass
class InForce:
    """The gates in force, and why there is none."""

    setup: Setup = field(default_factory=Setup)
    cause: str = "no-gate"  # why there is none, for `--json`
    words: str = "no gates are in force here, so nothing will be checked"  # and for the user

    @property
    def warnings(self) -> list[str]:
        """Warnings about the files with gates, for the user."""
        return [*self.setup.warnings, *self.setup.distrust]


def load_gates(cwd: str, agent: str, workspace: str, max_blocks: int | None) -> InForce:
    """Load the gates in force. Raises Refused if the agent's files cannot be checked.

    This may connect to another machine, so it runs before the event loop, and Ctrl-C ends it.
    """
    if os.environ.get("NOTYET_INSIDE"):
        words = "off because a gate runs this, and a gate's own agent is not gated"
        return InForce(cause="inside", words=words)
    off = switched_off(cwd, os.environ)
    if off:
        return InForce(cause="off", words=off)
    what = visible(workspace) if is_remote(workspace) else "the gates"
    with waiting(f"looking at {what} ..."):
        setup = load(cwd, "notyet", os.environ, agent=agent, workspace=workspace)
    if is_remote(workspace) and setup.workspace_problem:
        raise Refused(f"{visible(workspace)} cannot be read: {setup.workspace_problem}")
    if max_blocks is not None:
        setup = replace(setup, limits={**setup.limits, "max_blocks": max_blocks})
    is_untrusted = setup.distrust and not setup.gates
    return InForce(setup=setup, cause="untrusted" if is_untrusted else "no-gate")


class Totals:
    """The figures of all runs of the agent together."""

    def __init__(self) -> None:
        self.totals: dict[str, Any] = dict.fromkeys(_FIGURES, 0) | {"usage": as_dict(Usage())}
        self._counted: set[int] = set()

    def add(self, run: int, spent: Turn | Figures) -> None:
        """Add the figures of a run, once."""
        if run in self._counted:
            return
        self._counted.add(run)
        for name in _FIGURES:
            self.totals[name] += getattr(spent, name)
        for name, value in as_dict(spent.usage).items():
            self.totals["usage"][name] += value


class With:
    """Everything about one call of the command."""

    def __init__(self, args: argparse.Namespace, prompt: str, cwd: str) -> None:
        self._args = args
        self._prompt = prompt
        self._cwd = cwd
        self._agent, _, script = args.agent.partition(":")
        self._script = script if self._agent != ACP else ""
        self._command = shlex.split(script) if self._agent == ACP else []
        self.screen = Screen(self._agent)
        self.signalled = 0  # the exit code for the signal that ended it
        self._gates = InForce()
        self._warnings: list[str] = []
        self._session: Session | None = None
        self._supervisor: Supervisor | None = None
        self._handle: Handle | None = None
        self._main: asyncio.Task[Any] | None = None
        self._presses: Presses | None = None
        self._count = 0  # of presses
        self._asides: set[asyncio.Task[Any]] = set()
        self._figures = Totals()
        self._has_begun = False
        self._interrupted_text = ""  # what the agent had said when it was interrupted

    def run(self) -> Result | None:
        """Run the agent to its end; return None if it was interrupted before it began.

        Raises NotyetError, and Refused if its files cannot be checked.
        """
        adopt_orphans()
        args = self._args
        self._gates = load_gates(self._cwd, self._agent, args.workspace, args.max_blocks)
        self._warnings += self._gates.warnings
        with ended_in_order(self._sweep):
            try:
                return asyncio.run(self._work())
            except asyncio.CancelledError:
                return None

    def summary(self, result: Result, code: int) -> dict[str, Any]:
        """Return what `--json` prints; figures are of all runs together."""
        self._figures.add(result.generation, result.last_run)
        known = as_dict(result) | self._figures.totals
        if result.stop_reason == "no-gate" or not known["stop_reason"]:
            done = self._gates.cause if result.stop_reason else None
            known["stop_reason"] = done if result.ending == "done" else result.ending
        known["text"] = result.text or self._interrupted_text
        known["warnings"] = [*self._warnings, *result.warnings]
        return {
            "task": known.pop("task_id"),
            "session": (self._session.id if self._session else None) or known["session_id"],
            "agent": self._agent,
            "workspace": self._workspace,
            "exit_code": code,
            **{name: known.pop(name) for name in ("outcome", "ending", "steers", "text")},
            "seconds": round(self.screen.seconds, 3),
            **{name: value for name, value in known.items() if name != "session_id"},
        }

    @property
    def _workspace(self) -> str:
        named = self._args.workspace
        return str(named if is_remote(named) else self._gates.setup.workspace)

    async def _work(self) -> Result:
        self._main = asyncio.current_task()
        ledger = Ledger()
        with suppress(NotyetError):  # `load` reports what is wrong with the user's file
            ledger.retention = retention(os.environ)
        supervisor = Supervisor(
            self._engine(ledger),
            ledger,
            reopen,
            # A program that has exited with an error will not come back with a success.
            settings=SupervisorSettings(grace=_GRACE if self._script else 0.0),
            on_progress=self._on_progress,
            gate_progress=self.screen.gate_progress,
            program=PROGRAM,
        )
        loop, keyboard = asyncio.get_running_loop(), self._args.prompt != "-"
        with Presses(loop, self._press, with_keyboard=keyboard) as self._presses:
            async with supervisor:
                self._supervisor = supervisor
                for found in await recover(supervisor, ledger):
                    self.screen.say(found)
                for warning in ledger.connection.take_warnings():
                    self._warnings.append(warning)
                    self.screen.warn(warning)
                self._session = open_session(
                    self._agent,
                    cwd=self._cwd,
                    args=[self._script] if self._script else [*self._command, *self._args.rest],
                    session=self._args.resume,
                )
                if isinstance(self._session, AcpSession):
                    self._session.permit = self._permit
                if self._args.resume:
                    self._check_resumable(ledger, self._session)
                return await self._drive(supervisor, self._session)

    def _engine(self, ledger: Ledger) -> Engine:
        """Return the engine, and show the gates that the agent will meet."""
        for warning in self._warnings:
            self.screen.warn(warning)
        engine = supervising_engine(self._gates.setup, os.environ, ledger, self.screen.warn)
        stop = StopEvent(scope="agent", host="notyet", session_id="-", cwd=self._cwd)
        names = [_name(gate) for gate in select(stop, self._gates.setup.gates)]
        if names:
            self.screen.gates(names, limit_in_force(engine.limits, History(), 0).number)
        else:
            self.screen.say(self._gates.words)
        return engine

    async def _drive(self, supervisor: Supervisor, session: Session) -> Result:
        self._handle = await supervisor.launch(
            session,
            self._prompt,
            label=self._args.label,
            cwd=self._cwd,
            workspace=self._args.workspace or self._workspace,
            timeout=self._args.timeout,
        )
        self.screen.begin(self._handle.task_id, self._args.label or self._prompt)
        result = await self._handle.result()
        self.screen.ended(result)
        again = resume_command(
            session.ref(),
            result.session_id,
            self._cwd,
            script=self._script,
            workspace=self._args.workspace,
        )
        went_well = result.ending == "done" and result.outcome in {"passed", "skipped"}
        if again and self._has_begun and not went_well:
            self.screen.say(f"to go on with this session: {again}")
        return result

    async def _permit(self, what: str) -> bool:
        """Answer an agent that asks whether it may do something, as `--permit` says."""
        if self._args.permit != "ask":
            is_allowed = bool(self._args.permit == "allow")
        elif self._presses is None or not self._presses.has_keyboard:
            self.screen.say(f"denied, because there is no terminal to ask (--permit): {what}")
            return False
        else:
            self.screen.say(f"may the agent do this? y or n: {what}")
            is_allowed = await self._presses.answer()
        self.screen.say(f"{'allowed' if is_allowed else 'denied'}: {what}")
        return is_allowed

    def _check_resumable(self, ledger: Ledger, session: Session) -> None:
        """Refuse a session that does not exist, or that another task works in. Raises Refused."""
        name, path = self._args.resume, session.transcript()
        if self._script and not os.path.exists(path or ""):  # other agents say so themselves
            raise Refused(f"scripted does not have the session {name}; see: notyet tasks")
        task = task_of_session(ledger, self._agent, name)
        if task:
            raise Refused(
                f"task {task} works in the session {name}; wait for it, or send it "
                f'a message with: notyet tasks steer {task} "..."'
            )

    def _on_progress(self, progress: Progress) -> None:
        if self._handle is not None and progress.task_id == self._handle.task_id:
            self._has_begun |= progress.kind in _BEGUN
            if progress.turn is not None and progress.kind == "turn":
                self._figures.add(progress.generation, progress.turn)
                is_cut = progress.turn.stop_reason == "cancelled"
                self._interrupted_text = progress.turn.text if is_cut else ""
        self.screen.on_progress(progress)

    # -- Ctrl-C, Escape and signals

    def _press(self, number: int) -> None:
        """Interrupt at the first press, kill at the second, leave at the third."""
        self._count += 1
        self.signalled = 128 + number
        if self._handle is None or self._supervisor is None:
            if self._main is not None and self._count == 1:
                self._main.cancel()
            elif self._count > 1:
                self._leave()
            return
        match self._count:
            case 1:
                self.screen.say("interrupting the agent; press again to kill it")
                self._start(self._supervisor.interrupt(self._handle))
            case 2:
                self.screen.say("killing the agent")
                asyncio.get_running_loop().call_later(_AFTER_KILL, self._leave)
                self._start(self._supervisor.kill(self._handle))
                if self._session is not None:
                    self._start(self._session.abort())  # by force
            case _:
                self._leave()

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._asides.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.screen.warn(f"that did not work: {task.exception()}")

    def _leave(self) -> None:
        """End this process at once; the watchdog of the agent ends the agent."""
        if self._presses is not None:
            self._presses.restore_terminal()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._sweep()
        self.screen.close()
        os._exit(self.signalled)

    def _sweep(self) -> None:
        """End all processes that the agent and the gates left behind."""
        sweep(_QUICK if self._count else _SLOW)


def _name(gate: Gate) -> str:
    """Return a gate's name, and its machine if that is another one."""
    place = machine_of(gate)
    return f"{gate.name} on {place.destination}" if place else gate.name
