"""One odd row hides no other: another version wrote it, or somebody wrote into the file."""

import json
import sqlite3
from contextlib import closing

import pytest

from notyet import Allow, Block, Engine, Ledger
from notyet.cli.main import main
from notyet.ledger.history import StopFilter, agents, stop, stops
from support import gate
from support import stop as an_event

ODD = {
    "word": "newword",
    "nothing": "",
    "infinite": float("inf"),
    "huge": 1e308,
    "negative": -(1 << 62),
    "bytes": b"\xff\x00odd",
    "deep": "[" * 100_000,
    "list": "[1, null]",
}
NEVER_ODD = {"id", "stop", "position", "agent", "rowid"}  # by which rows belong together


def columns(path, table):
    with closing(sqlite3.connect(path)) as db:
        return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


@pytest.fixture
def ledger():
    ledger = Ledger()
    for session, answer in (("odd", Block("Mend it.")), ("odd", Allow()), ("sound", Allow())):
        engine = Engine([gate("lint", answer)], ledger=ledger, warn=lambda _: None)
        engine.check_sync(an_event(session_id=session, cwd="/p", last_message=repr(answer)))
    yield ledger
    ledger.close()


def spoil(ledger, table, column, value):
    where = "stop = 1" if table == "reports" else "id = 1"
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        statement = f"UPDATE {table} SET {column} = ? WHERE {where}"  # noqa: S608  # our own names
        return db.execute(statement, (value,)).rowcount


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("table", ["stops", "reports", "agents"])
def test_whatever_a_column_holds_all_stops_are_shown(ledger, capsys, table, kind):
    for column in columns(ledger.path, table):
        if column in NEVER_ODD:
            continue
        with closing(sqlite3.connect(ledger.path)) as db:
            of = "stop" if table == "reports" else "id"
            statement = f"SELECT {column} FROM {table} WHERE {of} = 1"  # noqa: S608  # as above
            (before,) = db.execute(statement).fetchone()
        assert spoil(ledger, table, column, ODD[kind]) == 1
        for argv in ([], ["1"], ["--json"], ["1", "--json"], ["--stats"], ["--stats", "--json"]):
            capsys.readouterr()
            assert main(["log", "--all", *argv]) == 0, (column, argv, capsys.readouterr().err)
            said = capsys.readouterr()
            assert said.err == "", (column, argv)
            if argv in ([], ["--json"]):
                assert len(said.out.splitlines()) == 3 + (not argv), (column, argv)
            if "--json" in argv:
                assert all(json.loads(line) for line in said.out.splitlines())
        assert len(agents(ledger, -1e300)) >= 1
        assert spoil(ledger, table, column, before) == 1


def test_what_is_odd_is_named_and_the_rest_is_there(ledger, capsys):
    spoil(ledger, "stops", "warnings", "x")
    spoil(ledger, "reports", "status", "newword")
    spoil(ledger, "reports", "seconds", "abc")
    one = stop(ledger, 1)
    assert one.odd == ("warnings", "lint.seconds", "lint.status")
    assert (one.session_id, one.outcome, one.warnings) == ("odd", "blocked", ())
    (report,) = one.reports
    assert (report.gate, report.status, report.seconds) == ("lint", "problem", 0.0)
    assert str(report.answer) == (
        "unreadable: the ledger says 'newword', which this notyet does not know"
    )
    main(["log", "--all"])
    line = capsys.readouterr().out.splitlines()[1]
    assert "odd: warnings, lint.seconds, lint.status; lint ! unreadable 0.0s; " in line
    main(["log", "1"])
    assert "odd       warnings, lint.seconds, lint.status" in capsys.readouterr().out
    assert stops(ledger, StopFilter())[0].odd == ()


def test_a_block_without_words_is_still_a_block(ledger):
    spoil(ledger, "reports", "said", " ")
    spoil(ledger, "reports", "extend", -5)
    (report,) = stop(ledger, 1).reports
    assert (report.status, report.answer) == ("blocked", Block("(no words)", report.answer.reason))
    assert stop(ledger, 1).odd == ("lint.extend", "lint.said")


def test_text_that_is_no_utf8_hides_nothing(ledger, capsys):
    for table, column in (("stops", "why"), ("reports", "gate"), ("agents", "session_id")):
        where = "stop" if table == "reports" else "id"
        with closing(sqlite3.connect(ledger.path)) as db, db:
            change = f"SET {column} = CAST(x'ff41' AS TEXT) WHERE {where} = 1"
            db.execute(f"UPDATE {table} {change}")
    for argv in ([], ["1"], ["--json"], ["--stats"]):
        assert main(["log", "--all", *argv]) == 0
    assert capsys.readouterr().err == ""
    assert [agent.session_id for agent in agents(ledger, 0.0)] == ["sound", "\ufffdA"]


def test_a_stop_whose_asker_cannot_be_known_is_still_being_asked(ledger, capsys):
    begun = ledger.begin(an_event(session_id="asking", cwd="/p"))
    with closing(sqlite3.connect(ledger.path)) as db, db:
        db.execute("UPDATE stops SET pid = 'abc' WHERE id = ?", (begun.stop,))
    assert stops(ledger, StopFilter(outcomes=("asking",)))[0].id == begun.stop
    assert main(["log", "--all", "--stats"]) == 0
    assert "1 asking" in capsys.readouterr().out
