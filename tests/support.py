"""Small builders that many tests share."""

import sqlite3

from notyet import Function, Gate, Match, StopEvent

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
    """Read the outcome and the cause of every stop from a ledger's file."""
    db = sqlite3.connect(ledger.path)
    try:
        return db.execute("SELECT outcome, why FROM stops ORDER BY id").fetchall()
    finally:
        db.close()
