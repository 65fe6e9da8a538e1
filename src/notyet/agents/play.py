"""One turn of a scripted agent, played step by step until it ends or is aborted."""

from __future__ import annotations

import asyncio
import inspect
import os
import time

from notyet.agents.reading import in_a_line
from notyet.agents.running import Running
from notyet.agents.script import Fail, Garbage, Hang, Say, Tool, Wait, Write
from notyet.checks.cannot_start import CannotStart
from notyet.checks.spawn import SH, Job, shell_argv
from notyet.core.session import News, Turn
from notyet.core.text import bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from notyet.agents.script import Scene, Step
    from notyet.agents.transcript import Transcript

    # Called with a tool's input as keywords; what it returns is the tool's answer.
    Function = Callable[..., Any]

_NOISE = '\x1b]0;\x07\x1b[2J\x00\x08\ud83d{"type": 1}\n\u202e\ufeff%s\\'
_LONGEST_OUTPUT = 8000


class Play:
    """What is needed for one turn; it belongs to one call of `send`."""

    def __init__(
        self,
        scene: Scene,
        *,
        cwd: str,
        tools: Mapping[str, Function],
        transcript: Transcript | None,
        tell: Callable[[News], None],
        stop: asyncio.Future[None],
    ) -> None:
        self._scene = scene
        self._cwd = cwd
        self._functions = tools
        self._transcript = transcript
        self._tell = tell
        self._stop = stop
        self._text = ""
        self._error: str | None = None
        self._used: list[str] = []
        self._output: list[str] = []
        self.recovery: tuple[str, float] | None = None

    async def play(self) -> Turn:
        """Play all steps."""
        began = time.monotonic()
        for step in self._scene.steps:
            if self._stop.done() or self._error is not None:
                break
            try:
                await self._do(step)
            except Exception as error:  # noqa: BLE001  # somebody's tool
                self._error = f"the tool failed: {type(error).__name__}: {error}"
        stop_reason: Any = self._scene.stop_reason
        if self._stop.done():
            stop_reason, self._error, self.recovery = "cancelled", None, None
        elif self._error is not None:
            stop_reason = "error"
        return Turn(
            text=self._text,
            stop_reason=stop_reason,
            usage=self._scene.usage,
            tools=tuple(dict.fromkeys(self._used)),
            tool_calls=len(self._used),
            duration_ms=(time.monotonic() - began) * 1000,
            error=self._error,
        )

    async def _do(self, step: Step) -> None:
        if isinstance(step, Say):
            self._say(step.text)
        elif isinstance(step, Garbage):
            self._say((_NOISE * (step.length // len(_NOISE) + 1))[: step.length])
        elif isinstance(step, Wait):
            await asyncio.wait({self._stop}, timeout=step.seconds)
        elif isinstance(step, Hang):
            await asyncio.wait({self._stop})
        elif isinstance(step, Tool):
            await self._use(step)
        elif isinstance(step, Write):
            self._write(step)
        elif isinstance(step, Fail):
            self._error = step.error
            self.recovery = None if step.recover is None else (step.recover, step.after)

    def _say(self, text: str) -> None:
        self._text = text
        if self._transcript is not None:
            self._transcript.said(text)
        self._tell(News(kind="text", text=text))

    def _write(self, step: Write) -> None:
        self._note("write", {"path": step.path})
        path = os.path.join(self._cwd, step.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(step.text)

    async def _use(self, step: Tool) -> None:
        self._note(step.name, step.input)
        answer = ""
        if step.run:
            answer = await self._run(step.run)
        elif step.name in self._functions:
            answer = str(await self._call(self._functions[step.name], step.input))
        if answer and self._transcript is not None:
            self._transcript.result(answer)

    def _note(self, name: str, given: Mapping[str, Any]) -> None:
        self._used.append(name)
        if self._transcript is not None:
            self._transcript.tool(name, given)
        self._tell(News(kind="tool", tool=name, text=in_a_line(given)))

    async def _run(self, run: str | tuple[str, ...]) -> str:
        argv = shell_argv(run, SH) if isinstance(run, str) else run
        self._output = []
        try:
            running = Running(Job(argv=argv, dir=self._cwd, environ=os.environ), self._hear)
        except CannotStart as error:
            return str(error)
        waiting = asyncio.ensure_future(running.wait())
        await self._or_stop(waiting, running.stop)
        said = bounded("\n".join([*self._output, running.stderr()]), _LONGEST_OUTPUT).strip()
        return f"{said}\nexit code {running.code}".strip()

    def _hear(self, line: bytes) -> None:
        if sum(map(len, self._output)) < _LONGEST_OUTPUT:
            self._output.append(line.decode("utf-8", "replace"))

    async def _call(self, function: Function, given: Mapping[str, Any]) -> object:
        found = function(**given)
        if not inspect.isawaitable(found):
            return found
        waiting = asyncio.ensure_future(found)
        await self._or_stop(waiting, None)
        return waiting.result() if not waiting.cancelled() else ""

    async def _or_stop(
        self, waiting: asyncio.Future[Any], end: Callable[[], Awaitable[None]] | None
    ) -> None:
        """Wait for something; end it, in its own way or by cancelling, when the turn is aborted."""
        try:
            await asyncio.wait({waiting, self._stop}, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                return
            if end is not None:
                await end()
            else:
                waiting.cancel()
            await asyncio.wait({waiting})
        finally:
            if not waiting.done():  # we are cancelled ourselves
                waiting.cancel()
                await asyncio.wait({waiting})
