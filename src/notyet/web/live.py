"""Tell open pages that the ledger changed: one watcher for all of them, one stream for each.

The watcher asks SQLite for its `data_version` a few times a second, and PostgreSQL for its snapshot
every second, and only while a page is open.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from notyet.errors import LedgerError
from notyet.ledger.connection import VERSION
from notyet.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from notyet.web.site import Site

MEDIA_TYPE = "text/event-stream"
_PAUSE = 0.25  # seconds between two looks
_PAUSE_AFTER_CHANGE = 0.5  # a busy ledger changes many times in it; pages are told once
_FARTHER = 4  # times longer where the ledger is a server, which other programs change, too
_BEAT = 15.0  # seconds after which a silent stream is written to: that shows who has vanished
_SOON = 2.0  # seconds until a page that could not be drawn is tried again
_RETRY = 2_000  # milliseconds after which a browser connects again
_LAST_WORD = 1.0  # seconds for telling all pages that this one ends


class Watcher:
    """Watches a site's ledger while at least one stream is open."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._connection = Ledger(site.path, patience=0.0, repair=False).connection
        self._distance = 1 if self._connection.is_file else _FARTHER
        self._streams: set[asyncio.Event] = set()  # each is set when its page is to be told
        self._watching: asyncio.Task[None] | None = None
        self._known: object = None
        self._later: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._is_quiet = asyncio.Event()  # it has ended, and all pages know

    async def stream(self) -> AsyncIterator[str]:
        """Yield server-sent events: `hello` with the page's name, `changed`, at last `ended`.

        The first `changed` comes at once: the ledger may have changed since the page was drawn.
        """
        happened = asyncio.Event()
        self._streams.add(happened)
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch())
        else:
            happened.set()
        try:
            yield f"retry: {_RETRY}\n{_event('hello', self._site.name)}"
            while not self._has_ended:
                try:
                    await asyncio.wait_for(happened.wait(), _BEAT)
                except TimeoutError:
                    yield ":\n\n"
                    continue
                happened.clear()
                yield _event("ended" if self._has_ended else "changed")
        finally:
            self._streams.discard(happened)
            if self._has_ended and not self._streams:
                self._is_quiet.set()

    async def end(self) -> None:
        """Tell all pages that this one ends, and wait a moment until they know."""
        self._has_ended = True
        self._tell()
        if self._streams:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_quiet.wait(), _LAST_WORD)

    def tell_later(self) -> None:
        """Have open pages ask again soon: one of them could not be drawn."""
        if self._later is None:
            self._later = asyncio.get_running_loop().call_later(_SOON, self._tell)

    def close(self) -> None:
        """Close the ledger."""
        self._connection.close()

    async def _watch(self) -> None:
        try:
            while self._streams and not self._has_ended:
                has_changed = await asyncio.to_thread(self._look)
                if has_changed:
                    self._tell()
                pause = _PAUSE_AFTER_CHANGE if has_changed else _PAUSE
                await asyncio.sleep(pause * self._distance)
        finally:
            self._watching = self._known = None
            self._connection.close()

    def _tell(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        for happened in self._streams:
            happened.set()

    def _look(self) -> bool:
        """Return True if the ledger, or what is wrong with it, is not as at the last look."""
        try:
            state: object = self._state()
            if state != self._known and self._connection.version() != VERSION:
                # Another notyet changed its tables: to open it again says so.
                self._connection.close()
                self._site.ledger.close()
                state = self._state()
        except LedgerError as error:
            state = str(error)
        has_changed = state != self._known
        self._known = state
        return has_changed

    def _state(self) -> tuple[object, ...]:
        """Return what differs when the file was written, also by a program other than SQLite."""
        state = self._connection.state()
        try:
            known = os.stat(self._site.path)
        except (OSError, ValueError):
            return state
        return *state, known.st_size, known.st_mtime_ns


def _event(name: str, data: str = "") -> str:
    return f"event: {name}\ndata: {data}\n\n"
