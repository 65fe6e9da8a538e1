"""Small builders for the contract that every ledger keeps, and jobs that run at once."""

import os
import threading
import time

from notyet import Allow, Block, Decision, LedgerError, Report, StartEvent, StopEvent
from notyet.core.plan import Wanted

ODD_TEXTS = ("lone \ud800", "x" * 100_000, "nul \x00", "'; DROP TABLE stops", "ünï ✓\n")


def stop(message="", **fields):
    return StopEvent(**({"session_id": "s1", "last_message": message} | fields))


def decision(begun, outcome="blocked", **fields):
    verdict = Block("go on", "why") if outcome == "blocked" else Allow()
    known = {"verdict": verdict, "outcome": outcome, "turn": begun.history.turn}
    return Decision(**(known | {"limit": 999, "count": 1, "why": "tests"} | fields))


def decide(ledger, event, outcome="blocked", **fields):
    begun = ledger.begin(event)
    assert begun.repeats == 0
    ledger.record(begun, decision(begun, outcome, **fields))
    return begun


def look(ledger, **fields):
    """Read a history through a stop that repeats no other, and leave nothing asked."""
    begun = ledger.begin(stop(f"look {os.urandom(8).hex()}", **fields))
    ledger.give_up(begun)
    return begun.history


def refuses(call, *args):
    try:
        returned = call(*args)
    except LedgerError:
        return
    raise AssertionError(f"{call} returned {returned!r}, and did not raise LedgerError")


def wanted(tree="t1", definition="d", **fields):
    known = {"gate": "g", "definition": definition, "scope": "s", "tree": tree}
    return Wanted(**(known | fields))


def passed(tree="t1", definition="d", **fields):
    return Report(gate="g", answer=Allow(), definition=definition, passed_on=tree, **fields)


def start(**fields):
    return StartEvent(**({"session_id": "s1"} | fields))


def spared(ledger, *each, **fields):
    return dict(ledger.recall(stop(**fields), each or (wanted(),)))


def at_once(jobs):
    """Start all jobs together in threads; return their results in order, or raise an error."""
    together = threading.Barrier(len(jobs))
    results, raised = {}, []

    def work(number, job):
        together.wait()
        try:
            results[number] = job()
        except BaseException as error:  # noqa: BLE001  # raised again below
            raised.append(error)

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
    return [results[number] for number in range(len(jobs))]


def later(call, *args):
    """Return a job that gives the others a moment to begin waiting."""

    def job():
        time.sleep(0.05)
        return call(*args)

    return job
