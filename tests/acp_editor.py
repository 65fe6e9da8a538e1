"""A client that speaks ACP with `notyet acp`, as an editor does."""

import json
import os
import queue
import subprocess
import sys
import threading
from contextlib import suppress

AGENT = os.path.join(os.path.dirname(__file__), "acp_agent.py")


class Editor:
    """`notyet acp` with the scripted agent behind it."""

    def __init__(
        self,
        *options,
        version=1,
        agent=(sys.executable, AGENT),
        environ=None,
        reads_errors=True,
    ):
        command = [sys.executable, "-m", "notyet", "acp", *options, "--", *agent]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environ or {})},
        )
        self._lines = queue.Queue()
        self.messages = []
        self.raw = []
        self.errors = []
        self._number = 0
        self._version = version
        self._threads = [
            threading.Thread(target=target, daemon=True)
            for target in (self._read, self._read_errors)[: 1 + reads_errors]
        ]
        for thread in self._threads:
            thread.start()
        self.agent = self.call("initialize", protocolVersion=version)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close our side; return the exit code."""
        with suppress(OSError):  # it may have ended already
            self.process.stdin.close()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            for thread in self._threads:
                thread.join()
            self.process.stdout.close()
            self.process.stderr.close()

    # -- sending

    def send(self, **message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def call(self, method, **params):
        """Send a request and return its result."""
        self._number += 1
        number = self._number
        self.send(id=number, method=method, params=params)
        return self.until(lambda m: m.get("id") == number and "method" not in m).get("result")

    def new(self, cwd):
        return self.call("session/new", cwd=str(cwd), mcpServers=[])["sessionId"]

    def prompt(self, session, text):
        """Send a prompt; return its id."""
        self._number += 1
        block = {"type": "text", "text": text}
        params = {"sessionId": session, "prompt": [block]}
        self.send(id=self._number, method="session/prompt", params=params)
        return self._number

    def ask(self, session, text):
        """Send a prompt and return its end."""
        return self.end(session, self.prompt(session, text))

    # -- receiving

    def end(self, session, number):
        """Wait for the end of a turn; return the result (version 1) or the update (version 2)."""
        if self._version == 1:
            message = self.until(lambda m: m.get("id") == number and "method" not in m)
            return message.get("result") or {"error": message["error"]}
        is_idle = lambda m: update_of(m, session).get("state") == "idle"
        return update_of(self.until(is_idle), session)

    def until(self, wanted, patience=30):
        """Return the next message that is wanted; None if the proxy ended."""
        while True:
            line = self._lines.get(timeout=patience)
            if line is None:
                raise EOFError("".join(self.errors))
            self.raw.append(line)
            try:
                message = json.loads(line)
            except ValueError:
                message = {}
            self.messages.append(message)
            if wanted(message):
                return message

    def updates(self, kind=None):
        """Return the updates seen so far."""
        found = [
            m["params"]["update"] for m in self.messages if m.get("method") == "session/update"
        ]
        return [one for one in found if kind is None or one["sessionUpdate"] == kind]

    def titles(self):
        """Return the titles of tool calls seen so far."""
        return [one["title"] for one in self.updates() if one.get("title")]

    def text(self):
        """Return all words of the agent, and ours."""
        return "".join(one["content"]["text"] for one in self.updates("agent_message_chunk"))

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode("utf-8", "replace"))


def update_of(message, session):
    params = message.get("params") or {}
    is_it = message.get("method") == "session/update" and params["sessionId"] == session
    return params["update"] if is_it else {}
