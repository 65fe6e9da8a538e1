"""The page of a ledger on PostgreSQL: what its role may do, and what becomes of the database."""

import html
import re
from pathlib import Path

import pytest

import postgres_server
from notyet import Ledger
from notyet.cli.main import main
from notyet.core.task import Task
from notyet.ledger.leases import Leases
from notyet.ledger.tasks import Tasks
from notyet.web import site
from supervised import first_run
from support import decide, rows, stop, wait_for

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "page.md"
SCREENS = ("/", "/stops", "/stops/1", "/session?host=claude&id=s1", "/gates", "/tasks", "/tasks/t1")


@pytest.fixture(scope="module")
def team(cluster):
    """The database of a team; its tables belong to the role `notyet`."""
    sql = "CREATE ROLE notyet LOGIN; CREATE DATABASE team OWNER notyet"
    assert cluster.psql(sql.replace("; ", ";\n")) == ""
    url = cluster.url(user="notyet", database="team")
    ledger = Ledger(url)
    decide(ledger, stop(host="claude"))
    owner = Leases(ledger.connection).enrol(1000.0)
    known = Task(id="t1", prompt="do it", scope="agent")
    limits = {"max_depth": 9, "max_children": 9}
    Tasks(ledger).start(known, first_run("t1"), owner, {"agent": "tests"}, "s9", **limits)
    yield cluster
    ledger.close()


