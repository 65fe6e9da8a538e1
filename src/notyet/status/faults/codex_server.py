"""Asks the installed Codex which hooks it would run: `codex app-server`, one JSON object a line.

Codex skips hooks that nobody trusted without a word, so only Codex itself can tell. It answers
without a login or a network; but it may be another version, broken or slow, so whatever it does
ends in an answer or in a reason within the time that it is given.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from contextlib import suppress

from notyet.core.record import Record
from notyet.core.text import clean, first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PATIENCE = 10.0  # seconds; it takes a quarter of one
_MOST_BYTES = 8 * 1024 * 1024
_GRACE = 1.0  # seconds to end by itself once its stdin is closed
_PAUSE = 0.01
_KEY_PARTS = 4  # path, event, group and index


class ListedHook(Record, kw_only=True):
    """A hook as Codex knows it."""

    path: str  # the file it is written in
    event: str  # "stop", "subagent_stop", ...
    group: int
    index: int
    status: str  # "trusted", "untrusted", "modified", "managed"
    is_enabled: bool = True
    hash: str = ""


class Listing(Record, kw_only=True):
    """What Codex said, or in `problem` why it said nothing."""

    hooks: tuple[ListedHook, ...] = ()
    warnings: tuple[str, ...] = ()  # files and entries that it drops
    problem: str = ""


def list_hooks(program: str, cwd: str, environ: Mapping[str, str]) -> Listing:
    """Ask Codex for the hooks it would run in a folder."""
    try:
        server = _Server(program, cwd, environ, time.monotonic() + PATIENCE)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        return Listing(problem=f"{program} app-server could not be started: {why}")
    try:
        client = {"name": "notyet", "title": "notyet status", "version": "1"}
        server.ask(1, "initialize", {"clientInfo": client})
        server.tell({"method": "initialized"})
        return _listing(server.ask(2, "hooks/list", {"cwds": [cwd]}))
    except _Silent as reason:
        return Listing(problem=f"codex app-server {reason}")
    finally:
        server.end()


class _Silent(Exception):  # noqa: N818  # it never leaves this module
    """The server gave no answer that can be used; says why."""


class _Server:
    """A running `codex app-server`."""

    def __init__(self, program: str, cwd: str, environ: Mapping[str, str], ends: float) -> None:
        self._ends = ends
        self._lines: list[bytes] = []  # messages that came, the next one last
        self._rest = b""  # the beginning of one that is still to come
        self._total = 0
        self._process = subprocess.Popen(  # noqa: S603  # the user's own Codex
            [program, "app-server"],
            cwd=cwd,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message that gets no answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise _Silent("ended before it was asked") from None

    def ask(self, number: int, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result; what else the server says is left aside."""
        self.tell({"id": number, "method": method, "params": params})
        while True:
            message = self._next()
            if message.get("id") != number or "method" in message:
                continue
            if "result" in message:
                return message["result"]
            error = message.get("error")
            said = error.get("message") if isinstance(error, dict) else None
            raise _Silent(f"refused {method}: {first_line(clean(str(said or 'without a reason')))}")

    def _next(self) -> dict[str, Any]:
        while True:
            with suppress(ValueError, RecursionError):
                message: dict[str, Any] = json.loads(self._line().decode("utf-8", "replace"))
                return message

    def _line(self) -> bytes:
        while not self._lines:
            *lines, self._rest = (self._rest + self._block()).split(b"\n")
            # Others went astray from a log.
            self._lines = [line for line in reversed(lines) if line.startswith(b"{")]
        return self._lines.pop()

    def _block(self) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        left = self._ends - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise _Silent("did not answer in time")
        block = os.read(descriptor, 65_536)
        if not block:
            raise _Silent("ended without an answer")
        self._total += len(block)
        if self._total > _MOST_BYTES:
            raise _Silent("said more than an answer can be")
        return block

    def end(self) -> None:
        """Let it end, or end it, with all that it started."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):  # it is gone, and what we wrote last with it
            process.stdin.close()
        ends = time.monotonic() + _GRACE
        # Not collected yet, so that nobody else can get the number that is signalled.
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while os.waitid(os.P_PID, process.pid, look) is None and time.monotonic() < ends:
            time.sleep(_PAUSE)
        with suppress(OSError):  # nothing is left of it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def _listing(result: Any) -> Listing:
    data = result.get("data") if isinstance(result, dict) else None
    if not isinstance(data, list) or not data or not isinstance(data[0], dict):
        raise _Silent("answered hooks/list in words that this notyet does not know")
    folder = data[0]
    hooks = [_hook(item) for item in _items(folder, "hooks") if isinstance(item, dict)]
    said = [str(item) for item in _items(folder, "warnings")]
    said += [str(e.get("message", "")) for e in _items(folder, "errors") if isinstance(e, dict)]
    return Listing(
        hooks=tuple(hook for hook in hooks if hook is not None),
        warnings=tuple(" ".join(clean(line).split()) for line in said if line),
    )


def _items(folder: Mapping[str, Any], name: str) -> list[Any]:
    value = folder.get(name)
    return value if isinstance(value, list) else []


def _hook(item: Mapping[str, Any]) -> ListedHook | None:
    parts = str(item.get("key", "")).rsplit(":", _KEY_PARTS - 1)
    if len(parts) != _KEY_PARTS or not parts[2].isdecimal() or not parts[3].isdecimal():
        return None  # of a plugin, which names its hooks otherwise
    return ListedHook(
        path=parts[0],
        event=parts[1],
        group=int(parts[2]),
        index=int(parts[3]),
        status=str(item.get("trustStatus", "")),
        is_enabled=item.get("enabled") is not False,
        hash=str(item.get("currentHash") or ""),
    )
