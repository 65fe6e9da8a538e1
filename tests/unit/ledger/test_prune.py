"""What is old or too much is deleted, and nothing else, whoever prunes and whatever goes wrong."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hook_runs import gate, new_project, payload, query, run_hook
from notyet import Allow, Decision, Engine, Ledger, Report
from notyet.cli.main import main
from notyet.config.load import retention
from notyet.core.event import StartEvent
from notyet.errors import LedgerError, Refused
from notyet.ledger.logs import keep
from notyet.ledger.prune import Retention, prune, shrink, tidy, used
from notyet.supervise import Supervisor, SupervisorSettings
from stores import locked, opened, sound
from support import decide, rows, stop, wait_for

DAY = 86_400.0


def fill(ledger, count, days=0.0):
    """Enter many stops of many agents at once, as `begin` and `record` would."""
    decide(ledger, stop(session_id="first"), "passed")

    def enter(db):
        db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event,"
            " outcome, verdict) SELECT 1, 1, ?, 1.0, 1, ?, ?, ?, 'passed', 'allow' FROM n",
            (count, time.time() - days * DAY, b"", b"", f'{{"last_message": "{"0" * 400}"}}'),
        )
        db.execute(
            "INSERT INTO reports (stop, position, gate, status, said, reason, extend,"
            " seconds, output, matched, observed, warning) SELECT id, 0, 'tests', 'allowed', '',"
            " '', 0, 1.0, ?, '', 0, '' FROM stops WHERE id > 1 ON CONFLICT DO NOTHING",
            ("0" * 200,),
        )

    ledger.connection.write(enter)


def sizes(ledger):
    return ledger.connection.read(used), rows(ledger, "SELECT count(*) FROM stops")[0][0]


def test_pruning_removes_old_stops_with_their_reports_and_agents(ledger):
    old = ledger.begin(stop(session_id="old"))
    report = Report(gate="g", answer=Allow())
    done = Decision(verdict=Allow(), outcome="passed", turn=1, reports=(report,))
    ledger.record(old, done)
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = begun_at - ?", (10 * DAY,))
        db.execute("UPDATE agents SET seen_at = seen_at - ?", (10 * DAY,))
    new = ledger.begin(stop(session_id="new"))
    ledger.record(new, done)
    assert ledger.prune(older_than=7 * DAY) == 1
    assert rows(ledger, "SELECT id FROM stops") == [(new.stop,)]
    assert rows(ledger, "SELECT stop FROM reports") == [(new.stop,)]
    assert rows(ledger, "SELECT session_id FROM agents") == [("new",)]


def test_pruning_never_touches_what_is_active(ledger):
    asking = ledger.begin(stop(session_id="asking"))
    working = decide(ledger, stop(session_id="sent back"), at=time.time() - 3 * DAY)
    idle = decide(ledger, stop(session_id="idle"), "passed", at=time.time() - 3 * DAY)
    newest = decide(ledger, stop(session_id="newest"), "passed")
    assert ledger.prune(older_than=0) == 1
    left = {stop for (stop,) in rows(ledger, "SELECT id FROM stops")}
    assert left == {asking.stop, working, newest}
    assert idle not in left
    assert ledger.begin(stop(session_id="sent back")).history.blocks == 1


def test_pruning_clears_what_was_lost_and_what_was_forgotten(ledger):
    decide(ledger, stop(session_id="sent back and forgotten"), at=time.time() - 40 * DAY)
    ledger.begin(stop(session_id="lost"))
    with opened(ledger) as db:
        db.execute("UPDATE stops SET begun_at = begun_at - ? WHERE outcome = 'asking'", (2 * DAY,))
        db.execute("UPDATE agents SET seen_at = seen_at - ?", (2 * DAY,))
    decide(ledger, stop(session_id="newest"), "passed")
    assert ledger.prune(older_than=DAY) == 2
    assert rows(ledger, "SELECT session_id FROM agents") == [("newest",)]


def test_pruning_keeps_what_counts_against_the_ceiling(ledger):
    decide(ledger, stop())
    decide(ledger, stop(), "capped", at=time.time() - 3 * DAY)
    ledger.prune(older_than=0)
    assert ledger.begin(stop()).history.session_blocks == 1


@pytest.mark.file_only("its size")
def test_thousands_of_stops_are_cut_to_the_size_that_is_kept(ledger):
    fill(ledger, 5_000)
    before, _ = sizes(ledger)
    assert before > 3_000_000
    removed = prune(ledger, Retention(max_size=1_000_000))
    after, stops = sizes(ledger)
    assert after <= 1_000_000
    assert 100 < stops == 5_001 - removed.stops
    # The newest are left, with their reports and nobody else's.
    assert rows(ledger, "SELECT max(id) FROM stops") == [(5_001,)]
    assert rows(
        ledger, "SELECT count(*) FROM reports WHERE stop NOT IN (SELECT id FROM stops)"
    ) == [(0,)]
    size = os.path.getsize(ledger.path)
    assert shrink(ledger) > 1_000_000
    assert os.path.getsize(ledger.path) < size
    sound(ledger)


@pytest.mark.file_only("its size")
def test_the_newest_hundred_stay_however_little_is_kept(ledger):
    fill(ledger, 500)
    prune(ledger, Retention(max_size=1))
    assert rows(ledger, "SELECT count(*), min(id) FROM stops") == [(100, 402)]


def test_what_is_old_goes_with_its_passes_and_starts_and_what_is_at_work_stays(ledger):
    fill(ledger, 1_200, days=100)
    working = decide(ledger, stop(session_id="sent back"))
    fill(ledger, 99)
    asking = ledger.begin(stop(session_id="asking"))
    sealed = Report(gate="g", answer=Allow(), definition="d", passed_on="tree")
    ledger.remember([sealed])
    ledger.remember_start(StartEvent(session_id="s"), {"scope": "tree"})
    ledger.connection.write(lambda db: db.execute("UPDATE passes SET at = 1"))
    ledger.connection.write(lambda db: db.execute("UPDATE starts SET at = 1"))
    assert prune(ledger, Retention()).stops == 1_200
    left = {number for (number,) in rows(ledger, "SELECT id FROM stops")}
    assert left == {1, working, *range(working + 1, asking.stop + 1)}
    assert rows(ledger, "SELECT count(*) FROM passes") == [(0,)]
    assert rows(ledger, "SELECT count(*) FROM starts") == [(0,)]


AGENTS = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
    " INSERT INTO agents (last_stop, host, session_id, agent_id, seen_at, turn, turn_ids, blocks,"
    " session_blocks, extend, blocked, repeats, repeat_key)"
    " SELECT 0, 'claude', ? || i, '', ?, 1, ?, 0, ?, 0, 0, 0, '' FROM n"
)


def enter_agents(ledger, count, name, days, sent_back=0):
    """Enter agents that have no stop any more."""
    given = (count, name, time.time() - days * DAY, "0" * 400, sent_back)
    ledger.connection.write(lambda db: db.execute(AGENTS, given))


def count_agents(ledger):
    return rows(ledger, "SELECT count(*) FROM agents")[0][0]


@pytest.mark.file_only("the command line has one")
def test_all_old_agents_without_stops_go_and_are_counted(capsys):
    ledger = Ledger()
    decide(ledger, stop())
    enter_agents(ledger, 1_700, "old", 100)
    enter_agents(ledger, 3, "new", 1)
    assert main(["log", "--prune"]) == 0
    assert capsys.readouterr().out.startswith("removed 1700 agents; ")
    assert count_agents(ledger) == 4
    assert main(["log", "--prune"]) == 0
    assert capsys.readouterr().out.startswith("nothing to remove; ")


@pytest.mark.file_only("its logs")
def test_logs_go_by_age_and_by_size_the_oldest_first_and_nothing_else(tmp_path):
    ledger = str(tmp_path / "ledger.db")
    now = time.time()
    paths = []
    for number in range(1, 11):
        paths.append(Path(keep(ledger, number, "g", "x" * 999)))
        os.utime(paths[-1], (now - 100 + number, now - 100 + number))
    os.utime(paths[0], (now - 91 * DAY, now - 91 * DAY))
    mine = tmp_path / "logs" / "mine.txt"
    mine.write_text("x" * 100_000)
    asked = Ledger(ledger)
    asked.connection.read(used)
    tidy(asked, Retention())
    assert [path.exists() for path in paths] == [False] + [True] * 9
    tidy(asked, Retention(logs=4_000))
    assert [path.exists() for path in paths] == [False] * 6 + [True] * 4
    assert mine.exists()
    assert prune(asked, Retention(logs=0)).logs == 3
    assert [path.exists() for path in paths] == [False] * 9 + [True]  # of the newest stop


def test_pruning_is_a_little_at_a_time_and_does_not_wait(ledger):
    fill(ledger, 1_000, days=100)
    tidy(ledger, Retention())
    assert rows(ledger, "SELECT count(*) FROM stops") == [(801,)]
    with locked(ledger):
        tidy(ledger, Retention())  # which raises nothing
    assert rows(ledger, "SELECT count(*) FROM stops") == [(801,)]


_PRUNE = """
import sys
from notyet import Ledger
from notyet.ledger.prune import prune
from notyet.ledger.prune import Retention
print("go", flush=True)
prune(Ledger(sys.argv[1], patience=30), Retention(max_size=1))
"""


def whole(ledger):
    """Check that no stop is without its report, and no report without its stop."""
    sound(ledger)
    lone = "SELECT count(*) FROM stops WHERE id > 1 AND id NOT IN (SELECT stop FROM reports)"
    assert rows(ledger, lone) == [(0,)]
    lone = "SELECT count(*) FROM reports WHERE stop NOT IN (SELECT id FROM stops)"
    assert rows(ledger, lone) == [(0,)]


@pytest.mark.file_only("its size")
def test_a_kill_in_the_midst_of_pruning_loses_nothing_else(ledger):
    fill(ledger, 8_000)
    working = decide(ledger, stop(session_id="sent back"))
    ledger.connection.write(
        lambda db: db.execute(
            "INSERT INTO reports SELECT ?, 0, gate, status, said, reason, extend, seconds, output,"
            " matched, observed, warning, exit, log, tell_user, hidden, held, workspace,"
            " definition, asked_when, tokens FROM reports WHERE stop = 2",
            (working,),
        )
    )
    for _ in range(2):
        child = subprocess.Popen(
            [sys.executable, "-c", _PRUNE, ledger.path], stdout=subprocess.PIPE, text=True
        )
        child.stdout.readline()
        count = sizes(ledger)[1]
        wait_for(lambda at=count, c=child: c.poll() is not None or sizes(ledger)[1] < at)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        whole(ledger)
    assert rows(ledger, "SELECT outcome FROM stops WHERE id = ?", working) == [("blocked",)]
    prune(ledger, Retention(max_size=1))
    whole(ledger)
    assert sizes(ledger)[1] <= 102


@pytest.mark.file_only("its size")
def test_a_full_disk_is_said_by_hand_and_kept_quiet_by_the_hook(ledger):
    fill(ledger, 3_000, days=100)
    ledger.close()
    child = os.fork()
    if not child:  # a file that may not grow is as good as a full disk
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            tidy(ledger, Retention())
            prune(ledger, Retention())
        except LedgerError as error:
            os._exit(7 if "set NOTYET_LEDGER to" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert sizes(ledger)[1] == 3_001
    whole(ledger)


def test_a_supervisor_tidies_up_for_whom_it_works(ledger, monkeypatch):
    monkeypatch.setattr("notyet.supervise.requests._TIDIED_FIRST", 0.0)
    fill(ledger, 250, days=100)
    ledger.retention = Retention()

    async def live():
        engine = Engine(ledger=ledger)
        async with Supervisor(engine, ledger, settings=SupervisorSettings(poll=0.01)):
            while sizes(ledger)[1] > 101:  # another thread does it
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(live(), 30))


def fill_tasks(ledger, statuses, ref="{}"):
    """Enter tasks that ended 200 days ago, whose results have these statuses."""
    at = time.time() - 200 * DAY

    def enter(db):
        db.executemany(
            "INSERT INTO tasks (id, parent, about, owner, run, generation, ref, session_id,"
            " created_at, ended_at) VALUES (?, '', '{}', 1, 'r', 1, ?, 's', ?, ?)",
            [(f"t{n:06}", ref, at + n, at + n) for n in range(len(statuses))],
        )
        db.executemany(
            "INSERT INTO outbox (key, task, parent, result, status, owner, next_at, created_at)"
            " VALUES (?, ?, '', '{}', ?, 1, 0, 0)",
            [(f"k{n:06}", f"t{n:06}", status) for n, status in enumerate(statuses)],
        )

    ledger.connection.write(enter)


def test_all_tasks_go_that_can_go_among_many_that_must_stay(ledger):
    fill_tasks(ledger, [*["suspended"] * 95, "delivered", *["suspended"] * 9, *["delivered"] * 700])
    assert prune(ledger, Retention()).tasks == 701
    assert rows(ledger, "SELECT status, count(*) FROM outbox GROUP BY status") == [
        ("suspended", 104)
    ]


def test_owners_that_are_gone_are_forgotten_where_no_task_is_old(ledger):
    ledger.connection.write(
        lambda db: db.execute(
            "INSERT INTO owners (pid, pid_start, boot, machine, program, lease_until)"
            " VALUES (1, '', '', '', '', 5)"
        )
    )
    tidy(ledger, Retention())
    assert rows(ledger, "SELECT count(*) FROM owners") == [(0,)]


def own_file(text):
    folder = Path(os.environ["HOME"]) / ".config" / "notyet"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notyet.toml").write_text(text)


def test_what_is_kept_is_said_by_the_users_own_file():
    assert retention(os.environ) == Retention()
    own_file('[ledger]\nkeep = "2w"\nmax_size = "1GB"\nlogs = 5000\n')
    wanted = Retention(keep=14 * DAY, max_size=10**9, logs=5_000)
    assert retention(os.environ) == wanted
    assert retention(os.environ) == wanted  # as compiled


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('keep = "1y"', '`ledger.keep` must be a time like "90d", not "1y"'),
        ("keep = 90", '`ledger.keep` must be a time like "90d", not 90'),
        ('keep = "0d"', '`ledger.keep` must be a time like "90d", not "0d"'),
        ('max_size = "lots"', '`ledger.max_size` must be a size like "256MB", not "lots"'),
        ("max_size = 5", "`ledger.max_size` must be 1000000 to"),
        ("logs = true", "`ledger.logs` must be a size like"),
        ("logs = -1", "`ledger.logs` must be 0 to"),
        ('kept = "9d"', "kept"),
    ],
)
def test_a_mistyped_limit_removes_nothing_and_is_said(ledger, line, says):
    own_file(f"[ledger]\n{line}\n")
    with pytest.raises(Refused, match="nothing is removed until this is fixed") as found:
        retention(os.environ)
    assert says in str(found.value)
    assert "notyet.toml:2:" in str(found.value)


@pytest.mark.file_only("the hook has one")
def test_every_fiftieth_hook_tidies_up_after_its_answer(tmp_path):
    folder = new_project(tmp_path / "p", gate("true"))
    fill(Ledger(), 147, days=100)  # and the first
    assert run_hook(payload("claude", folder, session_id="the last but one")).returncode == 0
    assert query("SELECT count(*) FROM stops") == [(149,)]
    assert run_hook(payload("claude", folder, session_id="the last")).returncode == 0
    assert query("SELECT id FROM stops WHERE id < 52") == [(1,), (51,)]


@pytest.mark.file_only("the hook has one")
def test_a_hook_keeps_its_hands_off_while_the_users_file_is_wrong(tmp_path):
    own_file("[ledger]\nkeep = 5\n")
    folder = new_project(tmp_path / "p", gate("true"))
    fill(Ledger(), 148, days=100)
    assert run_hook(payload("claude", folder)).returncode == 0
    assert query("SELECT count(*) FROM stops") == [(150,)]