@pytest.fixture(scope="module")
def reader(team):
    """The address of the role that the documentation creates."""
    (script,) = re.findall(r"```sql\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert team.psql(script, database="team") == ""
    return team.url(user="notyet_page", database="team")


def said(answer):
    """Return the words of a screen, without its tags."""
    return html.unescape(re.sub("<[^>]+>", " ", answer.text))


@pytest.mark.parametrize("path", SCREENS)
def test_a_role_that_can_only_read_sees_every_screen(serve, reader, path):
    page = serve(path=reader)
    name, mark, query = path.partition("?")
    as_json = ("/now" if name == "/" else name) + ".json" + mark + query
    assert page.get(path).status == 200, said(page.get(path))
    assert page.get(as_json).status == 200


@pytest.mark.parametrize("action", ["say", "steer", "interrupt", "kill", "retry", "dismiss"])
def test_a_role_that_can_only_read_does_nothing(serve, reader, team, action):
    page = serve(path=reader)
    answer = page.post("/tasks/t1", {"action": action, "text": "x"})
    assert answer.status == 503
    assert "notyet_page lacks a right (permission denied for" in said(answer)
    assert "it may only read, so nothing was done; use a role that may write" in said(answer)
    owner = Ledger(team.url(user="notyet", database="team"))
    assert rows(owner, "SELECT state FROM runs") == [("running",)]
    assert rows(owner, "SELECT count(*) FROM messages") == [(0,)]
    owner.close()


def test_tables_that_a_later_notyet_adds_can_be_read(reader, team):
    later = "SET ROLE notyet; CREATE TABLE notyet.later (a INT);"
    assert team.psql(later.replace("; ", ";\n"), database="team") == ""
    assert team.psql("SET ROLE notyet_page;\nSELECT * FROM notyet.later;", database="team") == ""
    denied = "SET ROLE notyet_page;\nINSERT INTO notyet.later VALUES (1);"
    assert "permission denied" in team.psql(denied, database="team")


def test_a_role_without_rights_is_told_what_to_grant(team, capsys):
    assert team.psql("CREATE ROLE stranger LOGIN;") == ""
    address = team.url(user="stranger", database="team")
    assert main(["page", "--no-open", "--ledger", address]) == 1
    complaint = capsys.readouterr().err
    assert len(complaint.splitlines()) == 1
    assert "stranger lacks a right (permission denied for schema notyet)" in complaint
    assert "GRANT USAGE ON SCHEMA notyet TO stranger; GRANT SELECT ON ALL TABLES" in complaint


def test_a_database_without_a_ledger_is_shown_empty_and_stays_empty(serve, cluster):
    page = serve(path=cluster.url("nothing"))
    for path in ("/", "/stops", "/gates", "/tasks"):
        assert page.get(path).status == 200
    found = cluster.run(
        "psql", "-Atd", "postgres", "-c", "SELECT nspname FROM pg_namespace WHERE nspname='nothing'"
    )
    assert found.stdout == ""


@pytest.mark.parametrize(
    "case",
    [
        ("postgresql://me@/x?host=/nowhere", 1, "PostgreSQL cannot be reached"),
        ("postgresql://me:word@127.0.0.1:1/x", 1, "PostgreSQL cannot be reached"),
        ("postgresql://me:word@db:port/x", 1, "it is not an address of PostgreSQL"),
        ("postgres://me:word@[/x", 1, "it is not an address of PostgreSQL"),
        ("postgresql://db/x?schema=A;B", 1, "its schema must be a name"),
        ("mysql://me:word@db/x", 2, "--ledger takes a file or postgresql://USER@HOST/DATABASE"),
    ],
)
@pytest.mark.parametrize("way", ["option", "fleet", "ledger", "save"])
def test_an_address_that_cannot_be_used(case, way, capsys, monkeypatch, tmp_path):
    address, code, words = case
    monkeypatch.setattr(site, "_PATIENCE", 0.0)
    argv = ["page", "--no-open"]
    if way in {"option", "save"}:
        argv += ["--ledger", address]
    else:
        monkeypatch.setenv(f"NOTYET_{way.upper()}", address)
    if way == "save":
        argv += ["--save", str(tmp_path / "out.html")]
    assert main(argv) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert words in told.err
    assert "word@" not in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_of_another_version(cluster, capsys):
    ledger = Ledger(cluster.url("versions"))
    decide(ledger, stop())
    for version, words in ((99, "it has version 99"), (1, "an older notyet wrote it")):
        rows(ledger, "UPDATE ledger_version SET version = ?", version)
        assert main(["page", "--no-open", "--ledger", ledger.connection._address.shown]) == 1
        assert words in capsys.readouterr().err
    ledger.close()


def test_a_database_that_goes_away_and_comes_back(serve, monkeypatch, listen):
    if postgres_server.missing():
        pytest.skip(postgres_server.missing())
    monkeypatch.setattr(site, "_PATIENCE", 0.1)
    server = postgres_server.Cluster()
    try:
        page = serve(path=server.url())
        decide(page.ledger, stop(session_id="before"))
        stream = listen(page)
        assert [stream.event()[0], stream.event()[0]] == ["hello", "changed"]
        server.stop()
        assert stream.event() == ("changed", "")
        answer = page.get("/")
        assert answer.status == 503
        assert "PostgreSQL cannot be reached" in said(answer)
        assert "start it, or correct the address" in said(answer)
        assert page.get("/now.json").json["error"] == "The ledger cannot be used"
        open_page = page.get("/", HX_Request="true")
        assert open_page.status == 200
        assert "PostgreSQL cannot be reached" in said(open_page)
        server.start()
        wait_for(lambda: page.get("/").status == 200)
        assert "before" in page.get("/").text
        while stream.event() != ("changed", ""):
            pass
    finally:
        server.close()


def test_a_replica_is_shown_live_and_changes_nothing(serve, cluster, listen):
    ledger = Ledger(cluster.url("copied"))
    decide(ledger, stop(session_id="before"))
    Leases(ledger.connection).enrol(1000.0)
    replica = cluster.replica()
    try:
        page = serve(path=replica.url("copied"))
        stream = listen(page)
        assert [stream.event()[0], stream.event()[0]] == ["hello", "changed"]
        assert "before" in page.get("/stops").text
        decide(ledger, stop(session_id="later"))
        assert stream.event() == ("changed", "")
        wait_for(lambda: "later" in page.get("/stops").text)
    finally:
        replica.close()
        ledger.close()
