"""A gate that never blocked: true of every stop, and not only of those that are counted."""

import time

import pytest

from notyet import Allow, Block, Engine, Halt, Ledger
from notyet.ledger import stats
from notyet.ledger.past_stops import StopFilter
from notyet.ledger.stats import never_blocked
from support import gate, stop


@pytest.fixture
def ledger(tmp_path):
    """A ledger with an old block of `once`, one of `here` in /p, and a gate that only observes."""
    ledger = Ledger(tmp_path / "ledger.db")

    def check(cwd, *gates):
        event = stop(cwd=cwd, host="claude", session_id=f"s{cwd}")
        Engine(gates, ledger=ledger, warn=lambda _: None).check_sync(event)

    check("/p", gate("once", Halt("x")), gate("never", Allow()))
    ledger.connection.execute("UPDATE stops SET begun_at = 5", ())
    check("/p/below", gate("here", Block("x")), gate("once", Allow()))
    check("/q", gate("never", Allow()), gate("watching", Block("x"), observe=True))
    return ledger


NAMES = ("once", "here", "never", "watching")


def quiet(ledger, **fields):
    return sorted(never_blocked(ledger, StopFilter(**fields), NAMES))


def test_a_gate_is_quiet_where_and_since_when_it_blocked_nothing(ledger):
    lately = time.time() - 3_600
    assert quiet(ledger) == ["never", "watching"]
    assert quiet(ledger, since=lately) == ["never", "once", "watching"]
    assert quiet(ledger, since=lately, place="/p") == ["never", "once", "watching"]
    assert quiet(ledger, since=lately, place="/q") == ["here", "never", "once", "watching"]
    assert quiet(ledger, host="codex") == ["here", "never", "once", "watching"]
    assert quiet(ledger, host="claude") == ["never", "watching"]


def test_a_gate_that_blocked_too_often_elsewhere_is_not_said_to_be_quiet(ledger, monkeypatch):
    monkeypatch.setattr(stats, "_MOST_BLOCKS", 1)
    assert quiet(ledger, place="/q") == ["never", "watching"]
    assert quiet(ledger, since=time.time() - 3_600) == ["never", "once", "watching"]
