"""Two pipes between two programs, moved by one event loop: whole lines in, bytes out.

A side that does not read holds up only the side that writes to it: while too much waits for it,
nothing more is read from the other.
"""

from __future__ import annotations

import asyncio
import os
import select
from typing import TYPE_CHECKING

from notyet.run.process import block_sigpipe, restore_sigpipe

if TYPE_CHECKING:
    from collections.abc import Callable

_CHUNK = 256 * 1024
_HIGH = 1024 * 1024  # bytes that wait, from which on the other side is not read
_LOW = 256 * 1024  # below which it is read again
_LOOK = 1.0  # seconds between two looks whether the writer of what is not read has gone
_GONE = select.POLLHUP | getattr(select, "POLLRDHUP", 0)  # the latter is Linux's


class Inlet:
    """Reads lines from a descriptor, which it makes non-blocking, and gives them away in bundles.

    A bundle is the bytes of whole lines. Lines have no limit: one is given away when it is
    complete. The rest comes at the end.
    """

    def __init__(
        self,
        fd: int,
        on_bundle: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        """Begin to read. Raises OSError for a descriptor of a file."""
        self._fd = fd
        self._on_bundle = on_bundle
        self._on_end = on_end
        self._parts: list[bytes] = []  # of a line that is not complete
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._watch: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def pause(self) -> None:
        """Read no more for now; notice if the writer goes, whose end we would not read."""
        if self._is_open:
            self._loop.remove_reader(self._fd)
            self._watch = self._loop.call_later(_LOOK, self._look)

    def resume(self) -> None:
        """Read again."""
        if self._watch is not None:
            self._watch.cancel()
        if self._is_open:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Stop reading; the descriptor stays open."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._fd)

    def _look(self) -> None:
        if not self._is_open:
            return
        poll = select.poll()
        poll.register(self._fd, _GONE)
        if poll.poll(0):
            self._on_end()
        else:
            self._watch = self._loop.call_later(_LOOK, self._look)

    def drain(self) -> None:
        """Read what is there, after the writer has ended."""
        while self._is_open and self._read():
            pass

    def _read(self) -> bool:
        try:
            chunk = os.read(self._fd, _CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            chunk = b""
        if chunk:
            self._split(chunk)
            return True
        self.close()
        if self._parts:
            line, self._parts = b"".join(self._parts), []
            self._on_bundle(line)
        self._on_end()
        return False

    def _split(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if not end:
            self._parts.append(chunk)
            return
        whole = b"".join((*self._parts, chunk[:end]))
        self._parts = [chunk[end:]] if end < len(chunk) else []
        self._on_bundle(whole)


def lines_in(bundle: bytes) -> list[bytes]:
    """Return the lines of a bundle, with their newlines; the last one may have none."""
    lines = [line + b"\n" for line in bundle.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


class Outlet:
    """Writes to a descriptor, which it makes non-blocking, without waiting."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._now = memoryview(b"")  # being written
        self._later: list[bytes] = []
        self._size = 0  # of both
        self._is_scheduled = self._is_waiting = self._is_full = False
        self._is_open = True
        self._source: Inlet | None = None
        self._is_empty: asyncio.Future[None] | None = None
        os.set_blocking(fd, False)

    def holds_up(self, source: Inlet) -> None:
        """Name what is not read while too much waits here."""
        self._source = source

    def write(self, data: bytes) -> None:
        """Write soon, with all that comes in this turn of the loop."""
        if not self._is_open:
            return
        self._later.append(data)
        self._size += len(data)
        if self._size > _HIGH and not self._is_full and self._source is not None:
            self._is_full = True
            self._source.pause()
        if not self._is_scheduled and not self._is_waiting:
            self._is_scheduled = True
            self._loop.call_soon(self._flush)

    async def emptied(self, patience: float) -> None:
        """Wait until everything is written, or for so many seconds."""
        self._flush()
        if self._size:
            self._is_empty = self._loop.create_future()
            await asyncio.wait({self._is_empty}, timeout=patience)

    def close(self) -> None:
        """Write no more; the descriptor stays open."""
        self._is_open = False
        self._now, self._later, self._size = memoryview(b""), [], 0
        self._watch(is_waiting=False)
        self._let_go()

    def _flush(self) -> None:
        self._is_scheduled = False
        if not self._is_open:
            return
        held = block_sigpipe()
        try:
            while self._size:
                if not self._now:
                    self._now, self._later = memoryview(b"".join(self._later)), []
                written = os.write(self._fd, self._now)
                self._now = self._now[written:]
                self._size -= written
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:  # its reader is gone, which is seen elsewhere
            self.close()
            return
        finally:
            restore_sigpipe(held)
        self._watch(is_waiting=bool(self._size))
        if self._size < _LOW:
            self._let_go()

    def _watch(self, *, is_waiting: bool) -> None:
        if not is_waiting and self._is_empty is not None and not self._is_empty.done():
            self._is_empty.set_result(None)
        if is_waiting and not self._is_waiting:
            self._loop.add_writer(self._fd, self._flush)
        elif self._is_waiting and not is_waiting:
            self._loop.remove_writer(self._fd)
        self._is_waiting = is_waiting

    def _let_go(self) -> None:
        if self._is_full and self._source is not None:
            self._is_full = False
            self._source.resume()
