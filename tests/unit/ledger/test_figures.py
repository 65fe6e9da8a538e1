"""Figures about the stops of a span, counted from what real ledgers hold."""

import time

from notyet import Allow, Engine, StopEvent
from notyet.core.verdict import skipped
from notyet.ledger.figures import Bucket, over_time
from notyet.ledger.past_stops import StopFilter
from support import decide, gate, rows, stop

NOON = 1_700_000_000.0
HOUR = 3_600.0


def per_hour(ledger, hours=1, **wanted):
    return over_time(ledger, StopFilter(**wanted), [NOON + n * HOUR for n in range(hours)], HOUR)


def counts(bucket):
    known = {name: getattr(bucket, name) for name in Bucket._fields if name not in ("at", "until")}
    return {name: count for name, count in known.items() if count}


def skip(ledger, cause, at):
    number = ledger.skip(stop(session_id=f"skipped {cause}"), skipped(cause))
    rows(ledger, "UPDATE stops SET begun_at = ? WHERE id = ?", at, number)


def test_each_outcome_is_counted_in_its_group_and_hour(ledger):
    for n, outcome in enumerate(("passed", "passed", "blocked", "capped", "stuck", "failed_open")):
        decide(ledger, stop(session_id=f"s{n}"), outcome, at=NOON + n)
    skip(ledger, "no-gate", NOON + 7)
    skip(ledger, "untrusted", NOON + 8)
    decide(ledger, stop(session_id="s8"), "halted", at=NOON + HOUR)
    decide(ledger, stop(session_id="s9"), "passed", at=NOON - 1)
    decide(ledger, stop(session_id="s10"), "passed", at=NOON + 2 * HOUR)
    first, second = per_hour(ledger, 2)
    assert counts(first) == {
        "passed": 2, "sent_back": 1, "not_passed": 2, "not_checked": 2, "skipped": 1,
    }  # fmt: skip
    assert (first.stops, first.at, first.until) == (8, NOON, NOON + HOUR)
    assert counts(second) == {"other": 1}


def test_a_stop_whose_process_is_gone_was_not_checked(ledger):
    begun = [ledger.begin(stop(session_id=f"s{n}")) for n in range(2)]
    rows(ledger, "UPDATE stops SET pid = 999999999 WHERE id = ?", begun[0].stop)
    now = time.time()
    (bucket,) = over_time(ledger, StopFilter(), [now - 60], 120)
    assert counts(bucket) == {"other": 1, "not_checked": 1}


def test_the_stops_of_a_host_a_folder_a_gate_or_a_session_are_counted_alone(ledger, tmp_path):
    inner = str(tmp_path / "inner")
    engine = Engine([gate("lint", Allow())], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(host="codex", session_id="c", cwd=inner))
    decide(ledger, stop(host="claude", session_id="d", cwd=str(tmp_path)), "passed")
    ledger.skip(StopEvent(host="codex"), skipped("no-session"))  # an agent that has no row
    rows(ledger, "UPDATE stops SET begun_at = ?", NOON)
    everything = {"passed": 2, "not_checked": 1}
    for wanted, expected in (
        ({}, everything),
        ({"host": "codex"}, {"passed": 1, "not_checked": 1}),
        ({"place": str(tmp_path)}, {"passed": 2}),
        ({"place": inner}, {"passed": 1}),
        ({"gate": "lint"}, {"passed": 1}),
        ({"session": "d"}, {"passed": 1}),
        ({"outcomes": ("not_checked",)}, {"not_checked": 1}),
        ({"since": NOON + HOUR, "most": 1}, everything),  # the span says when
    ):
        (bucket,) = per_hour(ledger, **wanted)
        assert counts(bucket) == expected, wanted
