"""Speak ACP with an agent, as an editor does: requests, their answers, and what it asks us."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from notyet.acp import wire
from notyet.acp.pipes import Inlet, Outlet, lines_in
from notyet.run.agent_program import AgentProgram
from notyet.run.spawn import Job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from notyet.acp.wire import Message

    Answer = Callable[[str, Message], Awaitable[object]]

_TO_START = 120.0  # seconds for the first answer: some agents load for half a minute
_TO_LEAVE = 3.0  # seconds in which it ends by itself when its stdin is closed
_AUTH_REQUIRED = -32000
_NO_METHOD = -32601
_VERSION = 1


class AgentError(Exception):
    """The agent answered a request with an error, or has ended."""

    def __init__(self, words: str, code: int = 0) -> None:
        super().__init__(words)
        self.code = code


class Client:
    """A running agent. Raises CannotStart, and then leaves no process behind."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str,
        environ: Mapping[str, str],
        on_update: Callable[[str, Message], None],
        answer: Answer,
    ) -> None:
        """`on_update` gets updates of sessions; `answer` what the agent asks, by its method."""
        self.program = AgentProgram(Job(argv=tuple(argv), dir=cwd, environ=environ), None)
        self.info: Message = {}
        self.capabilities: Message = {}
        self._methods: list[Message] = []  # of signing in
        self._on_update = on_update
        self._answer = answer
        self._number = 0
        self._open: dict[str, asyncio.Future[Any]] = {}
        self._asides: set[asyncio.Task[None]] = set()
        self._outlet = Outlet(self.program.stdin)
        # One that has closed its stdout answers no more.
        close = partial(self.program.end_within, _TO_LEAVE)
        self._inlet = Inlet(self.program.stdout, self._take, close)
        self.program.on_exit = self._inlet.drain
        self.ended = asyncio.ensure_future(self.program.wait())
        self.ended.add_done_callback(lambda _: self._give_up())

    @property
    def can_load(self) -> bool:
        """Whether it can go on with an earlier session."""
        return self._resumes or bool(self.capabilities.get("loadSession"))

    @property
    def _resumes(self) -> bool:
        return wire.value(self.capabilities, "sessionCapabilities", "resume") is not None

    async def begin(self) -> None:
        """Agree on the version. Raises AgentError."""
        nothing = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {
            "protocolVersion": _VERSION,
            "clientCapabilities": nothing,
            "clientInfo": {"name": "notyet", "title": "notyet", "version": "0"},
        }
        found = await self._within(_TO_START, self.request("initialize", params))
        if found.get("protocolVersion") != _VERSION:
            raise AgentError(f"it speaks version {found.get('protocolVersion')} of ACP, not 1")
        self.info = found.get("agentInfo") or {}
        self.capabilities = found.get("agentCapabilities") or {}
        methods = found.get("authMethods")
        self._methods = [one for one in methods or () if isinstance(one, dict)]

    async def new_session(self, cwd: str) -> str:
        """Open a session and return its id. Raises AgentError."""
        found = await self._signed_in("session/new", {"cwd": cwd, "mcpServers": []})
        name = found.get("sessionId")
        if not isinstance(name, str) or not name:
            raise AgentError("it opened a session without an id")
        return name

    async def load_session(self, name: str, cwd: str) -> None:
        """Open a session that was there before. Raises AgentError."""
        if not self.can_load:
            raise AgentError("it cannot go on with an earlier session")
        method = "session/resume" if self._resumes else "session/load"
        await self._signed_in(method, {"sessionId": name, "cwd": cwd, "mcpServers": []})

    async def _signed_in(self, method: str, params: Message) -> Message:
        """Send a request about a session; sign in by an API key if the agent wants that."""
        try:
            return await self._within(_TO_START, self.request(method, params))
        except AgentError as error:
            if error.code != _AUTH_REQUIRED:
                raise
            keys = [one for one in self._methods if "key" in str(one.get("id")).lower()]
            if not keys:
                raise AgentError(f"{error}; sign in with its own program first") from None
        await self._within(_TO_START, self.request("authenticate", {"methodId": keys[0]["id"]}))
        return await self._within(_TO_START, self.request(method, params))

    async def request(self, method: str, params: Message) -> Message:
        """Send a request and return the result. Raises AgentError."""
        if self.ended.done():
            raise AgentError(self.how_it_ended())
        self._number += 1
        number, answer = f"notyet-{self._number}", asyncio.get_running_loop().create_future()
        self._open[wire.key(number)] = answer
        self._outlet.write(wire.request(number, method, params))
        found = await answer
        return found if isinstance(found, dict) else {}

    def notify(self, method: str, params: Message) -> None:
        """Send a notification."""
        self._outlet.write(wire.notification(method, params))

    async def close(self) -> None:
        """End the agent: by the end of its input, then by signals."""
        self._outlet.close()
        self.program.close_stdin()
        await asyncio.wait({self.ended}, timeout=_TO_LEAVE)
        if not self.ended.done():
            await self.program.stop()
            await asyncio.wait({self.ended})

    def how_it_ended(self) -> str:
        """Return how the program ended."""
        program = self.program
        how = f"signal {program.signal}" if program.signal else f"exit code {program.code}"
        said = [line for line in program.stderr().splitlines() if line.strip()]
        return f"its program ended ({how})" + (f": {said[-1].strip()[:300]}" if said else "")

    async def _within(self, patience: float, work: Awaitable[Message]) -> Message:
        try:
            return await asyncio.wait_for(work, patience)
        except TimeoutError:
            raise AgentError(f"it did not answer within {patience:g} s") from None

    def _take(self, bundle: bytes) -> None:
        for line in lines_in(bundle):
            message = wire.parse(line)
            if message is None:
                continue
            method, params = message.get("method"), message.get("params")
            params = params if isinstance(params, dict) else {}
            if method == wire.UPDATE:
                update = params.get("update")
                if isinstance(update, dict):
                    self._on_update(str(params.get("sessionId")), update)
            elif isinstance(method, str) and "id" in message:
                task = asyncio.ensure_future(self._reply(message["id"], method, params))
                self._asides.add(task)
                task.add_done_callback(self._asides.discard)
            elif method is None and "id" in message:
                self._settle(message)

    def _settle(self, message: Message) -> None:
        number = wire.key(message["id"])
        answer = self._open.pop(number, None)
        if answer is None:
            waiting = [one for one in self._open.values() if not one.done()]
            if len(waiting) == 1:  # else it would wait for ever
                waiting[0].set_exception(AgentError(f"it answered with the unknown id {number}"))
            return
        if answer.done():
            return
        error = message.get("error")
        if not isinstance(error, dict):
            answer.set_result(message.get("result"))
            return
        data = error.get("data")
        words = str(error.get("message") or "an error without a message")
        if isinstance(data, str) and data not in words:
            words += f": {data}"
        code = error.get("code")
        answer.set_exception(AgentError(words[:1000], code if isinstance(code, int) else 0))

    async def _reply(self, number: object, method: str, params: Message) -> None:
        found = await self._answer(method, params)
        if found is None:
            self._outlet.write(wire.error(number, _NO_METHOD, f"notyet does not do {method}"))
        else:
            self._outlet.write(wire.result(number, found))

    def _give_up(self) -> None:
        self._outlet.close()
        self._inlet.close()
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(AgentError(self.how_it_ended()))
        self._open = {}


def environment(mark: str) -> dict[str, str]:
    """Return the environment of an agent whose main stops are gated by us."""
    return {**os.environ, "NOTYET_SUPERVISED": mark}
