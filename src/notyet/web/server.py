"""Run the page on a port of this machine until it is ended."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import logging
import socket
from typing import TYPE_CHECKING

import uvicorn

from notyet.core.text import first_line, visible
from notyet.web.access import Names
from notyet.web.app import build, complain
from notyet.web.live import Watcher

if TYPE_CHECKING:
    from collections.abc import Generator

    from notyet.web.site import Site

LOOPBACK = "127.0.0.1"
_IPV6 = 6
_MOST_REPORTED = 20  # lines of asyncio


class ListenError(Exception):
    """The page cannot listen at an address and port; its text says why, and what to do."""


def listen(port: int, address: str = LOOPBACK) -> socket.socket:
    """Return a socket that listens at an address of this machine. Raises ListenError.

    Port 0 takes a free one.
    """
    # asyncio sends at once (TCP_NODELAY) only where the socket names its protocol; otherwise each
    # answer may wait 40 ms for the browser's acknowledgement of its headers.
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen()
    except OSError as error:
        listening.close()
        raise ListenError(_why_not(address, port, error)) from error
    return listening


def _why_not(address: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"another program uses port {port}; choose another one, or leave out --port"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{address} is not an address of this machine; leave out --listen, or choose another"
    where = f"port {port}" if address == LOOPBACK else f"port {port} of {address}"
    return f"{where} cannot be used: {error.strerror}; choose another one, or leave out --port"


def _names(listening: socket.socket) -> Names:
    """Return the names by which browsers reach a socket, the one to print first."""
    address, port = listening.getsockname()[:2]
    known = ipaddress.ip_address(address)
    if known.is_unspecified:  # every address of this machine
        host = socket.gethostname().lower()
        return Names((_outward(known.version), "localhost", host), port, any_address=True)
    own = f"[{address}]" if known.version == _IPV6 else address
    return Names((own, "localhost") if known.is_loopback else (own,), port)


def _outward(version: int) -> str:
    """Return the address by which other machines see this one, as far as it has one."""
    family, far = socket.AF_INET, "192.0.2.1"
    if version == _IPV6:
        family, far = socket.AF_INET6, "2001:db8::1"
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((far, 9))  # sends nothing
            own = probe.getsockname()[0]
    except OSError:
        return LOOPBACK
    return f"[{own}]" if version == _IPV6 else str(own)


class Page:
    """A site that is served on a listening socket."""

    def __init__(self, site: Site, listening: socket.socket) -> None:
        self._site = site
        self._listening = listening
        names = _names(listening)
        self.port = names.port
        self.origin = names.origin
        self.address = f"{names.origin}/?token={site.token}"  # that opens it
        if site.proxy is not None:
            self.address = site.proxy.origin
        # Other users see what a browser is started with: that address serves once.
        self.address_once = f"{names.origin}/?token={site.token_once}"
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


class _Briefly(logging.Handler):
    """Writes what asyncio reports, the same only once.

    For each connection that finds no free file it reports some lines, many thousand times a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        why = f": {record.exc_info[1]}" if record.exc_info else ""
        line = visible(f"{first_line(record.getMessage())}{why}")
        if line not in self._seen and len(self._seen) < _MOST_REPORTED:
            self._seen.add(line)
            complain(f"notyet page: {line}")


def _config(app: object) -> uvicorn.Config:
    reports = logging.getLogger("asyncio")
    reports.handlers, reports.propagate = [_Briefly()], False
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
