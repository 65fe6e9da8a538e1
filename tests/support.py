"""Small builders that many tests share."""

import asyncio
import os
import time

import pytest

from notyet import Allow, Block, Decision, Function, Gate, Ledger, Match, StopEvent
from stores import opened

EVERY_SCOPE = ("agent", "subagent")


def gate(name="g", answer=None, *, speaks="notyet", scopes=("agent",), **fields):
    """Make a gate that always gives this answer, or calls it if it is a function."""
    call = answer if callable(answer) else lambda *_: answer
    fields.setdefault("match", Match(events=scopes))
    return Gate(name=name, check=Function(call, speaks), **fields)


def stop(**fields):
    """Make a main agent's stop."""
    return StopEvent(**({"session_id": "s1"} | fields))


def substop(**fields):
    """Make a subagent's stop, with everything a supervisor knows."""
    return StopEvent(
        **(
            {
                "scope": "subagent",
                "session_id": "child-1",
                "parent_session_id": "parent-1",
                "agent_id": "a1",
                "agent_type": "coder",
                "run_id": "run-1",
            }
            | fields
        )
    )


def recorded(ledger):
    """Read the outcome and the cause of every stop from a ledger."""
    return rows(ledger, "SELECT outcome, why FROM stops ORDER BY id")


def wait_for(condition):
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends, "it never came true"
        time.sleep(0.005)


def run_async(engine, event=None):
    return asyncio.run(engine.check(event or stop()))


def run_sync(engine, event=None):
    return engine.check_sync(event or stop())


both_ways = pytest.mark.parametrize("run", [run_sync, run_async])


def rows(ledger, sql, *values):
    with opened(ledger) as db:
        return db.execute(sql, values).fetchall()


def fill(path, stops=100):
    """Have a ledger hold some stops, all in the file itself; return how long it is."""
    ledger = Ledger(path)
    for number in range(stops):
        decide(ledger, stop(session_id=f"of {number}", last_message=f"{number}" * 2000))
    ledger.connection.checkpoint()
    ledger.close()
    return os.path.getsize(path)


def decide(ledger, event, outcome="blocked", at=None):
    begun = ledger.begin(event)
    verdict = Block("go on") if outcome == "blocked" else Allow()
    ledger.record(
        begun, Decision(verdict=verdict, outcome=outcome, turn=begun.history.turn, limit=99)
    )
    if at is not None:
        with opened(ledger) as db:
            db.execute("UPDATE stops SET begun_at = ? WHERE id = ?", (at, begun.stop))
            db.execute("UPDATE agents SET seen_at = ?", (at,))
    return begun.stop
