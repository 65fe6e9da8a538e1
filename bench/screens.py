"""The page on a million stops: does each screen cost what it costs on a thousand?

A page is a process, as people start it, and a screen is what a browser asks it for. An idle page
has one tab open, which waits for news.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from itertools import cycle, islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from bench.log import filled, last_session
from bench.measure import Amount, Effort, Missing, Result, Row, interleaved
from bench.progress import say
from notyet.times import age

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZES = (1_000, 10_000, 100_000, 1_000_000)  # stops: the first beside the last
_ROUNDS = 15
_REQUESTS = 300  # after which memory is looked at again
_IDLE = 10.0  # seconds
_MEGABYTE = 1 << 20
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def measure(effort: Effort) -> list[Result]:
    """Ask pages of a small and a large ledger for the same screens, in turns."""
    if not all(map(find_spec, ("htpy", "starlette", "uvicorn"))):
        return [Missing("the page", "its packages are not installed: make .venv/ready")]
    sizes = effort.sizes(_SIZES)
    with tempfile.TemporaryDirectory(prefix="notyet-bench-") as folder, ExitStack() as stack:
        # Both before a page is started: it ends a connection that is silent for some seconds.
        ledgers = [_ledger(folder, stops) for stops in (sizes[0], sizes[-1])]
        small, large = (stack.enter_context(_page(ledger)) for ledger in ledgers)
        return [*_rows(small, large, effort), *_memory(small, large, effort), _idle(large, effort)]


def _rows(small: Page, large: Page, effort: Effort) -> list[Result]:
    rows: list[Result] = []
    for name in small.screens:
        say(f"the page: {name}")
        subjects = {page.stops: partial(page.get, page.screens[name]) for page in (small, large)}
        taken = interleaved(effort.rounds(_ROUNDS), 1, **{str(n): s for n, s in subjects.items()})
        floor, ours = (taken[str(stops)] for stops in subjects)
        beside = f"the same, {small.stops:,} stops"
        rows.append(Row(f"{name}, {large.stops:,} stops", beside, floor, ours, "screens.million"))
    return rows


def _memory(small: Page, large: Page, effort: Effort) -> list[Result]:
    """Ask each page for many screens; compare what the processes have then."""
    requests = effort.rounds(_REQUESTS)
    say(f"the page: memory after {requests} more requests")
    before = large.memory()
    for name in islice(cycle(small.screens), requests):
        small.get(small.screens[name])
        large.get(large.screens[name])
    after = large.memory()
    beside = f"a page of {large.stops:,} stops, beyond one of {small.stops:,}"
    return [
        Amount(beside, (after - small.memory()) / _MEGABYTE, "MB", "screens.memory"),
        Amount(f"more after {requests} requests", (after - before) / _MEGABYTE, "MB", "screens.flat"),
    ]  # fmt: skip


def _idle(page: Page, effort: Effort) -> Result:
    seconds = _IDLE if effort.share == 1 else 1.0
    say(f"the page: idle for {age(seconds)}")
    with page.stream():
        before = page.cpu_seconds()
        time.sleep(seconds)
        used = page.cpu_seconds() - before
    return Amount("of one core, while nothing happens", 100 * used / seconds, "%", "screens.idle")


class Page:
    """A `notyet page` that runs, and its cookie."""

    def __init__(self, process: subprocess.Popen[str], ledger: _Ledger) -> None:
        assert process.stdout is not None
        self.stops = ledger.stops
        host, number = ledger.session
        self.screens = {
            "Now": "/",
            "Now, 30 days": "/?span=30d",
            "Stops": "/stops",
            "Stops, one outcome": "/stops?outcome=passed",
            "Stops, one folder": f"/stops?place={ledger.place}",
            "Stops, a gate that never ran": "/stops?gate=unheard-of",
            "Stop": f"/stops/{ledger.stops // 2}",
            "Session": f"/session?host={host}&id={number}",
            "Tasks": "/tasks",
            "Gates": "/gates",
        }
        self._pid = process.pid
        address = process.stdout.readline().strip()
        self._place = urlsplit(address)
        self._connection = self._connected()
        answer = self._ask(self._connection, f"/?{self._place.query}", {})
        answer.read()
        self._headers = {"Cookie": (answer.getheader("Set-Cookie") or "").partition(";")[0]}

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._place.hostname or "", self._place.port, timeout=60)

    @staticmethod
    def _ask(
        connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        connection.request("GET", path, headers=headers)
        return connection.getresponse()

    def get(self, path: str) -> None:
        """Ask for a screen; one that cannot be shown is a fault."""
        answer = self._ask(self._connection, path, self._headers)
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{path} was answered with {answer.status}")

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Wait for news, as a tab does."""
        connection = self._connected()
        try:
            answer = self._ask(connection, "/events", self._headers)
            if answer.status != http.HTTPStatus.OK:
                raise RuntimeError(f"/events was answered with {answer.status}")
            yield
        finally:
            connection.close()

    def memory(self) -> int:
        """Return the bytes of memory that are its own."""
        with open(f"/proc/{self._pid}/statm", encoding="ascii") as file:
            _, resident, shared, *_ = map(int, file.read().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """Return the seconds of a core that it has used."""
        with open(f"/proc/{self._pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


class _Ledger(NamedTuple):
    path: str
    place: str
    stops: int
    session: tuple[str, str]


def _ledger(folder: str, stops: int) -> _Ledger:
    say(f"the page: {stops:,} stops")
    path = os.path.join(folder, f"{stops}.db")
    book = filled(path, folder, stops)
    session = last_session(book)
    book.close()
    return _Ledger(path, folder, stops, session)


@contextmanager
def _page(ledger: _Ledger) -> Iterator[Page]:
    with subprocess.Popen(
        [sys.executable, "-m", "notyet", "page", "--no-open"],
        cwd=ledger.place,
        env={"HOME": ledger.place, "PATH": os.environ["PATH"], "NOTYET_LEDGER": ledger.path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Page(process, ledger)
        finally:
            process.terminate()
            process.communicate(timeout=20)
