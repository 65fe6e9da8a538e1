"""New stops reach open pages by themselves, whatever becomes of the ledger meanwhile."""

import os
import shutil
import sqlite3
import time
from contextlib import closing, suppress

import pytest

from notyet import Ledger
from notyet.web import live
from support import decide, rows, stop, wait_for


@pytest.fixture
def stream(page, listen):
    """A stream that has said hello, and that the page may be old."""
    decide(page.ledger, stop())
    stream = listen(page)
    assert stream.event() == ("hello", page.site.name)
    assert stream.event() == ("changed", "")
    return stream


def test_a_new_stop_is_told_at_once(page, stream):
    assert stream.status == 200
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    assert stream.headers["x-accel-buffering"] == "no"

    decide(page.ledger, stop(session_id="s2"))
    assert stream.event() == ("changed", "")


@pytest.mark.file_only("other programs change the same server")
def test_nothing_is_told_without_a_change(page, stream):
    assert stream.is_silent()


def test_a_burst_of_stops_is_told_in_a_few_events(page, stream):
    for number in range(50):
        decide(page.ledger, stop(session_id=f"s{number}"))
    assert stream.event() == ("changed", "")
    told = 1
    while not stream.is_silent():
        assert stream.event() == ("changed", "")
        told += 1
    assert 1 <= told < 25


@pytest.mark.file_only("PRAGMA data_version")
def test_an_idle_page_asks_for_the_version_of_the_data_only(page, stream):
    statements = []
    assert page.get("/").status == 200
    for connection in (page.site.ledger.connection, page.watcher._connection):
        connection._db.set_trace_callback(statements.append)

    wait_for(lambda: len(statements) >= 3)

    assert set(statements) == {"PRAGMA data_version"}


def test_without_an_open_page_nothing_is_asked(page, stream):
    watcher = page.watcher
    assert watcher._watching is not None
    stream.close()
    wait_for(lambda: watcher._watching is None)
    assert watcher._streams == set()
    assert watcher._connection._db is None


def test_every_open_page_is_told_and_those_that_vanish_leave_nothing(page, listen):
    streams = [listen(page) for _ in range(200)]
    watcher = page.watcher
    for each in streams:
        assert [each.event(), each.event()] == [("hello", page.site.name), ("changed", "")]
    assert len(watcher._streams) == 200
    decide(page.ledger, stop())
    assert {each.event() for each in streams} == {("changed", "")}
    for each in streams:
        each.close()
    wait_for(lambda: not watcher._streams)
    assert page.get("/").status == 200


def test_a_page_that_reads_nothing_hinders_no_other(page, stream, listen):
    slow = listen(page)
    for number in range(3):
        decide(page.ledger, stop(session_id=f"s{number}"))
        assert stream.event() == ("changed", "")
    page.end()
    wait_for(lambda: not page.thread.is_alive())
    assert slow.event() == ("hello", page.site.name)


def test_a_silent_stream_is_written_to(page, listen, monkeypatch):
    monkeypatch.setattr(live, "_BEAT", 0.01)
    stream = listen(page)
    assert stream.event() == ("hello", page.site.name)
    assert stream.event() == ("changed", "")
    assert not stream.is_silent()


def test_a_page_that_ends_says_so_to_all(page, stream, listen):
    other = listen(page)
    page.end()
    assert stream.event() == ("ended", "")
    assert stream.event() is None
    while (last := other.event()) != ("ended", ""):
        assert last is not None
    wait_for(lambda: not page.thread.is_alive())


def test_only_the_pages_user_may_listen(page):
    assert page.get("/events", Cookie=None).status == 403
    assert page.get("/events", Sec_Fetch_Site="cross-site").status == 403
    assert page.post("/events", {}).status == 405
    head = page.ask("HEAD", "/events")
    assert (head.status, head.text) == (200, "")
    assert page.watcher._streams == set()


# What may become of a ledger.


def trouble(page):
    """Return what an open page says above its contents when it asks anew."""
    answer = page.get("/", HX_Request="true")
    assert answer.status == 200  # htmx drops others
    return answer.text.partition('id="trouble"')[2].partition("<main")[0]


def remove(page):
    page.ledger.close()
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.unlink(page.site.path + suffix)


