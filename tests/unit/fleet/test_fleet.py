"""The client of a fleet: submitting, results, schedules, and what it refuses."""

import asyncio
import subprocess
import sys
import threading

import pytest

from crews import Crew
from notyet import LedgerError
from notyet.errors import LedgerNewer, Refused
from notyet.fleet import Fleet, Queue
from support import rows

NUL = "nul \0, a surrogate \ud800, escape \x1a"


def failed(call, *kinds):
    """Return the one sentence of an error, which has no password."""
    with pytest.raises(kinds or (Refused, ValueError, LedgerError)) as raised:
        call()
    said = str(raised.value)
    assert "\n" not in said
    assert "geheim" not in said + repr(raised.value)
    return said


def opened(url, **options):
    """Open a fleet, and close it."""

    async def use():
        async with Fleet(url, **options):
            pass

    asyncio.run(use())


# Submitting.


def test_several_queues_are_defined_at_once_and_can_be_changed(crew_of):
    crew = crew_of(Queue("agents", per_worker=8, limits={"opus": "5/min"}), Queue("nightly", by=""))
    assert set(crew.do(crew.fleet.queues())) == {"agents", "nightly"}
    changed = Queue("nightly", per_worker=2)
    crew.do(crew.fleet.define(changed))
    assert crew.do(crew.fleet.queues())["nightly"] == changed


def test_a_task_and_its_placement_are_one_transaction(crew, monkeypatch):
    def breaks(*_):
        raise ValueError("no placement")

    monkeypatch.setattr(crew.fleet.placing, "_enqueue", breaks)
    with pytest.raises(ValueError, match="no placement"):
        crew.submit()
    assert rows(crew.fleet.ledger, "SELECT count(*) FROM tasks") == [(0,)]


def test_a_key_is_one_task_for_threads_and_processes_at_once(url):
    code = (
        "import asyncio, sys\nfrom notyet.fleet import Fleet, Queue\n"
        "async def main():\n"
        "    async with Fleet(sys.argv[1], queues=[Queue('agents')]) as fleet:\n"
        "        sys.stdin.readline()\n"
        "        task = {'agent': 'a', 'queue': 'agents', 'key': 'k'}\n"
        "        doing = [fleet.submit('x', **task) for _ in range(8)]\n"
        "        print(*await asyncio.gather(*doing))\n"
        "asyncio.run(main())"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([sys.executable, "-c", code, url], **pipes) for _ in range(2)]
    said = [one.communicate("\n")[0].split() for one in started]
    assert [len(tasks) for tasks in said] == [8, 8]
    assert len({task for tasks in said for task in tasks}) == 1
    crew = Crew(url)
    tables = ("tasks", "runs", "notyet_dbos.workflow_status")
    assert [rows(crew.fleet.ledger, f"SELECT count(*) FROM {table}") for table in tables] == (  # noqa: S608
        [[(1,)]] * 3
    )
    crew.close()


def test_keys_that_differ_are_different_tasks(crew):
    keys = ["a", "a ", "a?", "a\ud800", "a\0", "ä" * 1000]
    assert len({crew.submit(key=key) for key in keys}) == len(keys)


def test_any_text_can_be_submitted_and_said(crew):
    task = crew.submit(NUL, args=[NUL], label=NUL, cwd="file:///" + NUL.replace("\ud800", ""))
    crew.do(crew.fleet.say(task, NUL))
    seen, order = crew.fleet.placements.order(task)
    assert seen.run.prompt == NUL.replace("\ud800", "?")
    assert order.args[0].replace("\ud800", "?") == seen.run.prompt
    crew.do(crew.fleet.kill(task))
    assert crew.result(task).unsent == (NUL.replace("\ud800", "?"),)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"prompt": ""}, "a prompt needs words"),
        ({"prompt": " \n"}, "a prompt needs words"),
        ({"queue": "nightly"}, "there is no queue 'nightly' (there are: agents); define it with"),
        ({"queue": ""}, "there is no queue ''"),
        ({"agent": ""}, "agent must be a name, such as claude or codex, not ''"),
        ({"cwd": "shop"}, "cwd 'shop' means nothing on another machine; write a git address"),
        ({"cwd": "ssh://"}, "ssh://"),
        ({"cwd": "ssh://host"}, "ssh://"),
        ({"priority": 0}, "priority must be a whole number from 1 up, not 0"),
        ({"priority": 2**31}, "priority must be a whole number from 1 up"),
        ({"priority": "high"}, "priority must be a whole number from 1 up, not 'high'"),
        ({"retries": -1}, "retries must be a whole number from 0 to 1000, not -1"),
        ({"retries": 2.5}, "retries must be a whole number from 0 to 1000, not 2.5"),
        ({"timeout": "soon"}, "invalid duration 'soon'; try 90s, 30m or 2h"),
        ({"timeout": 0}, "timeout is a number of seconds above 0"),
        ({"timeout": "0s"}, "timeout is a number of seconds above 0"),
        ({"model": "op\0us"}, "a model's name must be text without control characters"),
        ({"model": "x" * 201}, "a model's name must be text without control characters"),
    ],
)
def test_what_cannot_be_a_task_is_refused_in_one_sentence(crew, options, says):
    asked = {"prompt": "x", "agent": "claude", "queue": "agents"} | options
    assert says in failed(lambda: crew.do(crew.fleet.submit(**asked)))
    name = {"name": "nightly", "cron": "0 3 * * *"}
    assert says in failed(lambda: crew.do(crew.fleet.schedule(**name, **asked)))
    assert rows(crew.fleet.ledger, "SELECT count(*) FROM tasks") == [(0,)]


