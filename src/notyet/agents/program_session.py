"""`ProgramSession`: what sessions with an agent's own program share.

A prompt is written to a transcript before it is sent, so that its fate is known after a crash.
"""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.agents.transcript_writer import SentBefore, Transcript
from notyet.agents.turn_builder import notify
from notyet.errors import Refused, SendError
from notyet.ledger.prune import sessions_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from typing import Any

    from notyet.core.session import News, Turn

NO_PROCESS = (0, "", "")  # its number, when it started, and its mark
_SECRETS = (
    *("key", "token", "secret", "pass", "credential", "auth", "bearer", "_pat", "pat="),
    *("sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "akia", "eyj"),
)


class ProgramSession:
    """The transcript of a conversation, the fates of its prompts, and its news."""

    def __init__(self, name: str, folder: str | None) -> None:
        """`folder` is where the transcript is kept. Raises Refused if there is no such place."""
        place = folder or sessions_folder(os.environ)
        if not place:
            raise Refused("there is no home folder to keep transcripts in; set XDG_STATE_HOME")
        self._transcript = Transcript(os.path.join(place, f"{name}-{uuid.uuid4().hex}.jsonl"))
        self._fates: dict[str, bool | None] = {}  # did a prompt arrive? by key
        self._is_reopened = False
        self._orphan = NO_PROCESS
        self.on_news: Callable[[News], None] | None = None

    def knows(self, key: str) -> bool | None:
        """Return whether a prompt arrived, from this process's memory or the transcript."""
        if key in self._fates or not self._is_reopened:
            return self._fates.get(key, False)
        written = self._transcript.fates()
        if written is None:
            return None
        # A prompt is written before its program gets it.
        return {"sent": None, "accepted": True, "refused": False}[written.get(key, "refused")]

    def transcript(self) -> str | None:
        """Return the path of the transcript that we write."""
        return self._transcript.path

    def discard(self) -> None:
        """Delete the transcript. What the agent itself keeps is the agent's."""
        self._transcript.remove()

    async def _noting_refusal(self, key: str, sending: Coroutine[Any, Any, Turn]) -> Turn:
        """Wait for a prompt's turn; note if it certainly did not arrive."""
        try:
            return await sending
        except SentBefore:
            raise  # its fate is what the other process wrote
        except SendError:
            self._fates[key] = False
            with suppress(OSError):
                self._transcript.refused(key)
            raise

    def _write_prompt(self, key: str, prompt: str) -> None:
        """Write a prompt before it is sent. Raises SendError."""
        try:
            self._transcript.prompt(key, prompt)
        except OSError as error:
            raise SendError(
                f"the transcript {self._transcript.path} cannot be written, so nothing was sent: "
                f"{error.strerror or error}"
            ) from None
        self._fates[key] = None

    def _notify(self, news: News) -> None:
        notify(self.on_news, news)


def may_hold_secrets(args: Iterable[str]) -> bool:
    """Return True if an argument may hold a secret, so that it must not be stored."""
    return any(word in arg.casefold() for arg in args for word in _SECRETS)
