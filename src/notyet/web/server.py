"""Run the page on a port of this machine until it is ended."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from notyet.web.app import build

if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.web.site import Site

LOOPBACK = "127.0.0.1"
_NAMES = (LOOPBACK, "localhost")


class PortTakenError(Exception):
    """Another program listens on the port."""


def listen(port: int) -> socket.socket:
    """Return a socket on this machine only; port 0 takes a free one. Raises PortTakenError."""
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise PortTakenError(f"port {port} cannot be used: {error.strerror}") from error


def serve(site: Site, listening: socket.socket, started: Callable[[str], None]) -> None:
    """Serve a site until a signal ends it; `started` gets the address that opens it."""
    port = listening.getsockname()[1]
    config = uvicorn.Config(build(site, _NAMES, port), log_level="warning", lifespan="off")
    config.timeout_graceful_shutdown = 1  # streams to open pages never end by themselves
    started(f"http://{LOOPBACK}:{port}/?token={site.token}")
    uvicorn.Server(config).run(sockets=[listening])
