"""`notyet ship`: every finished stop is in the team's tables, once, and without words."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import psycopg
import pytest

import notyet.share.ship
from conftest import git
from hook_runs import clean_environ, ledger_path
from notyet import Block, Engine, Ledger
from notyet.cli.main import main
from notyet.core.event import Usage
from notyet.ledger.connection import SHIP_STAMP, SHIP_STATE
from notyet.share import rows as shared_rows
from support import gate, stop, wait_for


@pytest.fixture
def ship(database, monkeypatch, capsys):
    """Run `notyet ship` to the database; return its exit code and what it printed."""
    monkeypatch.setenv("NOTYET_SHARE", database.url)

    def ship(*argv):
        capsys.readouterr()
        code = main(["ship", *argv])
        said = capsys.readouterr()
        return code, said.out + said.err

    return ship


def everything(database):
    """Return all that the team's tables hold, as text."""
    found = [
        database.rows(f"TABLE team.{name}") for name in ("origin", "stop", "report", "arrival")
    ]
    return str(found)


def test_finished_stops_and_their_reports_are_copied_once(ship, database, fill):
    fill(3)
    assert ship() == (0, "6 stops copied to PostgreSQL\n")
    assert ship() == (0, "0 stops copied to PostgreSQL\n")
    assert database.outcomes() == [(n, "passed" if n % 2 == 0 else "blocked") for n in range(1, 7)]
    gates = database.rows(
        "SELECT gate, status, count(*) FROM team.report GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert gates == [("lint", "allowed", 6), ("tests", "allowed", 3), ("tests", "blocked", 3)]
    assert database.rows("SELECT count(*) FROM team.arrival") == [(0,)]
    fill(1, session_id="s2")
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    assert len(database.outcomes()) == 8
    assert database.rows("SELECT count(*) FROM team.origin") == [(1,)]


def test_no_words_leave_the_machine_by_default(ship, database, fill, git_project):
    fill(2, cwd=str(git_project), task="a private task", label="a label")
    assert ship()[0] == 0
    told = everything(database)
    for words in ("secret words", "my words", str(git_project), "private", "a label"):
        assert words not in told
    assert database.rows("SELECT DISTINCT words FROM team.stop") == [(None,)]
    assert database.rows("SELECT DISTINCT words FROM team.report") == [(None,)]


def test_with_words_they_are_copied_as_the_log_shows_them(
    ship, database, fill, git_project, monkeypatch
):
    monkeypatch.setenv("NOTYET_SHARE_WORDS", "1")
    fill(1, cwd=str(git_project), last_message="red \x1b[31m and a NUL \0")
    assert ship()[0] == 0
    [(words,)] = database.rows("SELECT words FROM team.stop WHERE id = 1")
    assert words["folder"] == str(git_project)
    assert words["said"].startswith("red ")
    assert "\x1b" not in words["said"]
    assert "the secret words" in words["prompt"]
    [(words,)] = database.rows("SELECT words FROM team.report WHERE status = 'blocked'")
    assert words["said"] == "the secret words"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@github.com:acme/shop.git", "github.com/acme/shop"),
        ("https://me:token@GitHub.com/acme/shop.git", "github.com/acme/shop"),
        ("ssh://git@github.com:22/acme/shop/", "github.com/acme/shop"),
        ("/srv/git/shop.git", ""),
        ("file:///srv/git/shop.git", ""),
        ("../shop", ""),
        ("", ""),
    ],
)
def test_a_remote_is_the_same_however_it_is_written(url, name):
    assert shared_rows.normalized(url) == name


def test_a_project_is_its_remote_and_else_its_folder(ship, database, fill, git_project, tmp_path):
    fill(1, cwd=str(git_project))
    git(git_project, "remote", "add", "origin", "git@github.com:acme/shop.git")
    fill(1, cwd=str(git_project), session_id="s2")
    other = tmp_path / "clone"
    git(git_project, "clone", "--quiet", ".", str(other))
    git(other, "remote", "set-url", "origin", "https://github.com/acme/shop")
    fill(1, cwd=str(other), session_id="s3")
    fill(1, cwd=str(tmp_path / "gone"), session_id="s4")
    assert ship()[0] == 0
    found = [project for (project,) in database.rows("SELECT project FROM team.stop ORDER BY id")]
    shop = shared_rows.digest("github.com/acme/shop")
    assert found[:6] == [shop] * 6  # by the remote that it has now
    assert found[6] == found[7] not in {shop, ""}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("tests", "tests"),
        ("claude Stop[0] /home/me/check.sh --all", "claude Stop[0]"),
        ("packages/web:tests", "tests"),
        ("lint:py", "lint:py"),
    ],
)
def test_a_gates_name_has_no_command_and_no_path(name, shown):
    assert shared_rows.gate_name(name, words=False) == shown
    assert shared_rows.gate_name(name, words=True) == name


