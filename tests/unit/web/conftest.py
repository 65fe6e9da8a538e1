"""A real page on a real ledger, and what a browser without scripts would do with it."""

import http.client
import json
import select
import socket
import threading
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

from notyet import Ledger
from notyet.web import server
from notyet.web.site import Site


@dataclass
class Answer:
    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def json(self):
        return json.loads(self.text)


class Client:
    """Asks a running page, with the cookie of its user unless told otherwise."""

    def __init__(self, site, page, thread, again):
        self.site, self.port, self.origin, self.address = site, page.port, page.origin, page.address
        self.end, self.thread, self.again = page.end, thread, again
        self.watcher = page._watcher
        self.ledger = Ledger(site.path)
        self.cookie = f"notyet_{page.port}={site.cookie}"

    def ask(self, method, path, body=None, **headers):
        """Send a request; `None` leaves a header out, `_` stands for `-` in names."""
        sent = {"Cookie": self.cookie, **{n.replace("_", "-"): v for n, v in headers.items()}}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host="Host" in sent, skip_accept_encoding=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, fields, **headers):
        """Send a form as the page's own forms do."""
        body = urlencode({"token": self.site.form_token, **fields}).encode()
        kind = "application/x-www-form-urlencoded"
        sent = {"Origin": self.origin, "Content-Type": kind, **headers}
        return self.ask("POST", path, body, **sent)


class Stream:
    """One open stream of events."""

    def __init__(self, page):
        self._socket = socket.create_connection(("127.0.0.1", page.port), timeout=30)
        head = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nCookie: {page.cookie}\r\n"
        self._socket.sendall(f"{head}\r\n".encode())
        self._read = b""
        self.status = int(self._line().split()[1])
        self.headers = dict(line.split(": ", 1) for line in iter(self._line, ""))

    def _line(self):
        """Return the next line; None at the end."""
        while b"\n" not in self._read:
            more = self._socket.recv(65536)
            if not more:
                return None
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return line.decode().strip()

    def event(self):
        """Return the next event's name and data; None at the end."""
        name = None
        while (line := self._line()) is not None:
            kind, _, value = line.partition(":")
            if kind == "event":
                name = value.strip()
            elif kind == "data":
                return name, value.strip()
        return None

    def is_silent(self, seconds=1.0):
        """Return True if no event comes for a while."""
        is_read = b"data" in self._read
        return not is_read and not select.select([self._socket], [], [], seconds)[0]

    def close(self):
        self._socket.close()


@pytest.fixture(scope="session")
def _ending():
    """Threads of pages that were told to end: that takes some tenths of a second."""
    threads = []
    yield threads
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.fixture
def serve(tmp_path, _ending):
    """Serve a site with these fields; without a path it has a new, empty ledger."""
    running = []

    def serve(**fields):
        fields.setdefault("path", str(tmp_path / f"ledger-{len(running)}.db"))
        fields.setdefault("cwd", str(tmp_path))
        site = Site(**fields)
        page = server.Page(site, server.listen(0))
        thread = threading.Thread(target=page.run)
        thread.start()
        running.append(Client(site, page, thread, lambda: serve(**fields)))
        return running[-1]

    yield serve
    for client in running:
        client.end()
        _ending.append(client.thread)
        client.ledger.close()


@pytest.fixture
def page(serve):
    """A running page of an empty ledger: `page.get("/")`, `page.ledger`, `page.site`."""
    return serve()


@pytest.fixture
def get(page):
    return page.get


@pytest.fixture
def listen():
    """Open a stream of events of a page."""
    streams = []

    def open_stream(page):
        streams.append(Stream(page))
        return streams[-1]

    yield open_stream
    for each in streams:
        each.close()
