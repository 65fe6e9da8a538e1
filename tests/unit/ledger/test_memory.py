import os
import threading

from notyet import Allow, Decision
from notyet.ledger import memory
from notyet.ledger.memory import MemoryLedger
from support import stop


def test_memory_does_not_grow_with_every_session_it_ever_saw(monkeypatch):
    monkeypatch.setattr(memory, "_MOST_AGENTS", 10)
    monkeypatch.setattr(memory, "_MOST_ANSWERS", 100)
    ledger = MemoryLedger()
    for n in range(200):
        begun = ledger.begin(stop(session_id=f"s{n}", raw={"big": "x"}, result="big"))
        ledger.record(begun, Decision(verdict=Allow(), outcome="passed", turn=1))
    assert len(ledger._histories) == 10
    assert len(ledger._decided) == memory._MOST_ANSWERS
    assert not ledger._asking
    assert {kept.event.raw for kept in ledger._decided.values()} == {None}
    assert {len(kept.event.result) for kept in ledger._decided.values()} == {8}


def test_a_lock_that_another_thread_held_at_a_fork_does_not_bind_the_child():
    ledger = MemoryLedger()
    ledger.begin(stop())  # which the parent is asking, not the child
    holding, release = threading.Event(), threading.Event()

    def hold():
        with ledger._changed:
            holding.set()
            release.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    holding.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(1 if ledger.begin(stop()).repeats else 0)
    release.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
