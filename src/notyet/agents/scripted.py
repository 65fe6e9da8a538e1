"""`ScriptedSession`: an agent that follows a script instead of a model.

For tests, for the demo, and for the tests of people who use notyet. With a folder it is durable:
its transcript records which prompts arrived, so that another process can reopen it and continue.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
import uuid
from typing import TYPE_CHECKING

from notyet.agents.script import Fail, Garbage, Hang, Say, Tool, Wait, Write, script_from
from notyet.agents.script import plain as plain_script
from notyet.agents.transcript_writer import SentBefore, Transcript
from notyet.agents.turn_builder import in_a_line, notify
from notyet.core.record import replace
from notyet.core.session import News, Turn
from notyet.core.text import bounded
from notyet.errors import Refused, SendError, attempt_async
from notyet.run.agent_program import AgentProgram
from notyet.run.cannot_start import CannotStart
from notyet.run.spawn import SH, Job, shell_argv

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from notyet.agents.script import Scene, Script, Step
    from notyet.core.session import StopReason

    # Called with a tool's input as keywords; what it returns is the tool's answer.
    Function = Callable[..., Any]

_NOISE = '\x1b]0;\x07\x1b[2J\x00\x08\ud83d{"type": 1}\n\u202e\ufeff%s\\'
_LONGEST_OUTPUT = 8000


class ScriptedSession:
    """A `Session`. `prompts` are those that arrived, each with its key."""

    def __init__(
        self,
        script: Script,
        *,
        cwd: str = ".",
        folder: str | None = None,
        session: str | None = None,
        tools: Mapping[str, Function] | None = None,
    ) -> None:
        self.id: str | None = session or uuid.uuid4().hex
        self.prompts: list[tuple[str, str]] = []
        self.on_news: Callable[[News], None] | None = None
        self._script = script
        self._cwd = os.path.abspath(cwd)
        self._tools = tools or {}
        self._transcript = Transcript(os.path.join(folder, f"{self.id}.jsonl") if folder else "")
        self._keys: set[str] = set()
        self._turns = self._refused = 0
        self._stop: asyncio.Future[None] | None = None  # set while a turn runs
        self._later: asyncio.TimerHandle | None = None
        if os.path.exists(self._transcript.path):
            self._remember()

    @classmethod
    def reopened(
        cls, ref: Mapping[str, Any], *, tools: Mapping[str, Function] | None = None
    ) -> ScriptedSession:
        """Return the session with this `ref`; pass its functions again."""
        return cls(
            script_from(ref["script"], "the script of a ref"),
            cwd=str(ref["cwd"]),
            folder=ref["folder"],
            session=str(ref["session"]),
            tools=tools,
        )

    def ref(self) -> dict[str, object]:
        """Return what reopens the session; without a folder its history is lost."""
        return {
            "agent": "scripted",
            "session": self.id,
            "cwd": self._cwd,
            "folder": os.path.dirname(self._transcript.path) or None,
            "transcript": self.transcript(),
            "script": plain_script(self._script),
        }

    def knows(self, key: str) -> bool | None:
        """Return whether a prompt arrived; None for a forgetful agent."""
        return None if self._script.forgetful else key in self._keys

    def transcript(self) -> str | None:
        """Return the path of the transcript, if there is a folder."""
        return self._transcript.path or None

    def discard(self) -> None:
        """Delete the transcript."""
        self._transcript.remove()

    async def abort(self) -> None:
        """End the running turn, and cancel the recovery of a failed one."""
        if self._later is not None:
            self._later.cancel()
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(None)
            await asyncio.sleep(0)

    async def send(self, prompt: str, key: str) -> Turn:
        """Play the next turn, whatever the prompt is."""
        if self._stop is not None:
            raise SendError("the scripted agent still works on another prompt")
        if self.knows(key):
            raise SentBefore("the scripted agent has this prompt")
        scene = self._script.scene(self._turns)
        is_refused = scene is not None and self._refused < scene.refuse
        try:
            if is_refused:
                self._transcript.refused(key)
            else:
                self._transcript.prompt(key, prompt)  # it has arrived from here on
        except OSError as error:
            raise SendError(f"{self._transcript.path} cannot be written: {error}") from None
        self._count(key, is_refused=is_refused)
        if is_refused:
            raise SendError("the scripted agent refuses this prompt, as its script says")
        self.prompts.append((key, prompt))
        self._stop = asyncio.get_running_loop().create_future()
        self._notify(News(kind="accepted"))
        self._notify(News(kind="ref"))
        try:
            if scene is None:
                return Turn(text="", stop_reason="error", error="the script has no more turns")
            play = _Play(
                scene,
                self._stop,
                cwd=self._cwd,
                tools=self._tools,
                transcript=self._transcript,
                notify=self._notify,
            )
            turn = replace(await play.play(), model=self._script.model)
            if play.recovery is not None:
                self._recover(turn, *play.recovery)
            return turn
        finally:
            self._stop.cancel()
            self._stop = None

    def _count(self, key: str, *, is_refused: bool) -> None:
        if is_refused:
            self._refused += 1
            self._keys.discard(key)
        else:
            self._turns += 1
            self._refused = 0
            self._keys.add(key)

    def _remember(self) -> None:
        path = self._transcript.path
        try:
            for key, fate in self._transcript.history():
                self._count(key, is_refused=fate == "refused")
        except OSError as error:
            raise Refused(
                f"the transcript {path} cannot be read, so it is unknown which prompts "
                f"arrived: {error.strerror or error}"
            ) from None

    def _recover(self, turn: Turn, text: str, after: float) -> None:
        """Report by news, later, that the failed turn succeeded after all."""
        healed = replace(turn, text=text, stop_reason="end_turn", error=None)
        news = News(kind="ended", turn=healed)
        self._later = asyncio.get_running_loop().call_later(after, self._notify, news)

    def _notify(self, news: News) -> None:
        notify(self.on_news, news)


class _Play:
    """One turn, played step by step until it ends or is aborted."""

    def __init__(
        self,
        scene: Scene,
        stop: asyncio.Future[None],
        *,
        cwd: str,
        tools: Mapping[str, Function],
        transcript: Transcript,
        notify: Callable[[News], None],
    ) -> None:
        self._scene = scene
        self._cwd = cwd
        self._functions = tools
        self._transcript = transcript
        self._notify = notify
        self._stop = stop
        self._text = ""
        self._error: str | None = None
        self._used: list[str] = []
        self.recovery: tuple[str, float] | None = None

    async def play(self) -> Turn:
        """Play all steps."""
        began = time.monotonic()
        for step in self._scene.steps:
            if self._stop.done() or self._error is not None:
                break
            _, error = await attempt_async(self._do(step))
            if error is not None:
                self._error = f"the tool failed: {type(error).__name__}: {error}"
        stop_reason: StopReason = self._scene.stop_reason
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
        self._transcript.said(text)
        self._notify(News(kind="text", text=text))

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
        if answer:
            self._transcript.result(answer)

    def _note(self, name: str, given: Mapping[str, Any]) -> None:
        self._used.append(name)
        self._transcript.tool(name, given)
        self._notify(News(kind="tool", tool=name, text=in_a_line(given)))

    async def _run(self, run: str | tuple[str, ...]) -> str:
        argv = shell_argv(run, SH) if isinstance(run, str) else run
        lines: list[str] = []
        try:
            running = AgentProgram(
                Job(argv=argv, dir=self._cwd, environ=os.environ),
                lambda line: lines.append(line.decode("utf-8", "replace")),
            )
        except CannotStart as error:
            return str(error)
        await self._or_stop(asyncio.ensure_future(running.wait()), running.stop)
        said = bounded("\n".join([*lines, running.stderr()]), _LONGEST_OUTPUT).strip()
        return f"{said}\nexit code {running.code}".strip()

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
        """Wait for a future; if the turn is aborted, end it by `end` or cancel it."""
        try:
            await asyncio.wait({waiting, self._stop}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and end is not None:
                await end()
                await asyncio.wait({waiting})
        finally:
            if not waiting.done():  # also if this task is cancelled
                waiting.cancel()
                await asyncio.wait({waiting})
