"""Marks of the sessions that a proxy gates, for our own hook in the same agent.

Most agents also run their stop hooks over ACP, before the proxy sees the end of the turn. A stop is
gated once, by the proxy: a hook finds the session's mark, and that its proxy is above it. An agent
that the agent starts has another session, so it is gated by the hook.

A mark also says which session a fork comes from, so that a fork has no new budget.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from notyet.config.caller import acp_mark
from notyet.core.gate import digest_of

_OLDEST = 30 * 86_400.0  # seconds


class Marks:
    """The marks of one proxy, in the state folder."""

    def __init__(self, state: str) -> None:
        self._folder = os.path.join(state, "acp")
        self._ours: set[str] = set()
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._prune()

    @property
    def variable(self) -> str:
        """The value of NOTYET_SUPERVISED for the agent."""
        return acp_mark(os.getpid())

    def add(self, session: str, counted_as: str) -> None:
        """Mark a session as ours. Raises OSError."""
        path = os.path.join(self._folder, digest_of(session))
        beside = f"{path}.{os.getpid()}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{os.getpid()}\n{counted_as}")
        os.replace(beside, path)
        if counted_as == session:
            self._ours.add(path)

    def counted_as(self, session: str) -> str:
        """Return the session that a session is counted as: itself, unless it is a fork."""
        path = os.path.join(self._folder, digest_of(session))
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                return file.read().partition("\n")[2] or session
        except OSError:
            return session

    def remove(self) -> None:
        """Remove our marks; those of forks are kept, for when the fork is loaded again.

        An editor that restarts its agent may have loaded a session in another proxy already.
        """
        for path in self._ours:
            with suppress(OSError), open(path, "rb") as file:
                if file.readline().strip() == b"%d" % os.getpid():
                    os.unlink(path)

    def _prune(self) -> None:
        with suppress(OSError), os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_mtime < time.time() - _OLDEST:
                    os.unlink(entry.path)