def test_what_cannot_be_said_is_refused(crew):
    task = crew.submit()
    say, steer = crew.fleet.say, crew.fleet.steer
    assert failed(lambda: crew.do(say(task, " "))) == "a prompt needs words"
    assert "there is no task t9" in failed(lambda: crew.do(say("t9", "x")))
    assert "is queued, and has no turn to abort; say it" in failed(
        lambda: crew.do(steer(task, "x"))
    )
    for act in (crew.fleet.kill, crew.fleet.interrupt, crew.fleet.result):
        assert failed(lambda act=act: crew.do(act("t9"))).startswith(
            "there is no task t9; list them"
        )


# Results.


def test_everyone_who_waits_gets_the_result(crew):
    task = crew.submit()

    async def both():
        waiting = [asyncio.ensure_future(crew.fleet.result(task)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        await crew.fleet.kill(task)
        return await asyncio.gather(*waiting, return_exceptions=True)

    cancelled, *results = crew.do(both())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert [result.ending for result in results] == ["killed", "killed"]
    assert crew.result(task).ending == "killed"


def test_whoever_waits_when_the_fleet_is_closed_is_told(url):
    crew = Crew(url)
    task = crew.submit()

    async def closing():
        waiting = asyncio.ensure_future(crew.fleet.result(task))
        await asyncio.sleep(0.05)
        await crew.fleet.close()
        await waiting

    assert failed(lambda: crew.do(closing())) == "the fleet was closed; its tasks go on"
    crew.runner.close()


def test_whoever_waits_when_the_database_is_gone_is_told(crew, monkeypatch):
    task = crew.submit()

    def gone(*_):
        raise LedgerError("x", "PostgreSQL cannot be reached")

    monkeypatch.setattr(crew.fleet._context.store, "_patience", 0.0)
    monkeypatch.setattr(crew.fleet._outbox, "results", gone)
    assert "cannot be reached" in failed(lambda: crew.result(task))
    monkeypatch.undo()
    crew.do(crew.fleet.kill(task))
    assert crew.result(task).ending == "killed"


def test_results_that_nobody_took_are_delivered_again_until_the_consumer_returns(crew):
    tasks = [crew.submit() for _ in range(3)]
    for task in tasks:
        crew.do(crew.fleet.kill(task))
    crew.result(tasks[0])
    given = []

    async def consume(announcement):
        given.append(announcement.key)
        if len(given) == 1:
            raise OSError("the consumer is down")

    with pytest.raises(OSError, match="is down"):
        crew.do(crew.fleet.deliver(consume))

    async def until_all():
        delivering = asyncio.ensure_future(crew.fleet.deliver(consume))
        while crew.fleet._outbox.untaken():
            await asyncio.sleep(0.01)
        delivering.cancel()

    crew.do(until_all())
    assert given == [f"{task}:1" for task in (tasks[1], tasks[1], tasks[2])]


# Schedules.


@pytest.mark.parametrize("cron", ["", "never", "61 * * * *", "* * *", "0 3 * * * * * *", "\0"])
def test_a_wrong_time_is_refused(crew, cron):
    make = lambda: crew.do(crew.fleet.schedule("n", cron, "x", agent="a", queue="agents"))
    assert failed(make, Refused) == f"invalid times {cron!r}; write for example 0 3 * * *"


def test_a_schedule_is_made_changed_and_deleted(crew):
    for cron in ("0 3 * * *", "0 4 * * *"):
        options = {"agent": "a", "queue": "agents", "timeout": "2h", "retries": 1}
        crew.do(crew.fleet.schedule("nightly", cron, NUL, **options))
    assert [(name, cron) for name, cron, _ in crew.fleet.placements.schedules()] == [
        ("nightly", "0 4 * * *")
    ]
    crew.do(crew.fleet.unschedule("nightly"))
    assert "there is no schedule 'nightly'" in failed(
        lambda: crew.do(crew.fleet.unschedule("nightly"))
    )


def test_a_wrong_schedule_is_refused(crew):
    schedule = lambda name="n", **options: crew.do(
        crew.fleet.schedule(name, "0 3 * * *", "x", agent="a", queue="agents", **options)
    )
    assert "name of a schedule must be text" in failed(lambda: schedule(" "))
    with pytest.raises(TypeError, match="key"):
        schedule(key="k")


# Addresses and databases.


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "no fleet is named; give postgresql://USER@HOST/NAME, or set NOTYET_FLEET to it"),
        ("ledger.db", "'ledger.db' is not the address of a fleet; give postgresql://"),
        ("mysql://me:geheim@db/x", "is not the address of a fleet; give postgresql://"),
        ("postgresql://me:geheim%zz@db/x", "it is not an address of PostgreSQL; write"),
        ("postgresql://me:geheim@/x?host=/nowhere", "PostgreSQL cannot be reached"),
        ("postgresql://me@db/x?schema=A-b", "its schema must be a name of small letters"),
        (f"postgresql://me@db/x?schema={'a' * 59}", "a fleet has at most 58 characters"),
    ],
)
def test_a_wrong_address_is_refused_in_one_sentence(url, says, monkeypatch):
    monkeypatch.delenv("NOTYET_FLEET", raising=False)
    assert says in failed(lambda: opened(url))


