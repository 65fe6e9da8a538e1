"""Run an agent for the editor that started us, with a proxy between the two."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from notyet.acp.pipes import Inlet, Outlet
from notyet.acp.proxy import Proxy
from notyet.run.agent_program import AgentProgram
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from notyet.acp.proxy import Checker

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_TO_LEAVE = 3.0  # seconds in which an agent ends by itself when its stdin is closed
_TO_END = 2.0  # after SIGTERM
_TO_WRITE = 2.0  # for the last lines to the client
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
        agent = AgentProgram(self._job, None, on_stderr=_to_stderr)
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


def log(line: str) -> None:
    """Say something on stderr, where editors keep the logs of agents."""
    _to_stderr(f"notyet: {line}\n".encode("utf-8", "replace"))


def _to_stderr(data: bytes) -> None:
    try:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()
    except (OSError, ValueError):  # nobody reads it
        return
