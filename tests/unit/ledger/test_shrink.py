"""A ledger gives the space that pruning frees back to the file system."""

import os

from notyet import Ledger
from notyet.cli.main import main
from notyet.ledger.prune import Retention, prune, shrink
from support import decide, rows, stop

OLD = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
    " INSERT INTO stops (agent, turn, begun_at, ended_at, pid, token, digest, event, outcome,"
    " verdict) SELECT 1, 1, 5.0, 6.0, 1, x'00', x'00',"
    " '{\"last_message\": \"' || hex(zeroblob(500)) || '\"}', 'passed', 'allow' FROM n"
)


def test_pruning_by_hand_makes_the_file_smaller(tmp_path, monkeypatch, capsys):
    ledger = Ledger(tmp_path / "ledger.db")
    monkeypatch.setenv("NOTYET_LEDGER", ledger.path)
    ledger.connection.write(lambda db: db.execute(OLD))
    decide(ledger, stop(session_id="kept"))
    ledger.connection.checkpoint()
    size = os.path.getsize(ledger.path)
    assert size > 4_000_000
    assert main(["log", "--prune"]) == 0
    assert "removed 4901 stops; " in capsys.readouterr().out
    assert os.path.getsize(ledger.path) < size / 10
    assert rows(ledger, "PRAGMA integrity_check") == [("ok",)]
    # An open connection goes on, with the same counts.
    begun = ledger.begin(stop(session_id="kept", stop_hook_active=True))
    assert (begun.stop, begun.history.blocks, begun.warnings) == (5_002, 1, ())


def test_without_free_pages_the_file_stays_as_it_is(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    decide(ledger, stop())
    prune(ledger, Retention())
    assert shrink(ledger) == 0
