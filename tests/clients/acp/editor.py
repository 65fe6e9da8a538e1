"""A client that speaks ACP with `notyet acp`, as an editor does."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Message = dict[str, Any]

_PATIENCE = 120.0  # seconds for one answer
_TO_LEAVE = 20.0  # seconds from the end of our side to the proxy's


class Editor:
    """The client's side of one connection; everything on it is kept in a file."""

    def __init__(
        self, line: list[str], cwd: Path, environ: dict[str, str], logs: Path, version: int = 1
    ) -> None:
        self.cwd = cwd
        self.version = version
        self.seen: list[Message] = []  # messages from the other side
        self.session = ""
        self._number = 0
        self._arrived: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._wire = (logs / "wire.txt").open("ab", buffering=0)
        self._errors = logs / "acp.err"
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                line,
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environ,
                process_group=0,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # -- what a user does

    def begin(self, method_of_login: str = "") -> None:
        """Open a session in the project."""
        about = {"name": "tests", "version": "1"}
        version = {"protocolVersion": self.version}
        if self.version == 1:
            none = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
            params = version | {"clientCapabilities": none, "clientInfo": about}
        else:
            params = version | {"capabilities": {}, "info": about}
        found = self.call("initialize", **params)
        assert found["protocolVersion"] == self.version, found
        if method_of_login:
            self.call("authenticate", methodId=method_of_login)
        self.session = self.call("session/new", cwd=str(self.cwd), mcpServers=[])["sessionId"]

    def ask(self, text: str) -> Message:
        """Send a prompt; return the end of its turn."""
        return self.end(self.prompt(text))

    def prompt(self, text: str) -> int:
        """Send a prompt; return its id."""
        blocks = [{"type": "text", "text": text}]
        return self._request("session/prompt", {"sessionId": self.session, "prompt": blocks})

    def cancel(self) -> None:
        """Do as a user who presses Stop."""
        self._send({"method": "session/cancel", "params": {"sessionId": self.session}})

    def end(self, number: int) -> Message:
        """Wait for the end of a turn; return the answer (version 1) or the update (version 2)."""
        for message in self._messages():
            is_answer = message.get("id") == number and "method" not in message
            if is_answer and (self.version == 1 or "error" in message):
                return message.get("result") or {"error": message.get("error")}
            update = self._update(message)
            if self.version != 1 and update.get("state") == "idle":
                return update
        raise EOFError(self.errors())

    def call(self, method: str, **params: Any) -> Message:
        """Send a request; return its result."""
        number = self._request(method, params)
        for message in self._messages():
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, (method, message["error"], self.errors())
                return message.get("result") or {}
        raise EOFError(f"{method}: {self.errors()}")

    def close(self) -> int:
        """Close our side; return the exit code of the other."""
        assert self.process.stdin
        assert self.process.stdout
        with suppress(OSError):
            self.process.stdin.close()
        try:
            return self.process.wait(_TO_LEAVE)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self._reader.join(_TO_LEAVE)
            self.process.stdout.close()
            self._wire.close()

    # -- what a user sees

    def titles(self) -> list[str]:
        """Return the titles of tool calls, in order."""
        return [str(one["title"]) for one in self._updates() if one.get("title")]

    def text(self) -> str:
        """Return all words of the agent, and those of notyet."""
        kinds = ("agent_message_chunk", "agent_message")
        said = [one["content"] for one in self._updates() if one.get("sessionUpdate") in kinds]
        blocks = [block for one in said for block in (one if isinstance(one, list) else [one])]
        return "".join(block.get("text", "") for block in blocks)

    def errors(self) -> str:
        """Return what the other side wrote to stderr."""
        return self._errors.read_text(errors="replace")

    def _updates(self) -> Iterator[Message]:
        yield from filter(None, map(self._update, self.seen))

    def _update(self, message: Message) -> Message:
        params = message.get("params") or {}
        is_it = message.get("method") == "session/update" and params["sessionId"] == self.session
        return params["update"] if is_it else {}

    # -- the wire

    def _request(self, method: str, params: Message) -> int:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        return self._number

    def _send(self, message: Message) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self._wire.write(b"> " + data)
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _messages(self) -> Iterator[Message]:
        """Yield what arrives, until the other side ends; answer its requests."""
        while (line := self._arrived.get(timeout=_PATIENCE)) is not None:
            message = json.loads(line)
            self.seen.append(message)
            if "method" in message and "id" in message:
                self._answer(message)
            yield message

    def _answer(self, message: Message) -> None:
        """Allow what the agent asks for; there is nothing else that we can do."""
        if message["method"] != "session/request_permission":
            error = {"code": -32601, "message": f"no {message['method']} here"}
            self._send({"id": message["id"], "error": error})
            return
        options = message["params"]["options"]
        allowed = next(one for one in options if str(one["kind"]).startswith("allow"))
        outcome = {"outcome": "selected", "optionId": allowed["optionId"]}
        self._send({"id": message["id"], "result": {"outcome": outcome}})

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._wire.write(b"< " + line)
            self._arrived.put(line)
        self._arrived.put(None)


def until_seen(editor: Editor, is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until something is so, while the turn goes on; fail where it never is."""
    from commands import until

    assert until(is_so, seconds), (editor.titles(), editor.errors())
