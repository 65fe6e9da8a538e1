"""Run the page on a port of this machine until it is ended."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import TYPE_CHECKING

import uvicorn

from notyet.web.access import Names
from notyet.web.app import build
from notyet.web.live import Watcher

if TYPE_CHECKING:
    from collections.abc import Generator

    from notyet.web.site import Site

LOOPBACK = "127.0.0.1"


class PortTakenError(Exception):
    """Another program listens on the port."""


def listen(port: int) -> socket.socket:
    """Return a socket on this machine only; port 0 takes a free one. Raises PortTakenError."""
    # asyncio sends at once (TCP_NODELAY) only where the socket names its protocol; otherwise each
    # answer may wait 40 ms for the browser's acknowledgement of its headers.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise PortTakenError(f"port {port} cannot be used: {error.strerror}") from error
    return listening


class Page:
    """A site that is served on a listening socket."""

    def __init__(self, site: Site, listening: socket.socket) -> None:
        self._site = site
        self._listening = listening
        names = Names((LOOPBACK, "localhost"), listening.getsockname()[1])
        self.port = names.port
        self.origin = names.origin
        self.address = f"{names.origin}/?token={site.token}"  # that opens it
        self._watcher = Watcher(site)
        self._server = _Server(_config(build(site, names, self._watcher)), self._watcher)

    def run(self) -> None:
        """Serve until `end` is called."""
        try:
            self._server.run(sockets=[self._listening])
        finally:
            self._watcher.close()
            self._site.ledger.close()

    def end(self) -> None:
        """End it, with all streams to open pages; may be called by any thread or signal."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Leaves signals to the command, and tells open pages that it ends."""

    def __init__(self, config: uvicorn.Config, watcher: Watcher) -> None:
        super().__init__(config)
        self._watcher = watcher

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._watcher.end()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def _config(app: object) -> uvicorn.Config:
    # Nothing that is only used if it happens to be installed, and no line for each request: it
    # would have the token.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # Starlette's types are its own
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=0,  # streams never end by themselves
    )
