"""Several connections of one ledger, and the statements that its server need not plan again."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from zlib import crc32

import psycopg
import pytest

from notyet import Ledger
from notyet.errors import Refused

ACT = "INSERT INTO acts (at, what, place, detail) VALUES (?, ?, '', '')"
PLANS = "SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'notyet%'"


@pytest.fixture
def url(cluster, request):
    """Return the address of a schema that only this test has."""
    return cluster.url(schema=f"t{crc32(request.node.nodeid.encode()):x}")


@pytest.fixture
def ledger(url):
    with closing(Ledger(url)) as ledger:
        yield ledger


def write(ledger, what="x"):
    return ledger.connection.execute(ACT, (1.0, what))


def written(ledger):
    return ledger.connection.rows("SELECT count(*) FROM acts")[0][0]


def given_up(db):
    """Raise before anything is sent."""
    db.execute(ACT, (1.0, "x"))
    raise Refused("no")


def planned(ledger):
    """Count the plans of a connection, in a transaction that makes none itself."""
    with ledger.connection._lock:
        return ledger.connection._db.execute(PLANS).fetchone()[0]


# Connections.


def test_transactions_of_many_threads_run_at_the_same_time(ledger):
    most = ledger.connection.at_once
    together = threading.Barrier(most, timeout=30)

    def work(db):
        backend = db.execute("SELECT pg_backend_pid()").fetchone()[0]
        together.wait()
        return backend

    with ThreadPoolExecutor(most) as threads:
        backends = {
            each.result()
            for each in [threads.submit(ledger.connection.write, work) for _ in range(most)]
        }
    assert len(backends) == most


def test_more_threads_than_connections_wait_for_one(ledger):
    with ThreadPoolExecutor(40) as threads:
        list(threads.map(lambda number: write(ledger, str(number)), range(200)))
    assert written(ledger) == 200


def test_a_closed_ledger_has_no_connection_left(url, cluster):
    name = f"closed{crc32(url.encode()):x}"
    ledger = Ledger(f"{url}&application_name={name}")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: write(ledger), range(50)))
    ledger.close()
    sql = "SELECT application_name FROM pg_stat_activity"
    while name in cluster.run("psql", "-d", "postgres", "-Atc", sql).stdout:
        time.sleep(0.01)  # the server notices a moment later
    assert write(ledger) == 1  # which opens it again
    ledger.close()


def test_a_server_that_takes_one_connection_only_is_enough(cluster, url):
    role = f"r{crc32(url.encode()):x}"
    with closing(Ledger(url)) as own:
        write(own)
        schema = own.connection.schema
    cluster.psql(
        f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1;"
        f"GRANT ALL ON SCHEMA {schema} TO {role};"
        f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role};"
        f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {role};"
    )
    with closing(Ledger(cluster.url(schema=schema, user=role))) as ledger:
        write(ledger)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: write(ledger), range(100)))
        assert written(ledger) == 102


# Plans.


def test_a_statement_is_planned_at_its_second_use(ledger):
    write(ledger)
    before = planned(ledger)
    write(ledger)
    write(ledger)
    assert planned(ledger) > before
    again = planned(ledger)
    write(ledger)
    assert (planned(ledger), written(ledger)) == (again, 4)


def test_plans_are_made_again_after_a_while(ledger, monkeypatch):
    for _ in range(3):
        write(ledger)
    names = "SELECT name FROM pg_prepared_statements WHERE name LIKE 'notyet%'"
    old = set(ledger.connection._db.execute(names).fetchall())
    monkeypatch.setattr(ledger.connection._plans, "_replanned_at", 0.0)
    write(ledger)
    new = set(ledger.connection._db.execute(names).fetchall())
    assert old
    assert new
    assert not old & new


def test_a_plan_that_is_gone_costs_one_more_try(ledger):
    """As behind a pool that hides itself: another connection has it."""
    for _ in range(3):
        write(ledger)
    ledger.connection._db.execute("DEALLOCATE ALL")
    for _ in range(3):
        write(ledger)
    with pytest.raises(Refused):
        ledger.connection.write(given_up)
    write(ledger)
    assert (planned(ledger), written(ledger)) == (0, 7)


@pytest.mark.parametrize("is_sent", [True, False])
def test_a_plan_of_a_transaction_that_failed_is_not_counted_on(ledger, is_sent):
    def work(db):
        db.execute(ACT, (1.0, "x"))
        if is_sent:
            db.execute("SELECT 1 / (SELECT 0)").fetchone()
        raise Refused("no")

    write(ledger)
    with pytest.raises(Exception, match="division by zero" if is_sent else "no"):
        ledger.connection.write(work)
    write(ledger)
    assert written(ledger) == 2


def test_a_plan_survives_a_new_column(ledger, url):
    for _ in range(3):
        write(ledger)
    with psycopg.connect(url.partition("&schema")[0]) as db:
        db.execute(f"ALTER TABLE {ledger.connection.schema}.acts ADD COLUMN more TEXT")
    write(ledger)
    assert written(ledger) == 4


def test_a_default_isolation_level_does_not_matter(ledger, cluster, url):
    strict = f"{url}&options=-c%20default_transaction_isolation%3Dserializable"
    with closing(Ledger(strict)) as other:
        for _ in range(3):
            write(other)
        other.connection._plans._replanned_at = 0.0
        write(other)
        assert written(other) == 4


def test_behind_a_pool_nothing_is_planned(pooled):
    with closing(Ledger(pooled)) as ledger:
        for _ in range(3):
            write(ledger)
        assert ledger.connection._plans is None
