"""The benchmark of the ledger fills one as it is now."""

from pathlib import Path

from support import rows

ROOT = Path(__file__).parent.parent.parent.parent


def test_the_benchmarks_ledger_can_be_filled(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.ledger import filled, one_stop

    ledger = filled(str(tmp_path), 10)
    assert rows(ledger, "SELECT count(*) FROM stops") == [(10,)]
    assert rows(ledger, "SELECT count(*) FROM reports") == [(10,)]
    one_stop(ledger, "s1", [0])
    assert rows(ledger, "SELECT count(*) FROM stops") == [(11,)]


def test_the_benchmark_of_looking_back_asks_what_people_ask(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("NOTYET_LEDGER", "")  # which it sets, and is put back
    from bench.log import figures

    measured = figures(2_000)
    assert {"log", "log ID", "log --stats", "log --session S"} <= set(measured)
    assert all(few > 0 and many > 0 for few, many in measured.values())
