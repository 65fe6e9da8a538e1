"""A database for each test, a ledger with stops, and the team's rows."""

import os
import socket
import struct
import tempfile
from zlib import crc32

import psycopg
import pytest

from notyet import Allow, Block, Engine, Ledger
from support import gate, stop


class Database:
    """One database of the cluster."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.url = cluster.url(database=name)
        assert cluster.psql(f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}") == ""

    def run(self, text):
        """Run a script of an administrator."""
        assert self.cluster.psql(text, self.name) == ""

    def rows(self, query):
        with psycopg.connect(self.url) as db:
            return db.execute(query).fetchall()

    def outcomes(self):
        return self.rows("SELECT id, outcome FROM team.stop ORDER BY id")


@pytest.fixture
def database(cluster, request):
    return Database(cluster, f"d{crc32(request.node.nodeid.encode()):x}")


@pytest.fixture
def ledger():
    """The ledger of this user."""
    ledger = Ledger()
    yield ledger
    ledger.close()


@pytest.fixture
def users_file():
    """The path of the user's own notyet.toml, which is not there yet."""
    folder = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(folder)
    return os.path.join(folder, "notyet.toml")


@pytest.fixture
def fill(ledger):
    """Enter turns into the ledger: each is a stop that was sent back, and one that passed."""

    def fill(turns, **fields):
        for turn in range(turns):
            answers = [Block("the secret words"), Allow()]
            engine = Engine(
                [gate("tests", lambda *_, left=answers: left.pop(0)), gate("lint", Allow())],
                ledger=ledger,
                warn=lambda _: None,
            )
            for said in "ab":
                known = {"turn_id": f"t{turn}", "last_message": f"my words {said}"} | fields
                engine.check_sync(stop(**known))

    return fill


class Silent:
    """A server that accepts connections, and never answers."""

    def __init__(self, folder, server):
        self._server = server
        self._accepted = []
        self.url = f"postgresql://me:geheim@/x?host={folder}"

    def accept(self):
        """Wait for the next connection; return the process that made it."""
        connection, _ = self._server.accept()
        self._accepted.append(connection)
        who = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", who)[0]

    def close(self):
        for connection in self._accepted:
            connection.close()


@pytest.fixture
def silent():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/.s.PGSQL.5432")  # a socket's path is short
        server.listen(20)
        server.settimeout(60)
        accepting = Silent(folder, server)
        yield accepting
        accepting.close()