def test_a_stop_is_copied_when_it_is_decided_and_again_when_it_is_overridden(
    ship, database, ledger, fill
):
    begun = ledger.begin(stop(session_id="slow"))
    fill(1)
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    ledger.give_up(begun)
    assert ship() == (0, "1 stop copied to PostgreSQL\n")
    engine = Engine([gate("tests", Block("no"))], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(session_id="x", turn_id="t1"))
    assert ship() == (0, "1 stop copied to PostgreSQL\n")
    assert database.outcomes()[-1] == (4, "blocked")
    ledger.give_up(ledger.begin(stop(session_id="x", turn_id="t2")))
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    assert database.outcomes()[3:] == [(4, "overridden"), (5, "skipped")]
    assert ship() == (0, "0 stops copied to PostgreSQL\n")


def test_without_its_watermark_all_is_copied_again_and_is_the_same(ship, database, ledger, fill):
    fill(3)
    ship()
    os.unlink(ledger.path + SHIP_STATE)
    assert ship() == (0, "6 stops copied to PostgreSQL\n")
    assert len(database.outcomes()) == 6
    with open(ledger.path + SHIP_STATE, "w") as file:
        file.write("{")
    assert ship() == (0, "6 stops copied to PostgreSQL\n")
    assert len(database.outcomes()) == 6


def test_all_can_be_copied_again_into_new_tables(ship, database, fill):
    fill(3)
    ship()
    assert ship("--again") == (0, "6 stops copied to PostgreSQL\n")
    assert database.rows("SELECT count(*), count(DISTINCT origin) FROM team.stop") == [(6, 1)]
    database.run("DROP SCHEMA team CASCADE")
    assert ship() == (0, "0 stops copied to PostgreSQL\n")
    assert ship("--again") == (0, "6 stops copied to PostgreSQL\n")
    assert len(database.outcomes()) == 6


def test_numbers_that_are_too_large_are_cut_and_stop_nothing(ship, database, ledger):
    usage = Usage(input=10**30, output=5)
    ledger.give_up(ledger.begin(stop(usage=usage, model="m" * 10_000)))
    assert ship() == (0, "1 stop copied to PostgreSQL\n")
    known = database.rows("SELECT tokens_in, tokens_out, length(model) FROM team.stop")
    assert known == [(2**63 - 1, 5, 200)]


