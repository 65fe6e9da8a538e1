"""A network that drops: a proxy on loopback before PostgreSQL, which stalls and cuts."""

import asyncio
from contextlib import suppress


class Proxy:
    """Forwards connections to the Unix socket of a server."""

    def __init__(self, socket):
        self._socket = socket
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_cut = False
        self._writers = set()
        self._pumps = set()

    async def open(self):
        """Listen; return the port."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def close(self):
        self._server.close()
        self._drop()
        for pump in self._pumps:
            pump.cancel()

    async def stall(self, seconds):
        """Forward nothing for a while; connections stay open."""
        self._flows.clear()
        await asyncio.sleep(seconds)
        self._flows.set()

    async def cut(self, seconds):
        """Close all connections, and refuse new ones for a while."""
        self._is_cut = True
        self._drop()
        await asyncio.sleep(seconds)
        self._is_cut = False

    def _drop(self):
        for writer in list(self._writers):
            writer.transport.abort()

    async def _connect(self, reader, writer):
        if self._is_cut:
            writer.transport.abort()
            return
        try:
            there, to_there = await asyncio.open_unix_connection(self._socket)
        except OSError:  # the server crashed
            writer.transport.abort()
            return
        for pump in (self._pump(reader, to_there), self._pump(there, writer)):
            task = asyncio.ensure_future(pump)
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, reader, writer):
        self._writers.add(writer)
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()
