from notyet import Allow, Decision
from notyet.ledger import memory
from notyet.ledger.memory import MemoryLedger
from support import stop


def test_memory_does_not_grow_with_every_session_it_ever_saw(monkeypatch):
    monkeypatch.setattr(memory, "_MOST_AGENTS", 10)
    ledger = MemoryLedger()
    for n in range(50):
        begun = ledger.begin(stop(session_id=f"s{n}"))
        ledger.record(begun.stop, Decision(verdict=Allow(), outcome="passed", turn=1))
    sizes = {len(ledger._histories), len(ledger._last), len(ledger._answers)}
    assert sizes == {10}
    assert not ledger._asking


def test_a_decision_is_counted_once_however_often_it_is_recorded():
    ledger = MemoryLedger()
    begun = ledger.begin(stop())
    decision = Decision(verdict=Allow(), outcome="blocked", turn=1)
    ledger.record(begun.stop, decision)
    ledger.record(begun.stop, decision)
    assert ledger.begin(stop()).history.blocks == 1
