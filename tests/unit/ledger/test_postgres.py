"""What only a ledger on PostgreSQL meets: addresses, roles, broken connections, races."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from zlib import crc32

import psycopg
import pytest

import notyet.ledger.connection
from notyet import Block, Decision, Ledger, LedgerError, LedgerNewer
from notyet.core.task import Task
from notyet.errors import LedgerBusy, LedgerNeedsRepair
from notyet.ledger import migrations
from notyet.ledger.connection import VERSION
from notyet.ledger.leases import Leases
from notyet.ledger.postgres_address import Address, masked
from notyet.ledger.postgres_sql import restored, stored
from notyet.ledger.postgres_transaction import Transaction, Writer
from notyet.ledger.tasks import Tasks
from stores import guarded, opened
from supervised import first_run
from support import decide, rows, stop

BLOCKED = Decision(verdict=Block("x"), outcome="blocked", turn=1, limit=10**6)


@pytest.fixture
def url(cluster, request):
    """Return the address of a schema that only this test has."""
    return cluster.url(schema=f"t{crc32(request.node.nodeid.encode()):x}")


@pytest.fixture
def ledger(url):
    return Ledger(url)


def refused(url, *parts, kind=LedgerError, **options):
    """Check that a ledger says in one sentence why it cannot be used, without a password."""
    with pytest.raises(kind) as raised:
        Ledger(url, **options).begin(stop())
    said = str(raised.value)
    assert "geheim" not in said + repr(raised.value)
    assert "\n" not in said
    for part in parts:
        assert part in said, said
    return said


# Addresses.


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me@db/notyet", "postgresql://me@db/notyet"),
        ("postgresql://me:geheim@db:5433/notyet", "postgresql://me:***@db:5433/notyet"),
        ("postgres://me:gehe/im@db/x", "postgres://me:***@db/x"),
        ("postgresql://me:gehe@im@db/x", "postgresql://me:***@db/x"),
        ("postgresql:///x?host=/run&password=geheim", "postgresql:///x?host=/run&password=***"),
        ("postgresql://db/x?sslpassword=a&schema=s", "postgresql://db/x?sslpassword=***&schema=s"),
    ],
)
def test_a_password_is_not_shown(url, shown):
    assert masked(url) == shown


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://me:geheim%zz@db/x", "write postgresql://USER@HOST:5432/DATABASE"),
        ("postgresql://me:geheim/y@db/x", "write postgresql://USER@HOST:5432/DATABASE"),
        ("postgresql://db/x?geheim=1", "write postgresql://USER@HOST:5432/DATABASE"),
        ("postgresql://me:geheim@db/x?schema=A-b", "write for example ?schema=notyet"),
    ],
)
def test_a_wrong_address_is_refused_at_once(url, says):
    with pytest.raises(LedgerError) as raised:
        Ledger(url)
    assert says in str(raised.value)
    assert "geheim" not in str(raised.value).replace("?geheim=1", "")


def test_the_tables_are_in_a_schema_of_their_own(cluster):
    assert Address("postgresql://db/x").schema == "notyet"
    assert Address("postgresql://db/x?schema=team_a").schema == "team_a"
    ledger = Ledger(cluster.url(schema="team_a"))
    decide(ledger, stop())
    assert cluster.psql("SELECT 1 FROM team_a.stops") == ""
    assert decide(Ledger(cluster.url(schema="team_b")), stop()) == 1


def test_without_psycopg_the_extra_is_named():
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from notyet import Ledger, LedgerError\n"
        "try: Ledger('postgresql://db/x')\n"
        "except LedgerError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == (
        "ledger on PostgreSQL: it needs psycopg, which is not installed;"
        " in a checkout, run: pip install '.[postgres]'\n"
    )


def test_an_unused_ledger_connects_to_nothing():
    Ledger("postgresql://me@192.0.2.1/x").close()


# A server that refuses.


def test_a_server_that_is_down_is_said_with_what_to_do(cluster):
    nowhere = "postgresql://me:geheim@/x?host=/nowhere"
    refused(nowhere, "cannot be reached", "start it, or correct", patience=0.1)
    refused(cluster.url(database="missing"), 'database "missing" does not exist', "correct the add")
    refused(cluster.url(user="stranger"), 'role "stranger" does not exist', "correct the address")


def test_a_role_without_rights_is_told_what_an_administrator_runs(cluster):
    cluster.psql("CREATE ROLE guest LOGIN; CREATE DATABASE owned; ")
    url = cluster.url(user="guest", database="owned")
    refused(url, "guest lacks a right", "CREATE SCHEMA notyet AUTHORIZATION guest")
    cluster.psql("CREATE SCHEMA notyet AUTHORIZATION guest", "owned")
    assert decide(Ledger(url), stop()) == 1
    cluster.psql("REVOKE ALL ON ALL TABLES IN SCHEMA notyet FROM guest", "owned")
    refused(url, "guest lacks a right", "permission denied for")


def test_a_read_only_database_is_said(cluster):
    cluster.psql("CREATE ROLE reader LOGIN SUPERUSER")
    decide(Ledger(cluster.url(schema="readable")), stop())
    cluster.psql("ALTER ROLE reader SET default_transaction_read_only = on")
    url = cluster.url(schema="readable", user="reader")
    assert rows(Ledger(cluster.url(schema="readable")), "SELECT count(*) FROM stops") == [(1,)]
    refused(url, "the database is read-only; use the primary's address")
    assert Ledger(url).connection.rows("SELECT count(*) FROM stops") == [(1,)]


def test_a_database_of_another_encoding_is_refused(cluster):
    cluster.psql("CREATE DATABASE old ENCODING 'SQL_ASCII' TEMPLATE template0")
    refused(cluster.url(database="old"), "encoding SQL_ASCII; create it with ENCODING 'UTF8'")


def test_a_schema_that_was_dropped_is_said_and_made_anew(ledger, cluster):
    decide(ledger, stop())
    schema = ledger.path.rpartition("=")[2]
    cluster.psql(f"DROP SCHEMA {schema} CASCADE")
    with pytest.raises(LedgerError, match="are gone; was it dropped"):
        ledger.begin(stop())
    assert ledger.begin(stop()).stop == 1


def test_a_server_that_is_just_started_is_waited_for(url, cluster):
    cluster.stop()
    starting = threading.Timer(0.5, cluster.start)
    starting.start()
    assert decide(Ledger(url, patience=30), stop()) == 1
    starting.join()


# Versions.


def test_a_newer_ledger_is_left_alone(ledger, url):
    decide(ledger, stop())
    rows(ledger, "UPDATE ledger_version SET version = 99 RETURNING version")
    said = refused(url, "version 99", f"reads up to {VERSION}; upgrade notyet", kind=LedgerNewer)
    assert url in said
    with pytest.raises(LedgerNewer):  # which has been connected since before
        ledger.begin(stop())


def test_an_older_ledger_is_updated_by_writers_only(ledger, url, monkeypatch):
    decide(ledger, stop())
    newer = (*migrations.STEPS, lambda db: db.execute("ALTER TABLE stops ADD COLUMN note TEXT"))
    monkeypatch.setattr("notyet.ledger.postgres.STEPS", newer)
    for module in ("connection", "postgres"):
        monkeypatch.setattr(f"notyet.ledger.{module}.VERSION", VERSION + 1)
    assert notyet.ledger.connection.VERSION == VERSION + 1
    with pytest.raises(LedgerNeedsRepair, match="an older notyet wrote it"):
        Ledger(url, repair=False).connection.rows("SELECT 1")
    threads = [
        threading.Thread(target=decide, args=(Ledger(url), stop(session_id=f"s{number}")))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(ledger, "SELECT count(note) FROM stops") == [(0,)]
    assert rows(ledger, "SELECT version FROM ledger_version") == [(VERSION + 1,)]


def test_a_reader_finds_no_ledger_empty_and_makes_none(url, cluster):
    reader = Ledger(url, repair=False)
    assert reader.recall(stop(), []) == {}
    assert Tasks(reader).views() == []
    schema = url.rpartition("=")[2]
    assert schema not in cluster.run("psql", "-d", "postgres", "-c", r"\dn").stdout
    decide(Ledger(url), stop())
    assert reader.connection.rows("SELECT count(*) FROM stops") == [(1,)]


def test_many_processes_that_come_first_make_one_ledger(url):
    code = f"from notyet import Ledger, StopEvent; Ledger({url!r}).begin(StopEvent(session_id='s'))"
    first = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(6)]
    assert [process.wait(60) for process in first] == [0] * 6
    assert rows(Ledger(url), "SELECT count(*) FROM agents") == [(1,)]


# Values.


@pytest.mark.parametrize("text", ["", "a\0b", "\x1a", "\x1a0", "\0\x1a1\0", "100 % of '?'", "日本"])
def test_every_text_comes_back_as_it_was(ledger, text):
    assert restored((stored(text),)) == (text,)
    ledger.act("trust", text, "x")
    found = "SELECT place FROM acts WHERE place = ?"
    assert ledger.connection.rows(found, (text,)) == [(text,)]


def test_texts_are_ordered_by_their_bytes(ledger):
    for text in ("b", "é", "a", "Z", "_", " "):
        ledger.act("trust", text, "")
    found = [place for (place,) in ledger.connection.rows("SELECT place FROM acts ORDER BY place")]
    assert found == sorted(found)


def test_sums_are_numbers_like_those_of_sqlite(ledger):
    found = ledger.connection.rows("SELECT sum(n), sum(n / 2.0) FROM (VALUES (1), (2)) AS t (n)")
    assert [type(value) for value in found[0]] == [int, float]


# Broken connections.


def backends(cluster, do="count(*)"):
    """Return the sessions of ledgers, or do something to them."""
    sql = f"SELECT {do} FROM pg_stat_activity WHERE application_name = 'notyet'"  # noqa: S608
    return cluster.run("psql", "-At", "-d", "postgres", "-c", sql).stdout.split()


def test_a_connection_that_broke_is_opened_again(ledger, cluster):
    decide(ledger, stop())
    backends(cluster, "pg_terminate_backend(pid)")
    assert ledger.begin(stop(session_id="after")).stop == 2
    assert ledger.connection.rows("SELECT count(*) FROM stops") == [(2,)]


def test_a_transaction_whose_connection_breaks_before_its_commit_is_run_again(ledger, cluster):
    decide(ledger, stop())
    tries = []

    def work(db):
        db.execute("INSERT INTO acts (at, what, place, detail) VALUES (1, 'x', '', '')")
        tries.append(1)
        if len(tries) == 1:
            backends(cluster, "pg_terminate_backend(pid)")
        db.execute("SELECT 1")

    ledger.connection.write(work)
    assert len(tries) == 2
    assert rows(ledger, "SELECT count(*) FROM acts") == [(1,)]


def is_commit(sql):
    """Return True for the message that ends a transaction, with the changes that wait for it."""
    return isinstance(sql, bytes) and sql.endswith(b"COMMIT")


class Cut:
    """A connection that breaks at a COMMIT: before the server gets it, or after it has done it."""

    def __init__(self, db, *, before):
        self._db, self._before = db, before

    def execute(self, sql, *values):
        if not is_commit(sql):
            return self._db.execute(sql, *values)
        if not self._before:
            self._db.execute(sql)
        self._db.pgconn.finish()
        return self._db.execute("SELECT 1")  # which finds that out

    def __getattr__(self, name):
        return getattr(self._db, name)


@pytest.mark.parametrize("before", [True, False])
def test_a_commit_without_an_answer_is_carried_out_exactly_once(ledger, before):
    begun = ledger.begin(stop())
    ledger.connection._db = Cut(ledger.connection._db, before=before)
    ledger.record(begun, BLOCKED)
    assert ledger.begin(stop(last_message="next")).history.blocks == 1
    ledger.connection._db = Cut(ledger.connection._db, before=before)
    assert ledger.begin(stop(session_id="new")).history.turn == 1
    assert rows(ledger, "SELECT count(*) FROM stops") == [(3,)]


def test_a_server_that_crashed_does_not_take_another_transaction_for_a_lost_one(ledger, cluster):
    decide(ledger, stop())
    numbers = "SELECT pg_current_xact_id()::text::bigint"
    lost = []

    class Crashing(Cut):
        def execute(self, sql, *values):
            if is_commit(sql):
                lost.append(self._db.execute(numbers).fetchone()[0])
                cluster.crash()  # which gives the number again: it is on no disk
                while int(cluster.run("psql", "-d", "postgres", "-Atc", numbers).stdout) < lost[0]:
                    pass
            return super().execute(sql, *values)

    def work(db):
        tries.append(1)
        db.execute("INSERT INTO acts (at, what, place, detail) VALUES (1, 'x', '', '')")

    tries = []
    ledger.connection.write(lambda db: db.execute("UPDATE agents SET told = 1"))
    ledger.connection._db = Crashing(ledger.connection._db, before=True)
    ledger.connection.write(work)
    status = cluster.run(
        "psql", "-d", "postgres", "-Atc", f"SELECT pg_xact_status('{lost[0]}')"
    ).stdout.strip()
    assert (len(tries), status) == (2, "committed")
    assert rows(ledger, "SELECT count(*) FROM acts") == [(1,)]


def test_a_commit_that_is_still_under_way_is_waited_for(ledger):
    decide(ledger, stop())
    address = ledger.connection._address
    writer = Writer(address.schema)
    with closing(address.connect()) as one, closing(address.connect()) as other:
        slow = Transaction(one, address.schema, 5.0, writer=writer)
        slow.execute("INSERT INTO acts (at, what, place, detail) VALUES (1, 'x', '', '')")
        slow.flush()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            writer.has_committed(other, 0.05)
        slow.commit()
        assert writer.has_committed(other, 0.05)
        Transaction(one, address.schema, 5.0, writer=writer).execute("SELECT 1").fetchone()
        one.execute("ROLLBACK")
        assert not writer.has_committed(other, 0.05)


def test_a_commit_of_unknown_fate_is_said_if_the_server_does_not_come_back(ledger, monkeypatch):
    ledger.patience = 0.3
    begun = ledger.begin(stop())
    connection = ledger.connection
    connection._db = Cut(connection._db, before=False)
    monkeypatch.setitem(connection._address.options, "host", "/nowhere")
    with pytest.raises(LedgerError, match="it is unknown what became of it"):
        ledger.record(begun, BLOCKED)


def test_a_server_that_does_not_answer_is_a_broken_connection(ledger, monkeypatch):
    monkeypatch.setattr("notyet.ledger.postgres_transaction.Answering.longest_silence", 0.3)
    decide(ledger, stop())
    backend = ledger.connection.rows("SELECT pg_backend_pid()")[0][0]
    os.kill(backend, signal.SIGSTOP)
    try:
        assert ledger.begin(stop(session_id="after")).stop == 2
    finally:
        os.kill(backend, signal.SIGCONT)


def test_a_suspended_process_does_not_keep_its_locks(ledger, monkeypatch):
    monkeypatch.setattr("notyet.ledger.postgres_transaction._IDLE", "200ms")
    decide(ledger, stop())

    def work(db):
        db.execute("UPDATE agents SET told = 5")
        if not tries:
            tries.append(1)
            time.sleep(0.5)
        db.execute("SELECT 1")

    tries = []
    ledger.connection.write(work)  # run again, since it was undone
    assert rows(ledger, "SELECT told FROM agents") == [(5,)]


class Interrupted(Cut):
    """A connection during which Ctrl-C is pressed at a COMMIT."""

    def execute(self, sql, *values):
        if is_commit(sql):
            raise KeyboardInterrupt
        return self._db.execute(sql, *values)


def test_ctrl_c_in_the_midst_of_a_transaction_leaves_no_lock(ledger, url):
    ledger.begin(stop(session_id="another"))
    ledger.connection._db = Interrupted(ledger.connection._db, before=True)
    with pytest.raises(KeyboardInterrupt):
        ledger.begin(stop())
    assert not Ledger(url, patience=0.5).begin(stop(last_message="x")).repeats

    def work(db):
        db.execute("UPDATE agents SET told = 5")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.connection.write(work)
    assert not Ledger(url, patience=0.5).begin(stop(last_message="y")).repeats
    assert rows(ledger, "SELECT max(told) FROM agents") == [(0,)]


# Races.


def test_a_duplicate_that_is_no_race_is_said(ledger):
    insert = "INSERT INTO passes (definition, tree, at) VALUES ('d', 't', 1)"
    ledger.connection.execute(insert, ())
    with pytest.raises(LedgerError, match="PostgreSQL reports: duplicate key"):
        ledger.connection.execute(insert, ())


def test_a_lock_is_waited_for_only_as_long_as_asked(ledger):
    decide(ledger, stop())
    with opened(ledger) as db:
        db.execute("SELECT 1 FROM agents FOR UPDATE").fetchall()
        with pytest.raises(LedgerBusy, match=r"locked it for over 0\.2 s"):
            ledger.begin(stop(), 0.2)
        assert ledger.begin(stop(session_id="another"), 0.2).stop


def test_deadlocks_are_lost_races(ledger, url):
    for session in ("a", "b"):
        decide(ledger, stop(session_id=session))
    barrier = threading.Barrier(2)

    def both(first, second):
        tries = []

        def work(db):
            db.execute("UPDATE agents SET told = told + 1 WHERE session_id = ?", (first,))
            if not tries:
                tries.append(1)
                barrier.wait()
            db.execute("UPDATE agents SET told = told + 1 WHERE session_id = ?", (second,))

        Ledger(url, patience=30).connection.write(work)

    threads = [threading.Thread(target=both, args=names) for names in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(ledger, "SELECT told FROM agents") == [(2,), (2,)]


def test_a_prompt_is_not_marked_as_sent_by_an_owner_that_is_just_losing_the_task(url):
    ledger = Ledger(url)
    leases, tasks = Leases(ledger.connection), Tasks(ledger)
    old = leases.enrol(1000.0)
    run = first_run("t1")
    limits = {"max_depth": 9, "max_children": 9}
    tasks.start(Task(id="t1", prompt="do it"), run, old, {}, "", **limits)
    marked = []
    with opened(ledger) as db:
        db.execute("SELECT 1 FROM tasks FOR UPDATE").fetchall()
        db.execute("UPDATE tasks SET owner = ?", (leases.enrol(1000.0),))
        late = threading.Thread(
            target=lambda: marked.append(tasks.mark_sent(run, old, "dispatched"))
        )
        late.start()
        time.sleep(0.2)
    late.join()
    assert marked == [False]


def test_a_move_that_reads_before_it_locks_is_found_by_the_tests_on_postgresql(ledger, monkeypatch):
    decide(ledger, stop())
    monkeypatch.setattr("notyet.ledger.postgres_transaction.Transaction.execute", guarded())
    with pytest.raises(AssertionError, match="no row is locked before: SELECT owner FROM tasks"):
        ledger.connection.execute("SELECT owner FROM tasks", ())


# Behind pgbouncer.


def test_a_pool_in_transaction_mode_makes_no_difference(pooled):
    def work(name):
        ledger = Ledger(pooled, patience=30)
        for number in range(20):
            begun = ledger.begin(stop(session_id="shared", last_message=f"{name} {number}"))
            ledger.record(begun, BLOCKED)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger = Ledger(pooled)
    assert ledger.begin(stop(session_id="shared")).history.blocks == 120
    assert ledger.connection.listen() is None  # so that supervisors poll
