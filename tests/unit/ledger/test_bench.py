"""The benchmarks of the ledger run, and measure one as it is now."""

from pathlib import Path

import pytest

from support import rows

pytestmark = pytest.mark.file_only("how fast one is")
ROOT = Path(__file__).parent.parent.parent.parent


@pytest.fixture(autouse=True)
def bench(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)  # which it leaves, and is put back


def test_the_benchmarks_ledger_can_be_filled_and_stopped_in(tmp_path):
    from bench.ledger import one_stop
    from bench.log import filled

    ledger = filled(str(tmp_path / "ledger.db"), str(tmp_path), 40)
    assert rows(ledger, "SELECT count(*) FROM stops") == [(40,)]
    assert rows(ledger, "SELECT count(*) FROM reports") == [(100,)]
    one_stop(ledger, "s1", [0])
    assert rows(ledger, "SELECT count(*) FROM stops") == [(41,)]


@pytest.mark.parametrize("way", ["saturated", "paced"])
def test_a_crowd_that_writes_at_once_loses_nothing(way):
    from bench import crowd

    many = getattr(crowd, way)(0.2, writers=3)
    assert (many.lost, many.fewest >= 2) == (0, True)
    assert many.taken == sorted(many.taken)
