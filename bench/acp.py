"""Messages through `notyet acp`, beside programs that only copy two pipes.

An agent answers a prompt with very many updates, as one that streams its words does, while a turn
is open, so that the proxy keeps what may be the agent's last words. Starting the programs is not
in the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.measure import Amount, Effort, Figure, Result, Row
from bench.progress import say

if TYPE_CHECKING:
    from collections.abc import Sequence

_MESSAGES = (10_000, 200_000)
_MANY = (10_000, 1_000_000)  # messages, after which memory is looked at
_ROUNDS = 9
_MEGABYTE = 1 << 20
# What the agent says: `N` updates of some 250 bytes for a prompt of N.
_AGENT = """
import json, sys
def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
words = {"type": "text", "text": "some words of the agent, as a model streams them; " * 2}
update = {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": words}
params = {"sessionId": "s1", "update": update}
line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}) + "\\n"
for text in sys.stdin:
    message = json.loads(text)
    if message["method"] == "initialize":
        send({"id": message["id"], "result": {"protocolVersion": 1}})
    elif message["method"] == "session/new":
        send({"id": message["id"], "result": {"sessionId": "s1"}})
    else:
        left = int(message["params"]["prompt"][0]["text"])
        while left:
            part = min(left, 50)
            sys.stdout.write(line * part)
            sys.stdout.flush()
            left -= part
        send({"id": message["id"], "result": {"stopReason": "end_turn"}})
"""
# Two threads that copy lines, which is what the simplest proxy does.
_LINES = """
import subprocess, sys, threading
agent = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1)
def copy(source, sink):
    for line in source:
        sink.write(line)
        sink.flush()
threading.Thread(target=copy, args=(sys.stdin.buffer, agent.stdin), daemon=True).start()
copy(agent.stdout, sys.stdout.buffer)
"""
# The same in pieces of 64 KiB: nothing in Python can be quicker.
_PIECES = """
import os, subprocess, sys, threading
agent = subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1, bufsize=0)
def copy(source, sink):
    while data := os.read(source, 65536):
        while data:
            data = data[os.write(sink, data):]
threading.Thread(target=copy, args=(0, agent.stdin.fileno()), daemon=True).start()
copy(agent.stdout.fileno(), 1)
"""


def measure(effort: Effort) -> list[Result]:
    """Send the same messages through each, in turns."""
    messages, many = effort.largest(_MESSAGES), effort.sizes(_MANY)
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder, ExitStack() as stack:
        environ = {**os.environ, "HOME": folder, "XDG_STATE_HOME": f"{folder}/state"}
        agent = [sys.executable, "-c", _AGENT]
        python = [sys.executable, "-S", "-E"]
        commands = {
            "lines": [*python, "-c", _LINES, *agent],
            "pieces": [*python, "-c", _PIECES, *agent],
            "notyet": [sys.executable, "-m", "notyet", "acp", "--", *agent],
        }
        clients = {
            name: stack.enter_context(_Client(command, folder, environ))
            for name, command in commands.items()
        }
        taken: dict[str, list[float]] = {name: [] for name in clients}
        for _ in range(effort.rounds(_ROUNDS)):
            for name, client in clients.items():
                say(f"{messages:,} messages through {name}")
                taken[name].append(client.turn(messages) / messages * 1e6)
        each = {name: Figure.of(times) for name, times in taken.items()}
        what = f"a message of 250 bytes, of {messages:,}"
        rows: list[Result] = [
            Row(what, "copied line by line", each["lines"], each["notyet"], "acp.copy"),
            Row(what, "copied in pieces of 64 KiB", each["pieces"], each["notyet"]),
        ]
        return [*rows, _memory(clients["notyet"], many)]


def _memory(client: _Client, many: Sequence[int]) -> Amount:
    """Return how much more memory the proxy has after very many messages."""
    few, most = many[0], many[-1]
    client.turn(few)
    before = client.memory()
    client.turn(most)
    more = (client.memory() - before) / _MEGABYTE
    return Amount(
        f"more memory after {most:,} messages than after {few:,}", more, "MB", "acp.memory"
    )


class _Client:
    """An editor with a program between it and the agent."""

    def __init__(self, command: list[str], folder: str, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder, env=environ
        )
        self._number = 0
        self._call("initialize", {"protocolVersion": 1})
        self._call("session/new", {"cwd": folder, "mcpServers": []})

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def turn(self, messages: int) -> float:
        """Have the agent send so many messages; return the seconds until its turn has ended."""
        prompt = [{"type": "text", "text": str(messages)}]
        started = time.perf_counter()
        self._call("session/prompt", {"sessionId": "s1", "prompt": prompt})
        return time.perf_counter() - started

    def memory(self) -> int:
        """Return the bytes of memory that the program between has."""
        with open(f"/proc/{self._process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _call(self, method: str, params: dict[str, object]) -> None:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answer = b'"id": %d,' % self._number
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if answer in line and b'"result"' in line:
                return