def test_a_ledger_that_appears_later(serve, listen, tmp_path):
    page = serve(path=str(tmp_path / "later" / "ledger.db"))
    stream = listen(page)
    assert [stream.event()[0], stream.event()[0]] == ["hello", "changed"]
    assert "No agent has stopped yet." in page.get("/").text
    assert "deleted" not in trouble(page)
    assert not os.path.exists(page.site.path)

    decide(page.ledger, stop(session_id="first"))
    assert stream.event() == ("changed", "")
    wait_for(lambda: "first" in page.get("/").text)


@pytest.mark.file_only("its place")
def test_a_ledger_that_is_deleted_and_comes_again(page, stream):
    assert "deleted" not in trouble(page)
    remove(page)
    assert stream.event() == ("changed", "")
    assert "No agent has stopped yet." in page.get("/").text
    assert f"The ledger {page.site.path} was deleted or moved" in trouble(page)

    decide(page.ledger, stop(session_id="again"))
    assert stream.event() == ("changed", "")
    wait_for(lambda: "again" in page.get("/").text)
    assert "deleted" not in trouble(page)


@pytest.mark.file_only("its place")
def test_a_ledger_that_is_replaced(page, stream, tmp_path):
    other = Ledger(tmp_path / "other.db")
    decide(other, stop(session_id="other"))
    other.connection.checkpoint()
    other.close()
    remove(page)
    os.replace(tmp_path / "other.db", page.site.path)

    assert stream.event() == ("changed", "")
    assert "other" in page.get("/").text


@pytest.mark.file_only("a lock on the whole file")
def test_a_ledger_that_is_locked_for_a_while(page, listen):
    decide(page.ledger, stop())
    page.ledger.close()
    page.site.ledger.connection.patience = 0.01
    with closing(sqlite3.connect(page.site.path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = DELETE")  # as on a network disk: writers lock readers out
        stream = listen(page)
        assert [stream.event()[0], stream.event()[0]] == ["hello", "changed"]
        db.execute("BEGIN EXCLUSIVE")
        assert stream.event() == ("changed", "")
        assert "The ledger cannot be used" in trouble(page)
        assert "other processes locked it" in trouble(page)
        assert page.get("/").status == 503
    assert stream.event() == ("changed", "")
    wait_for(lambda: "locked" not in trouble(page))


@pytest.mark.file_only("its contents")
def test_a_ledger_that_is_damaged_and_repaired_by_the_next_stop(page, stream):
    page.ledger.connection.checkpoint()
    page.ledger.close()
    page.site.ledger.close()
    with open(page.site.path, "r+b") as file:
        file.write(b"\0" * os.path.getsize(page.site.path))
    assert stream.event() == ("changed", "")
    wait_for(lambda: "it is damaged" in trouble(page))
    assert "the next stop sets it aside" in trouble(page)

    decide(page.ledger, stop(session_id="repaired"))
    assert stream.event() == ("changed", "")
    wait_for(lambda: "repaired" in page.get("/").text)


def test_a_ledger_that_a_newer_notyet_changes(page, stream):
    is_file = page.ledger.connection.is_file

    def set_version(number):
        if is_file:
            rows(page.ledger, f"PRAGMA user_version = {number}")
        else:
            rows(page.ledger, "UPDATE ledger_version SET version = ?", number)

    set_version(99)
    assert stream.event() == ("changed", "")
    wait_for(lambda: "it has version 99" in trouble(page))
    assert "upgrade notyet" in trouble(page)

    set_version(live.VERSION)
    assert stream.event() == ("changed", "")
    wait_for(lambda: "version" not in trouble(page))


@pytest.mark.file_only("its place")
def test_a_ledger_that_becomes_a_folder(page, stream):
    remove(page)
    os.mkdir(page.site.path)
    wait_for(lambda: "it is a directory" in trouble(page))
    shutil.rmtree(page.site.path)
    while stream.event() != ("changed", ""):
        time.sleep(0)
    wait_for(lambda: "directory" not in trouble(page))


@pytest.mark.file_only("its mode")
def test_a_ledger_that_can_only_be_read_is_shown(page, stream):
    os.chmod(page.site.path, 0o400)
    assert "s1" in page.get("/").text
    assert stream.is_silent(0.5)


def test_a_screen_that_could_not_be_read_is_tried_again(page, stream, monkeypatch):
    monkeypatch.setattr(live, "_SOON", 0.01)
    connection = page.site.ledger.connection
    whole = connection.read
    monkeypatch.setattr(connection, "read", lambda _work: whole(lambda db: db.execute("oops")))
    assert "syntax error" in trouble(
        page
    )  # as a damaged part of a file has it, that others pass by
    assert stream.event() == ("changed", "")
