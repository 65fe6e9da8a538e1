"""`ScriptedSession`: an agent that follows a script instead of a model.

For tests, for the demo, and for the tests of people who use notyet. With a folder it is durable:
its transcript says which prompts arrived, so that a session reopened in another process goes on
with the next turn. Without one, nothing of it is outside of this object.
"""

from __future__ import annotations

import asyncio
import os
import uuid

from notyet.agents.play import Play
from notyet.agents.reading import tell
from notyet.agents.script import plain as plain_script
from notyet.agents.script import script_from
from notyet.agents.transcript import Transcript
from notyet.core.record import replace
from notyet.core.session import News, Turn
from notyet.errors import Refused, SendError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from notyet.agents.play import Function
    from notyet.agents.script import Script


class ScriptedSession:
    """A `Session`. `prompts` are those that arrived here, each with its key."""

    __slots__ = (
        *("id", "prompts", "on_news", "_script", "_cwd", "_transcript", "_tools"),
        *("_turns", "_refused", "_keys", "_stop", "_later"),
    )

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
        self._transcript = Transcript(os.path.join(folder, f"{self.id}.jsonl")) if folder else None
        self._keys: set[str] = set()
        self._turns = self._refused = 0
        self._stop: asyncio.Future[None] | None = None  # there while a turn runs
        self._later: asyncio.TimerHandle | None = None
        if self._transcript is not None and os.path.exists(self._transcript.path):
            self._remember(self._transcript)

    @classmethod
    def reopened(
        cls, ref: Mapping[str, object], *, tools: Mapping[str, Function] | None = None
    ) -> ScriptedSession:
        """Return the session that a `ref` names; functions are not part of it, so give them."""
        script, folder = ref["script"], ref["folder"]
        if not isinstance(script, dict):
            raise Refused("the ref of a scripted session has no script")
        return cls(
            script_from(script, "the script of a ref"),
            cwd=str(ref["cwd"]),
            folder=folder if isinstance(folder, str) else None,
            session=str(ref["session"]),
            tools=tools,
        )

    def ref(self) -> dict[str, object]:
        """Return what it takes to reopen the session: with a folder, anywhere and at any time."""
        folder = os.path.dirname(self._transcript.path) if self._transcript else None
        return {
            "agent": "scripted",
            "session": self.id,
            "cwd": self._cwd,
            "folder": folder,
            "transcript": self.transcript(),
            "script": plain_script(self._script),
        }

    def knows(self, key: str) -> bool | None:
        """Tell whether a prompt arrived; a forgetful agent never can."""
        return None if self._script.forgetful else key in self._keys

    def transcript(self) -> str | None:
        """Return the path of the transcript, where there is a folder for it."""
        return self._transcript.path if self._transcript else None

    def discard(self) -> None:
        """Delete the transcript."""
        if self._transcript is not None:
            self._transcript.remove()

    async def abort(self) -> None:
        """End what the agent does now; a success that was to follow its error does not come."""
        if self._later is not None:
            self._later.cancel()
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(None)
            await asyncio.sleep(0)

    async def send(self, prompt: str, key: str) -> Turn:
        """Play the next turn, whatever the prompt says."""
        if self._stop is not None:
            raise SendError("the scripted agent still works on another prompt")
        scene = self._script.scene(self._turns)
        if scene is not None and self._refused < scene.refuse:
            self._write("refused", key)
            self._count(key, True)
            raise SendError("the scripted agent refuses this prompt, as its script says")
        self._write("prompt", key, prompt)  # from here on it has arrived, whatever happens to us
        self._count(key, False)
        self.prompts.append((key, prompt))
        self._stop = asyncio.get_running_loop().create_future()
        self._tell(News(kind="accepted"))
        self._tell(News(kind="ref"))
        try:
            if scene is None:
                return Turn(text="", stop_reason="error", error="the script has no more turns")
            play = Play(
                scene,
                cwd=self._cwd,
                tools=self._tools,
                transcript=self._transcript,
                tell=self._tell,
                stop=self._stop,
            )
            turn = await play.play()
            if play.recovery is not None:
                self._recover(turn, *play.recovery)
            return replace(turn, model=self._script.model)
        finally:
            self._stop.cancel()
            self._stop = None

    def _count(self, key: str, is_refused: bool) -> None:  # noqa: FBT001  # what became of it
        if is_refused:
            self._refused += 1
            self._keys.discard(key)
        else:
            self._turns += 1
            self._refused = 0
            self._keys.add(key)

    def _remember(self, transcript: Transcript) -> None:
        try:
            for key, fate in transcript.history():
                self._count(key, fate == "refused")
        except OSError as error:
            raise Refused(
                f"the transcript {transcript.path} cannot be read, so nobody knows which prompts "
                f"arrived: {error.strerror or error}"
            ) from None

    def _recover(self, turn: Turn, text: str, after: float) -> None:
        """Tell later, and not through `send`, that the failed turn was a success after all."""
        told = replace(turn, text=text, stop_reason="end_turn", error=None)
        ended = News(kind="ended", turn=replace(told, model=self._script.model))
        self._later = asyncio.get_running_loop().call_later(after, self._tell, ended)

    def _write(self, kind: str, *values: object) -> None:
        if self._transcript is None:
            return
        try:
            getattr(self._transcript, kind)(*values)
        except OSError as error:
            raise SendError(f"{self._transcript.path} cannot be written: {error}") from None

    def _tell(self, news: News) -> None:
        tell(self.on_news, news)
