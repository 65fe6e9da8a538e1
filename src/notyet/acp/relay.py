"""Run an agent for the editor that started us, with a proxy between the two."""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import sys
import threading
from typing import TYPE_CHECKING

from notyet.acp.pipes import Inlet, Outlet
from notyet.acp.proxy import Proxy
from notyet.run.agent_program import AgentProgram
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.acp.proxy import Checker

_STDIN, _STDOUT = 0, 1
_TO_LEAVE = 3.0  # seconds in which an agent ends by itself when its stdin is closed
_TO_END = 2.0  # after SIGTERM
_TO_WRITE = 2.0  # for the last lines to the client
_MOST_WAITING = 10_000  # pieces of what goes to stderr
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Relay:
    """The descriptors of the editor, the agent's process, and what ends them."""

    def __init__(self, argv: Sequence[str], environ: Mapping[str, str], checker: Checker) -> None:
        self._job = Job(argv=tuple(argv), dir=os.getcwd(), environ=environ)
        self._checker = checker
        self._end: asyncio.Future[int | None] | None = None  # which exit code is ours

    async def run(self) -> int:
        """Move lines until one side ends; return our exit code. Raises CannotStart, OSError."""
        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        agent = AgentProgram(self._job, None, on_stderr=_stderr.write)
        try:
            to_client, to_agent = Outlet(_STDOUT), Outlet(agent.stdin)
            proxy = Proxy(self._checker, to_client.write, to_agent.write, log)
            client = Inlet(_STDIN, proxy.from_client, lambda: self._ends(0))
            answers = Inlet(agent.stdout, proxy.from_agent, lambda: self._ends(None))
            agent.on_exit = answers.drain
            to_client.holds_up(answers)
            to_agent.holds_up(client)
            for number in _SIGNALS:
                loop.add_signal_handler(number, self._ends, 128 + number)
            waiting = asyncio.ensure_future(agent.wait())
            waiting.add_done_callback(lambda _: self._ends(None))
            code = await self._end
            client.close()
            if code is None:  # the agent
                await _ended(waiting, _TO_LEAVE, agent)
                proxy.agent_ended(_how(agent))
                await to_client.emptied(_TO_WRITE)
            else:
                proxy.client_ended()
                await to_agent.emptied(_TO_WRITE)
                to_agent.close()
                agent.close_stdin()
                await _ended(waiting, 0 if code else _TO_LEAVE, agent)
            answers.close()
            checks = proxy.checks()
            if checks:  # their gates end first
                await asyncio.wait(checks, timeout=_TO_END)
            if code is None:
                return agent.code if agent.code is not None else 128 + agent.signal
            return code
        finally:
            _stderr.finish()
            os.set_blocking(_STDIN, True)
            os.set_blocking(_STDOUT, True)

    def _ends(self, code: int | None) -> None:
        assert self._end is not None
        if not self._end.done():
            self._end.set_result(code)


async def _ended(waiting: asyncio.Future[None], patience: float, agent: AgentProgram) -> None:
    """Wait until the agent has ended; then end it."""
    steps: tuple[tuple[Callable[[], None] | None, float], ...] = (
        (None, patience),
        (lambda: agent.send(signal.SIGTERM), _TO_END),
        (lambda: agent.send(signal.SIGKILL), _TO_END),
    )
    for step, seconds in steps:
        if waiting.done():
            return
        if step is not None:
            step()
        await asyncio.wait({waiting}, timeout=seconds)


def _how(agent: AgentProgram) -> str:
    return f"signal {agent.signal}" if agent.signal else f"exit code {agent.code}"


class _Stderr:
    """Writes to stderr in a thread: an editor that never reads it must not hold up an agent."""

    def __init__(self) -> None:
        self._parts: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def write(self, data: bytes) -> None:
        """Write soon; drop it if very much waits already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()
        if self._parts.qsize() < _MOST_WAITING:
            self._parts.put(data)

    def finish(self) -> None:
        """Wait a little until all is written."""
        if self._thread is not None:
            self._parts.put(b"")
            self._thread.join(_TO_WRITE)

    def _work(self) -> None:
        while data := self._parts.get():
            try:
                sys.stderr.buffer.write(data)
                sys.stderr.buffer.flush()
            except (OSError, ValueError):  # nobody reads it
                return


_stderr = _Stderr()


def log(line: str) -> None:
    """Say something on stderr, where editors keep the logs of agents."""
    _stderr.write(f"notyet: {line}\n".encode("utf-8", "replace"))
