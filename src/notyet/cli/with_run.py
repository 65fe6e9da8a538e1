"""The gates of one run of `notyet with`: what is in force, and what its user is told of that."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from notyet.cli.supervising import PROGRAM, recover, resume_command
from notyet.cli.with_keys import Presses
from notyet.cli.with_screen import Screen
from notyet.core.event import StopEvent, Usage
from notyet.core.gate import place_of
from notyet.core.limits import History, limit_in_force
from notyet.core.plan import select
from notyet.core.record import as_dict, replace
from notyet.core.remote import is_remote
from notyet.core.text import visible
from notyet.errors import NotyetError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from notyet.core.gate import Gate
    from notyet.core.session import Session, Turn
    from notyet.core.task import Result
    from notyet.engine.engine import Engine
    from notyet.ledger.ledger import Ledger
    from notyet.supervise import Handle, Progress, Supervisor


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
        from notyet.cli.terminal import waiting
        from notyet.config.load import load
        from notyet.config.off import switched_off

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
        from notyet.engine.from_project import supervising_engine

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


_AFTER_KILL = 12.0  # seconds after which we leave, whatever the agent does
_GRACE = 1.0  # seconds in which the success of a script may follow its error
_HURRY = 0.15  # seconds for a sweep, in which only force is quick enough
_SWEEPS = 10
_BEGUN = {"accepted", "text", "tool"}  # what happens to an agent that has its prompt
_FIGURES = ("tool_calls", "turns", "duration_ms")  # that are summed up, beside the usage


class With:
    """Everything about one call of the command."""

    def __init__(self, args: argparse.Namespace, prompt: str, cwd: str) -> None:
        self._args = args
        self._prompt = prompt
        self._cwd = cwd
        self._agent, _, self._script = args.agent.partition(":")
        self._screen = Screen(self._agent)
        self._session: Session | None = None
        self._supervisor: Supervisor | None = None
        self._handle: Handle | None = None
        self._main: asyncio.Task[Any] | None = None
        self._presses: Presses | None = None
        self._count = 0  # of presses
        self._asides: set[asyncio.Task[Any]] = set()
        self._totals: dict[str, Any] = dict.fromkeys(_FIGURES, 0) | {"usage": as_dict(Usage())}
        self._counted: set[int] = set()  # the runs whose figures are in the totals
        self._has_begun = False
        self._cut_off = ""  # what an agent had said when it was interrupted
        self._gates = Gates(args, cwd)
        self.signalled = 0  # the exit code for the signal that ended it

    def look(self) -> str:
        """Find out what is in force; say why the agent must not begin, if so."""
        from notyet.run.sweep import adopt_orphans

        adopt_orphans()
        return self._gates.look(self._agent)

    def run(self) -> Result | None:
        """Run the agent to its end; None when it was interrupted before it began.

        From then on signals are held, so that the caller can say what came of it, until `close`.
        """
        try:
            return asyncio.run(self._work())
        except asyncio.CancelledError:
            return None
        finally:
            self._sweep()

    def _sweep(self) -> None:
        from notyet.run.sweep import sweep

        if not self._count and (self._presses is None or not self._presses.held):
            sweep()
            return
        for _ in range(_SWEEPS):  # somebody waits
            if not sweep(_HURRY):
                return

    def begin_to_answer(self) -> None:
        """Say that only the answer is left to be written; if nobody reads it, we can be ended."""
        if self._presses is not None:
            self._presses.hold_until_stuck()

    def complain(self, why: str) -> None:
        """Say what went wrong, in a sentence."""
        self._screen.complain(why)

    def close(self) -> None:
        """Let signals do what they did before, and show the rest."""
        if self._presses is not None:
            self._presses.release()
        self._screen.flush()

    def summary(self, result: Result, code: int) -> dict[str, Any]:
        """Return what `--json` prints; figures are of all runs together."""
        self._count_in(result.generation, result)
        known = as_dict(result) | self._totals
        if result.stop_reason == "no-gate" or not known["stop_reason"]:
            done = self._gates.cause if result.stop_reason else None
            known["stop_reason"] = done if result.ending == "done" else result.ending
        known["text"] = result.text or self._cut_off  # a person ended it before it could answer
        known["warnings"] = [*self._gates.warnings, *result.warnings]
        return {
            "task": known.pop("task_id"),
            "session": (self._session.id if self._session else None) or known["session_id"],
            "agent": self._agent,
            "workspace": self._gates.workspace,
            "exit_code": code,
            **{name: known.pop(name) for name in ("outcome", "ending", "steers", "text")},
            "seconds": round(self._screen.seconds, 3),
            **{name: value for name, value in known.items() if name != "session_id"},
        }

    async def _work(self) -> Result:
        from notyet.agents import open_session, reopen
        from notyet.config.load import retention
        from notyet.ledger.ledger import Ledger
        from notyet.supervise import Supervisor, SupervisorSettings

        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        keyboard = self._args.prompt != "-"
        ledger = Ledger()
        with suppress(NotyetError):  # what is wrong with the user's file is said elsewhere
            ledger.retention = retention(os.environ)
        engine = self._gates.engine(ledger, self._screen)
        # A program that has exited with an error will not come back with a success.
        settings = SupervisorSettings(grace=_GRACE if self._script else 0.0)
        supervisor = Supervisor(
            engine,
            ledger,
            reopen,
            settings=settings,
            on_progress=self._hear,
            program=PROGRAM,
        )
        with Presses(loop, self._press, with_keyboard=keyboard) as self._presses:
            async with supervisor:
                self._supervisor = supervisor
                for found in await recover(supervisor, ledger):
                    self._screen.say(found)
                for mended in ledger.file.take_warnings():
                    self._gates.warnings.append(mended)
                    self._screen.warn(mended)
                self._session = open_session(
                    self._agent,
                    cwd=self._cwd,
                    args=[self._script] if self._script else self._args.rest,
                    session=self._args.resume,
                )
                if self._args.resume:
                    self._check_resumable(ledger, self._session)
                return await self._drive(supervisor, self._session)

    async def _drive(self, supervisor: Supervisor, session: Session) -> Result:
        self._handle = await supervisor.launch(
            session,
            self._prompt,
            label=self._args.label,
            cwd=self._cwd,
            workspace=self._args.workspace or self._gates.workspace,
            timeout=self._args.timeout,
        )
        self._screen.begin(self._handle.task_id, self._args.label or self._prompt)
        result = await self._handle.result()
        self._screen.ended(result)
        again = resume_command(
            session.ref(),
            result.session_id,
            self._cwd,
            script=self._script,
            workspace=self._args.workspace,
        )
        went_well = result.ending == "done" and result.outcome in {"passed", "skipped"}
        if again and self._has_begun and not went_well:
            self._screen.say(f"to go on with this session: {again}")
        return result

    def _check_resumable(self, ledger: Ledger, session: Session) -> None:
        """Refuse a session that is not there, or that somebody works with. Raises Refused."""
        from notyet.cli.supervising import task_of_session

        name, path = self._args.resume, session.transcript()
        if self._script and not os.path.exists(path or ""):  # the others say so themselves
            raise Refused(f"scripted does not have the conversation {name}; see: notyet tasks")
        task = task_of_session(ledger, self._agent, name)
        if task:
            raise Refused(
                f"task {task} is at work on the conversation {name}; wait for it, or have a word "
                f'in it with: notyet tasks steer {task} "..."'
            )

    def _hear(self, progress: Progress) -> None:
        if self._handle is not None and progress.task_id == self._handle.task_id:
            self._has_begun |= progress.kind in _BEGUN
            if progress.turn is not None and progress.kind == "turn":
                self._count_in(progress.generation, progress.turn)
                cut_off = progress.turn.stop_reason == "cancelled"
                self._cut_off = progress.turn.text if cut_off else ""
        self._screen.hear(progress)

    def _count_in(self, run: int, spent: Turn | Result) -> None:
        """Add the figures of a run, once."""
        if run in self._counted:
            return
        self._counted.add(run)
        for name in _FIGURES:
            self._totals[name] += getattr(spent, name)
        usage = self._totals["usage"]
        for name, value in as_dict(spent.usage).items():
            usage[name] += value

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
        elif self._count == 1:
            self._screen.say("interrupting the agent; once more kills it")
            self._do(self._supervisor.interrupt(self._handle))
        elif self._count == 2:  # noqa: PLR2004  # the second time
            self._screen.say("killing the agent")
            asyncio.get_running_loop().call_later(_AFTER_KILL, self._leave)
            self._do(self._supervisor.kill(self._handle))
            if self._session is not None:
                self._do(self._session.abort())  # the second time by force
        else:
            self._leave()

    def _do(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._asides.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._asides.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._screen.warn(f"that did not work: {task.exception()}")

    def _leave(self) -> None:
        """End this process now: the agent does not, and its watchdog ends it after us."""
        if self._presses is not None:
            self._presses.restore()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._sweep()
        self._screen.flush()
        os._exit(self.signalled)
