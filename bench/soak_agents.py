"""Agents for the soak: their memory is a folder, their moods are drawn from their names."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from typing import TYPE_CHECKING

from notyet.core.session import News, Turn
from notyet.errors import SendError
from notyet.run.proc import is_gone

if TYPE_CHECKING:
    from collections.abc import Callable

# What an agent does with a prompt, and how often.
MOODS = {
    "answers": 60,
    "starts a program": 12,
    "fails": 8,
    "hangs": 5,
    "hangs with a program": 5,
    "stops by itself": 4,
    "breaks": 3,
    "is not there": 3,
}


class Agent:
    """A session. What arrived is in its folder, and so is the program that it may have started."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.name = name
        self.id: str | None = name
        self.on_news: Callable[[News], None] | None = None
        self.stopped = asyncio.Event()

    def ref(self) -> dict[str, object]:
        return {"folder": self.folder, "name": self.name}

    def _path(self, what: str) -> str:
        return os.path.join(self.folder, f"{self.name}.{what}")

    async def send(self, prompt: str, key: str) -> Turn:
        self.stopped.clear()
        got = self._keys()
        chance = random.Random(f"{self.name} {len(got)}")
        mood = chance.choices(list(MOODS), list(MOODS.values()))[0]
        if mood == "is not there":
            raise SendError("it is not there")
        self._note(key)
        assert self.on_news is not None
        self.on_news(News(kind="accepted"))
        await self._work(chance, mood)
        if self.stopped.is_set() or mood == "stops by itself":
            return Turn(text="", stop_reason="cancelled")
        if mood == "breaks":
            raise RuntimeError("it breaks")
        if mood == "fails":
            return Turn(text="", stop_reason="error", error="it fails")
        return Turn(text="tests pass" if chance.random() < 0.5 else f"done {len(got)}")

    async def _work(self, chance: random.Random, mood: str) -> None:
        seconds = 60.0 if mood.startswith("hangs") else chance.uniform(0, 0.2)
        if "program" not in mood:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopped.wait(), seconds)
            return
        pid_file = self._path("pid")
        program = await asyncio.create_subprocess_exec(
            "sh",
            "-c",
            'echo $$ > "$0"; exec sleep "$1"',
            pid_file,
            str(seconds),
            start_new_session=True,
        )
        try:
            await program.wait()
        finally:
            if program.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    program.kill()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(pid_file)

    def _note(self, key: str) -> None:
        with open(self._path("got"), "a", encoding="utf-8") as file:
            file.write(f"{key}\n")

    def _program(self) -> int:
        try:
            with open(self._path("pid"), encoding="utf-8") as file:
                return int(file.read() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def _keys(self) -> list[str]:
        try:
            with open(self._path("got"), encoding="utf-8") as file:
                return file.read().split()
        except FileNotFoundError:
            return []

    def knows(self, key: str) -> bool:
        return key in self._keys()

    async def abort(self) -> None:
        self.stopped.set()
        pid = self._program()
        if pid and not is_gone(pid, ""):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

    def transcript(self) -> None:
        return None
