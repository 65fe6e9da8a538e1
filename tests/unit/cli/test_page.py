"""`notyet page`: what it refuses, and the ledgers that it cannot show."""

import builtins
import http.client
import os
import socket
import sqlite3
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest

from hook_runs import ENTRY
from notyet import Ledger
from notyet.cli import page
from notyet.cli.main import main
from notyet.web import server
from support import decide, stop


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    """A ledger with one stop, that the page shows."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("NOTYET_LEDGER", str(path))
    ledger = Ledger(path)
    decide(ledger, stop())
    ledger.connection.checkpoint()
    ledger.close()
    return path


@pytest.fixture
def started(monkeypatch):
    """The pages that were started, each of which ends at once."""
    pages = []

    def run(self):
        pages.append(self)
        self._listening.close()
        self._site.ledger.close()

    monkeypatch.setattr(server.Page, "run", run)
    return pages


def refused(capsys, *argv):
    code = main(["page", "--no-open", *argv])
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    return code, said.err


def test_the_address_is_the_first_line(started, capsys):
    assert main(["page", "--no-open"]) == 0
    (page,) = started
    assert capsys.readouterr() == (f"{page.address}\n", "")
    assert page.address == f"http://127.0.0.1:{page.port}/?token={page._site.token}"
    assert page._site.token_once not in page.address


def test_very_many_connections_end_neither_the_page_nor_the_terminal():
    limit = f"ulimit -n 64; exec '{sys.executable}' '{ENTRY}' page --no-open"
    page = subprocess.Popen(
        ["/bin/sh", "-c", limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        address = urlsplit(page.stdout.readline().strip())
        place = (address.hostname, address.port)
        with ExitStack() as idle:
            for _ in range(100):
                idle.enter_context(socket.create_connection(place, timeout=30))
            assert "Too many open files" in page.stderr.readline()
        with closing(http.client.HTTPConnection(*place, timeout=30)) as asked:
            asked.request("GET", f"/?{address.query}")
            assert asked.getresponse().status == 303
    finally:
        page.terminate()
        assert "Too many open files" not in page.communicate(timeout=30)[1]


def test_a_damaged_ledger(ledger, capsys):
    ledger.write_bytes(b"\0" * 8192)
    code, said = refused(capsys)
    assert code == 1
    assert "it is damaged" in said
    assert "the next stop sets it aside" in said


@pytest.mark.parametrize(
    ("version", "says"), [(99, "it has version 99"), (1, "an older notyet wrote it")]
)
def test_a_ledger_of_another_version(ledger, capsys, version, says):
    with closing(sqlite3.connect(ledger)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    code, said = refused(capsys)
    assert code == 1
    assert says in said


def test_a_locked_ledger(ledger, capsys):
    with closing(sqlite3.connect(ledger, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("BEGIN EXCLUSIVE")
        code, said = refused(capsys)
    assert code == 1
    assert "other processes locked it" in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_ledger_that_may_not_be_read(ledger, capsys):
    ledger.chmod(0)
    code, said = refused(capsys)
    assert code == 1
    assert "set NOTYET_LEDGER" in said


def test_without_a_ledger_the_page_waits_for_the_first_stop(ledger, started):
    ledger.unlink()
    assert main(["page", "--no-open"]) == 0
    assert len(started) == 1
    assert not ledger.exists()


@pytest.mark.parametrize("package", ["uvicorn", "starlette", "htpy"])
def test_without_its_packages_it_says_how_to_install_them(monkeypatch, capsys, package):
    for name in [*sys.modules]:
        if name.startswith(("notyet.web", package)):
            monkeypatch.delitem(sys.modules, name)
    imported = builtins.__import__

    def without(name, *args):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=package)
        return imported(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    code, said = refused(capsys)
    assert code == 2
    assert said == (
        f"notyet page: it needs {package}, which is not installed;"
        " in a checkout, run: pip install '.[page]'\n"
    )


def test_a_demo_is_shown_from_its_own_ledger(started, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert refused(capsys, "--demo") == (
        1,
        "notyet page: there was no demo yet; run: notyet demo\n",
    )
    demo = tmp_path / "state" / "notyet" / "demo" / "ledger.db"
    decide(Ledger(demo), stop())
    assert main(["page", "--no-open", "--demo", "--read-only"]) == 0
    assert (started[0]._site.path, started[0]._site.read_only) == (str(demo), True)


@pytest.mark.parametrize(
    ("asked", "origin"),
    [("localhost", "http://127.0.0.1"), ("127.0.0.9", "http://127.0.0.9"), ("::1", "http://[::1]")],
)
def test_addresses_of_this_machine_alone_need_no_warning(started, capsys, asked, origin):
    if main(["page", "--no-open", "--listen", asked]) == 1:
        pytest.skip("this machine has no such address")
    assert started[0].origin == f"{origin}:{started[0].port}"
    assert capsys.readouterr().err == ""


def test_every_address_answers_to_addresses_only(started, capsys):
    assert main(["page", "--no-open", "--listen", "0.0.0.0"]) == 0  # noqa: S104
    assert "warning: other machines can reach this page" in capsys.readouterr().err
    with server.listen(0, "0.0.0.0") as listening:  # noqa: S104
        names = server._names(listening)
    assert names.any_address
    assert names.has(f"10.1.2.3:{names.port}")
    assert not names.has(f"evil.example:{names.port}")


def test_a_browser_that_cannot_be_opened_is_said(started, capsys, monkeypatch):
    monkeypatch.setenv("BROWSER", "/nowhere/browser")
    page._open_browser("http://127.0.0.1:1/", 1)
    for thread in threading.enumerate():
        if thread.daemon and thread.name.endswith("(wait)"):
            thread.join(30)
    assert "open the address above" in capsys.readouterr().err