def test_the_address_is_found_in_the_environment(url, monkeypatch):
    monkeypatch.setenv("NOTYET_FLEET", url)
    opened("")


def test_a_role_without_rights_is_told_what_an_administrator_runs(cluster):
    cluster.psql("CREATE ROLE poor LOGIN PASSWORD 'geheim'; CREATE DATABASE poor")
    url = cluster.url(user="poor:geheim", database="poor")
    grant = "have an administrator run: CREATE SCHEMA {} AUTHORIZATION poor"
    assert grant.format("notyet") in failed(lambda: opened(url))
    cluster.psql("CREATE SCHEMA notyet AUTHORIZATION poor", "poor")
    assert grant.format("notyet_dbos") in failed(lambda: opened(url))
    cluster.psql("CREATE SCHEMA notyet_dbos AUTHORIZATION poor", "poor")
    opened(url, queues=[Queue("agents")])


def test_a_role_that_does_not_own_the_tables_is_told_to_use_another(cluster, url):
    name = url.partition("?")[0].rpartition("/")[2]
    cluster.psql("CREATE ROLE clerk LOGIN")
    rights = "GRANT USAGE ON SCHEMA notyet TO clerk; GRANT SELECT ON ALL TABLES IN SCHEMA notyet"
    cluster.psql(f"{rights} TO clerk", name)
    said = failed(lambda: opened(cluster.url(user="clerk", database=name)))
    assert "clerk lacks a right" in said
    assert "use the role that owns the tables, or have an administrator" in said


def test_a_read_only_database_is_said(cluster, crew):
    cluster.psql("CREATE ROLE onlooker LOGIN SUPERUSER")
    cluster.psql("ALTER ROLE onlooker SET default_transaction_read_only = on")
    url = crew.url.replace("tester@", "onlooker@")
    assert "the database is read-only; use the primary's address" in failed(
        lambda: opened(url, queues=[Queue("agents")])
    )

    async def submit():
        async with Fleet(url) as fleet:
            await fleet.submit("x", agent="a", queue="agents")

    assert "the database is read-only" in failed(lambda: asyncio.run(submit()))


def test_a_database_of_a_newer_notyet_is_left_alone(crew):
    crew.fleet.ledger.connection.execute("UPDATE ledger_version SET version = 999", ())
    said = failed(lambda: opened(crew.url), LedgerNewer)
    assert "upgrade" in said
    assert "upgrade" in failed(crew.submit, LedgerNewer)


def test_a_full_database_is_said(crew, monkeypatch):
    """The table refuses rows as a full disk does."""
    crew.fleet.ledger.connection.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$",
        (),
    )
    crew.fleet.ledger.connection.execute(
        "CREATE TRIGGER full_disk BEFORE INSERT ON tasks FOR EACH ROW EXECUTE FUNCTION full_disk()",
        (),
    )
    assert "the server lacks resources (could not extend file); free some there" in failed(
        crew.submit
    )


def test_behind_a_pool_of_transactions_the_setting_is_named(pooled):
    assert "set pool_mode = session, or go past it" in failed(lambda: opened(pooled))


def test_a_database_that_comes_back_is_used_again(cluster, crew):
    task = crew.submit()
    cluster.stop()
    restarting = threading.Timer(1.0, cluster.start)
    restarting.start()
    try:
        assert crew.do(crew.fleet.kill(task))
    finally:
        restarting.join()
    cluster.crash()
    other = crew.submit(key="k")
    cluster.crash()
    assert crew.submit(key="k") == other
    assert crew.result(task).ending == "killed"


def test_a_fleet_that_is_opened_by_many_at_once_is_created_once(cluster):
    cluster.psql("CREATE DATABASE crowd")
    url, faults = cluster.url(database="crowd"), []

    def use():
        try:
            opened(url, queues=[Queue("agents", limits={"a": "1/s"})])
        except Exception as error:  # noqa: BLE001  # shown below
            faults.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_without_dbos_the_extra_is_named():
    code = (
        "import sys; sys.modules['dbos'] = None\n"
        "try: from notyet.fleet import Fleet\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == (
        "Refused a fleet needs dbos, which is not installed;"
        " in a checkout, run: pip install '.[fleet]'\n"
    )