def test_a_ledger_that_cannot_be_read_is_named_and_no_file_is_made(ship, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in (str(tmp_path), "postgresql://me:geheim@db/x"):
        monkeypatch.setenv("NOTYET_LEDGER", place)
        refused(ship, "ledger ")
    assert os.listdir(tmp_path) == []
    assert not os.path.exists(f"{tmp_path}{SHIP_STAMP}")


def test_it_works_where_the_folder_is_gone(ship, fill, tmp_path, monkeypatch):
    fill(1)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert ship() == (0, "2 stops copied to PostgreSQL\n")


def test_the_watermark_is_private_and_has_no_address(ship, database, ledger, fill):
    fill(1)
    ship()
    for name in (SHIP_STATE, SHIP_STAMP):
        assert os.stat(ledger.path + name).st_mode & 0o777 == 0o600
    with open(ledger.path + SHIP_STATE) as file:
        assert str(database.cluster.folder) not in file.read()


def test_a_ledger_that_was_replaced_is_another_origin(ship, database, ledger, fill):
    fill(3)
    ship()
    ledger.close()
    for end in ("", "-wal", "-shm"):
        if os.path.exists(ledger.path + end):
            os.unlink(ledger.path + end)
    with closing(Ledger()) as new:
        new.give_up(new.begin(stop()))
    assert ship() == (0, "1 stop copied to PostgreSQL\n")
    assert database.rows("SELECT count(*), count(DISTINCT origin) FROM team.stop") == [(7, 2)]


def test_on_another_machine_only_what_is_new_is_copied(ship, database, ledger, fill, monkeypatch):
    fill(3)
    ship()
    monkeypatch.setattr(notyet.share.ship, "own_machine", lambda: "another")
    fill(1, session_id="s2")
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    assert database.rows("SELECT count(*), count(DISTINCT origin) FROM team.stop") == [(8, 2)]


def test_another_database_gets_all_stops(ship, database, fill, monkeypatch):
    fill(2)
    ship()
    monkeypatch.setenv("NOTYET_SHARE", f"{database.url}&schema=other")
    assert ship() == (0, "4 stops copied to PostgreSQL\n")
    assert database.rows("SELECT count(*) FROM other.stop") == [(4,)]


def test_what_arrives_late_replaces_nothing_newer(ship, database, fill):
    fill(1)
    ship()
    database.run("UPDATE team.stop SET outcome = 'newer', shipped = 1e12")
    os.unlink(ledger_path() + SHIP_STATE)
    assert ship()[0] == 0
    assert {outcome for _, outcome in database.outcomes()} == {"newer"}


# Two at once, and what kills one.

CODE = """
import sys
import notyet.share.ship
from notyet.ledger import past_stops
notyet.share.ship._AT_ONCE, past_stops._STOPS_AT_ONCE = {sizes}
from notyet.cli.main import main
sys.exit(main(["ship", *{argv}]))
"""


def start(database_url, *argv, sizes=(3, 7)):
    """Start a shipper that copies in small parts."""
    return subprocess.Popen(
        [sys.executable, "-c", CODE.format(sizes=sizes, argv=argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environ(NOTYET_SHARE=database_url),
    )


def test_of_two_at_once_one_works_and_the_other_leaves(fill, silent):
    fill(1)
    first = start(silent.url)
    silent.accept()  # it waits for an answer
    second = start(silent.url)
    said, _ = second.communicate(timeout=60)
    assert (second.returncode, said) == (0, b"another notyet ship is at work\n")
    assert first.poll() is None
    first.kill()
    first.communicate()


def test_with_wait_it_goes_on_when_the_other_is_gone(database, fill, ledger):
    fill(1)
    with open(ledger.path + SHIP_STAMP, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = start(database.url, "--wait", "60s")
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
    said, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, said) == (0, b"2 stops copied to PostgreSQL\n")


def test_a_shipper_that_is_killed_loses_nothing_and_doubles_nothing(database, fill):
    fill(40)
    kills = seen = 0
    while True:
        started = start(database.url)
        wait_for(lambda: count(database) > seen or started.poll() is not None)  # noqa: B023
        if started.poll() is not None:
            break
        started.send_signal(signal.SIGKILL)
        started.communicate()
        kills, seen = kills + 1, count(database)
    said, _ = started.communicate()
    assert started.returncode == 0, said
    assert kills >= 3
    assert [number for number, _ in database.outcomes()] == list(range(1, 81))
    assert database.rows("SELECT count(*) FROM team.report") == [(160,)]


def count(database):
    [(there,)] = database.rows("SELECT count(*) FROM pg_tables WHERE schemaname = 'team'")
    return database.rows("SELECT count(*) FROM team.stop")[0][0] if there else 0


def test_a_server_that_crashes_loses_nothing_and_doubles_nothing(database, fill):
    fill(40)
    started = start(database.url, "--wait", "100s", sizes=(1, 5))
    crashes = seen = 0
    while crashes < 3:
        wait_for(lambda: count(database) > seen or started.poll() is not None)  # noqa: B023
        if started.poll() is not None:
            break
        database.cluster.crash()
        crashes, seen = crashes + 1, count(database)
    said, _ = started.communicate(timeout=100)
    assert started.returncode == 0, said
    assert crashes >= 1
    assert [number for number, _ in database.outcomes()] == list(range(1, 81))
    assert database.rows("SELECT count(*) FROM team.report") == [(160,)]


def test_it_waits_for_a_server_that_starts(database, fill):
    fill(1)
    database.cluster.stop()
    waiting = start(database.url, "--wait", "100s")
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(1)
    finally:
        database.cluster.start()
    said, _ = waiting.communicate(timeout=100)
    assert (waiting.returncode, said) == (0, b"2 stops copied to PostgreSQL\n")


# Faults: one sentence each, and nothing is lost.


def refused(ship, *parts, code=1):
    found, said = ship()
    assert found == code, said
    assert said.startswith("notyet ship: ")
    assert said.count("\n") == 1
    assert "geheim" not in said
    for part in parts:
        assert part in said, said


def noted_faults():
    """Return what `notyet status` reads."""
    with open(ledger_path() + SHIP_STATE) as file:
        return json.load(file)["faults"]


def test_a_server_that_is_down_is_named(ship, fill, monkeypatch):
    fill(1)
    monkeypatch.setenv("NOTYET_SHARE", "postgresql://me:geheim@127.0.0.1:1/x")
    refused(ship, "postgresql://me:***@127.0.0.1:1/x: PostgreSQL cannot be reached", "start it, or")


def test_a_wrong_address_is_named(ship, fill, monkeypatch):
    fill(1)
    monkeypatch.setenv("NOTYET_SHARE", "postgresql://me:geheim%zz@db/x")
    refused(ship, "write postgresql://USER@HOST:5432/DATABASE")


def test_a_database_that_is_read_only_is_named(ship, fill, database):
    fill(1)
    database.run(f"ALTER DATABASE {database.name} SET default_transaction_read_only = on")
    refused(ship, "the database is read-only; use the primary's address")


def test_a_server_without_room_is_named_and_all_arrives_later(ship, fill, database):
    assert main(["ship", "--create"]) == 0
    fill(1)
    full = "BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END"
    database.run(
        f"CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ {full} $$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON team.report"
        " FOR EACH ROW EXECUTE FUNCTION full_disk()"
    )
    refused(ship, "the server lacks resources (no space left); free some there")
    assert database.outcomes() == []
    [noted] = noted_faults()
    assert "the server lacks resources (no space left)" in noted
    database.run("DROP TRIGGER full_disk ON team.report")
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    assert noted_faults() == []


@pytest.fixture
def role(database):
    """A role without rights; it is gone afterwards."""
    name = f"shipper_{database.name}"
    database.run(f"CREATE ROLE {name} LOGIN PASSWORD 'geheim'")
    yield name
    database.run(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_a_role_without_rights_is_told_which(ship, fill, database, role, monkeypatch):
    fill(1)
    own = database.cluster.url(database=database.name, user=role)
    monkeypatch.setenv("NOTYET_SHARE", own)
    insert = f"GRANT USAGE ON SCHEMA team TO {role}; GRANT INSERT ON team.arrival TO {role}"
    refused(ship, f"{role} lacks a right", f"run: notyet ship --create; then {insert}")
    monkeypatch.setenv("NOTYET_SHARE", database.url)
    assert ship("--create") == (
        0,
        "the tables of the schema team were created\nwho ships needs no more than: "
        "GRANT USAGE ON SCHEMA team TO ROLE; GRANT INSERT ON team.arrival TO ROLE\n",
    )
    assert "are there" in ship("--create")[1]
    monkeypatch.setenv("NOTYET_SHARE", own)
    refused(ship, f"{role} lacks a right", f"have an administrator run: {insert}")
    database.run(insert)
    assert ship() == (0, "2 stops copied to PostgreSQL\n")
    with psycopg.connect(own, autocommit=True) as db:
        for query in (
            "SELECT * FROM team.stop",
            "DELETE FROM team.stop",
            "UPDATE team.stop SET id = 1",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(query)
    database.run("UPDATE team.version SET version = 99")
    fill(1, session_id="s2")
    refused(ship, "a newer notyet made its tables (version 99, this one writes 1); update notyet")


def test_newer_tables_are_left_alone(ship, fill, database):
    fill(1)
    ship()
    database.run("UPDATE team.version SET version = 99")
    fill(1, session_id="s2")
    refused(ship, "a newer notyet made its tables (version 99, this one writes 1); update notyet")
    assert len(database.outcomes()) == 2


def test_without_psycopg_the_extra_is_named(fill, tmp_path):
    fill(1)
    code = "import sys; sys.modules['psycopg'] = None\nfrom notyet.cli.main import main\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}sys.exit(main(['ship']))"],
        capture_output=True,
        text=True,
        env=clean_environ(NOTYET_SHARE="postgresql://me:geheim@db/x"),
    )
    assert done.returncode == 1
    assert "it needs psycopg, which is not installed" in done.stderr
    assert "pip install '.[postgres]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_wrong_wait_and_no_address_are_refused(ship, fill, monkeypatch, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["ship", "--wait", "soon"])
    assert ended.value.code == 2
    assert "invalid duration 'soon'; try 90s" in capsys.readouterr().err
    monkeypatch.delenv("NOTYET_SHARE")
    refused(ship, "nothing says where to share stops", code=2)
    monkeypatch.setenv("NOTYET_SHARE_OTEL", "http://127.0.0.1:1")
    assert main(["ship", "--create"]) == 2


def test_without_stops_nothing_is_made(ship, database):
    assert ship() == (0, "0 stops copied to PostgreSQL\n")
    assert database.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'team'") == [(0,)]


def test_a_pool_in_transaction_mode_makes_no_difference(pooled, ship, fill, monkeypatch, capsys):
    url = pooled.replace("schema=pooled", "schema=pooled_team")
    monkeypatch.setenv("NOTYET_SHARE", url)
    fill(3)
    assert ship() == (0, "6 stops copied to PostgreSQL\n")
    assert ship("--again") == (0, "6 stops copied to PostgreSQL\n")
    assert main(["log", "--stats", "--ledger"]) == 0
    assert "6 stops: 3 blocked, 3 passed" in capsys.readouterr().out
