"""A model on 127.0.0.1 that follows a script, and remembers what it was asked.

What is said on the wire is the matter of a module for each protocol:

    is_asked(path)           whether a POST to this path asks the model for an answer
    read(body, headers)      the Request in it
    aside(request)           the answer to a request which no script is asked for; None otherwise
    write(step, request)     the answer of a step (not of Fail)
    other(method, path)      the JSON answer to any other request
    prompts(texts)           what of these texts a stop hook said, as the hook said it

An answer is a list of events, which are streamed, or one object of JSON. An event with a type is
sent under its name; a text, such as the mark of a stream's end, is sent as it is.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from clients.model.script import MAIN, Fail, Request, Say, Script, Step, Steps, wait

Answer = list[Any] | dict[str, Any]


class Wire(Protocol):
    """One protocol."""

    def is_asked(self, path: str) -> bool: ...

    def read(self, body: dict[str, Any], headers: dict[str, str]) -> Request: ...

    def aside(self, request: Request) -> Answer | None: ...

    def write(self, step: Step, request: Request) -> Answer: ...

    def other(self, method: str, path: str) -> dict[str, Any]: ...

    def prompts(self, texts: list[str]) -> list[str]: ...


class ModelServer:
    """Use it in a `with`: it serves from the beginning of the block to its end."""

    def __init__(self, wire: Wire, script: dict[str, Steps] | list[Step]) -> None:
        self.wire = wire
        self.script = Script(script)
        self.requests: list[Request] = []
        self.asides: list[Request] = []
        self.errors: list[str] = []
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it is asked; without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def unexpected(self) -> list[str]:
        """Requests that the script did not foresee, and faults of this server."""
        return [*self.script.unexpected, *self.errors]

    @property
    def actors(self) -> list[str]:
        """Everybody who asked, in the order of their first request."""
        return list(dict.fromkeys(request.actor for request in self.requests))

    def asked(self, actor: str = MAIN) -> list[Request]:
        """Return the requests of an actor, in order."""
        return [request for request in self.requests if request.actor == actor]

    def said(self, actor: str = MAIN) -> list[str]:
        """Return what an actor said at the end of its turns, in order."""
        steps = [request.step for request in self.asked(actor)]
        return [step.text for step in steps if isinstance(step, Say)]

    def answer(self, request: Request) -> tuple[int, Answer]:
        """Return the status and the content of the answer to a request."""
        aside = self.wire.aside(request)
        if aside is not None:
            self.asides.append(request)
            return 200, aside
        with self._lock:
            step = self.script.step(request)
            request.step = step
            self.requests.append(request)
        wait(step)
        if isinstance(step, Fail):
            return step.status, []
        return 200, self.wire.write(step, request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, _request: Any, _client_address: Any) -> None:
        """Say nothing: a program that was ended closes its connection at any time."""


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:  # the library's name for it
        self._head(200, "application/json", 0)

    def do_GET(self) -> None:
        self._json(200, self.model.wire.other("GET", self.path))

    def do_POST(self) -> None:
        content = self._body()
        path = self.path.split("?")[0]
        if not self.model.wire.is_asked(path):
            self._json(200, self.model.wire.other("POST", path))
            return
        try:
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = self.model.wire.read(json.loads(content), headers)
            status, answer = self.model.answer(request)
        except Exception as error:
            self.model.errors.append(f"{type(error).__name__}: {error} at {content[:2000]!r}")
            raise
        if status != 200:
            self._json(status, {"type": "error", "error": {"type": "scripted", "message": "no"}})
        elif isinstance(answer, dict):
            self._json(200, answer)
        else:
            self._stream(answer)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        content = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _head(self, status: int, kind: str, length: int | None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length is None:
            self.send_header("connection", "close")
            self.close_connection = True
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def _json(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self._head(status, "application/json", len(content))
        self.wfile.write(content)

    def _stream(self, events: list[Any]) -> None:
        self._head(200, "text/event-stream", None)
        for event in events:
            is_text = isinstance(event, str)
            name = "" if is_text or "type" not in event else f"event: {event['type']}\n"
            self.wfile.write(f"{name}data: {event if is_text else json.dumps(event)}\n\n".encode())
            self.wfile.flush()
