"""What a ledger promises about equal stops, answers, and many who use it at once."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial

from notyet.core.record import replace
from notyet.core.verdict import Allow, Block, Halt, Problem, Report
from notyet.errors import LedgerError
from notyet.ledger import REPEATED_AT_MOST, Begun
from notyet.testing.ledger_counts import ODD_TEXTS, decide, decision, look, refuses, stop
from notyet.testing.promises import Promise, at_once, expect, into, later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from notyet.ledger import AnyLedger

_LONG = 5.0  # seconds of patience that nobody should have to use up

ANSWERS: list[Promise] = []
_promise = into(ANSWERS)


def _in_time(what: str, call: Callable[[], object], wanted: object) -> None:
    started = time.monotonic()
    expect(what, call(), wanted)
    if time.monotonic() - started >= _LONG:
        raise AssertionError(f"{what}: it came only when all patience was used up")


@_promise("a stop equal to one that is being asked repeats it and counts nothing (B12)")
def _equal(ledger: AnyLedger) -> None:
    for flag in (None, True, False):
        event = stop("same", session_id=f"{flag}", stop_hook_active=flag, result={"tests": "bad"})
        first = ledger.begin(event)
        expect("what the second repeats", ledger.begin(event).repeats, first.stop)
        expect("what the third repeats", ledger.begin(event).repeats, first.stop)
        ledger.record(first, decision(first))
        seen = look(ledger, session_id=f"{flag}")
        expect("the count", seen.blocks, 1)


@_promise("stops that differ in anything are each real (B12)")
def _different(ledger: AnyLedger) -> None:
    bound = "x" * 50_000
    events = (
        stop("same", result={"tests": "failed"}),
        stop("same", result={"tests": "passed"}),
        stop("other", result={"tests": "failed"}),
        stop("same", result={"tests": "failed"}, agent_id="a"),
        stop(bound + "a" + bound),
        stop(bound + "b" + bound),
    )
    asked = [ledger.begin(event) for event in events]
    expect("what they repeat", [each.repeats for each in asked], [0] * len(asked))


@_promise("a blocked stop that comes again with its flag false repeats its answer (B12)")
def _again(ledger: AnyLedger) -> None:
    event = stop("same", stop_hook_active=False)
    first = ledger.begin(event)
    ledger.record(first, decision(first))
    again = [ledger.begin(event).repeats for _ in range(REPEATED_AT_MOST)]
    expect("what they repeat", again, [first.stop] * REPEATED_AT_MOST)
    expect("the answer", ledger.answer(first.stop, 0), decision(first))
    expect("the count", look(ledger).blocks, 1)
    expect("what one too many repeats", ledger.begin(event).repeats, 0)


@_promise("an equal stop later is a real one, if its flag is not false (B12)")
def _equal_later(ledger: AnyLedger) -> None:
    for flag in (None, True):
        event = stop("same", session_id=f"{flag}", stop_hook_active=flag)
        counts = [decide(ledger, event).history.blocks for _ in range(3)]
        expect(f"the counts with the flag {flag}", counts, [0, 1, 2])


@_promise("only the last answer of the turn is repeated, and only a block (B12)")
def _last_only(ledger: AnyLedger) -> None:
    passing = stop("passing", stop_hook_active=False)
    decide(ledger, passing, "passed")
    expect("the turn after a pass", decide(ledger, passing, "passed").history.turn, 2)
    old = ledger.begin(stop("old", turn_id="a", stop_hook_active=False))
    event = stop("new", turn_id="b", stop_hook_active=False)
    decide(ledger, event)
    expect("what an answered pass repeats", ledger.begin(passing).repeats, 0)
    event = replace(event, last_message="newest", turn_id="c")
    new = decide(ledger, event)
    ledger.record(old, decision(old, "passed"))  # too late to be the last
    expect("what the last block repeats", ledger.begin(event).repeats, new.stop)


# Answers


@_promise("an answer is waited for, and is the decision with all that belongs to it (B12)")
def _answer(ledger: AnyLedger) -> None:
    first = ledger.begin(stop())
    expect("an answer that is not there yet", ledger.answer(first.stop, 0.0), None)
    reports = (
        Report(gate="a", answer=Block("p", "r", 9), seconds=1.5, output="out", matched="m"),
        Report(gate="b", answer=Problem("timeout", "slow"), warning="w", exit="exit 1", held=True),
        Report(gate="c", answer=Halt("h"), observed=True, tell_user="u", hidden=True, log="/l"),
        Report(gate="d", answer=Allow(4, "note")),
        Report(gate="e"),
    )
    wanted = decision(first, reports=reports, warnings=("careful", "naïve ✓"), repeat_key="k")
    extended = Block("go on", "why", 9)
    wanted = replace(wanted, verdict=extended, extend=9, limit_source="max_blocks")
    jobs = [lambda: ledger.answer(first.stop, _LONG), later(ledger.record, first, wanted)]
    _in_time("the answer", lambda: at_once(jobs)[0], wanted)
    expect("the answer, asked for again", ledger.answer(first.stop, 0.0), wanted)
    for verdict, outcome in ((Halt("enough"), "halted"), (Allow(), "passed")):
        begun = ledger.begin(stop(outcome))
        other = decision(begun, outcome, verdict=verdict)
        ledger.record(begun, other)
        expect(f"an answer that is {outcome}", ledger.answer(begun.stop, 0.0), other)


@_promise("an answer that nobody gives is None, and None comes in time (B12)")
def _no_answer(ledger: AnyLedger) -> None:
    asked = ledger.begin(stop())
    _in_time("an answer that is late", lambda: ledger.answer(asked.stop, 0.1), None)
    unknown = asked.stop + 99
    _in_time("the answer of an unknown stop", lambda: ledger.answer(unknown, _LONG), None)
    jobs = [lambda: ledger.answer(asked.stop, _LONG), later(ledger.give_up, asked)]
    _in_time("the answer of a stop given up", lambda: at_once(jobs)[0], None)
    expect("what an equal stop repeats then", ledger.begin(stop()).repeats, 0)


@_promise("giving a stop up counts nothing, and changes no answer (B12)")
def _give_up(ledger: AnyLedger) -> None:
    answered = decide(ledger, stop(), repeat_key="k")
    ledger.give_up(answered)
    kept = ledger.answer(answered.stop, 0.0)
    expect("the outcome of an answered stop", kept and kept.outcome, "blocked")
    begun = ledger.begin(stop("other"))
    ledger.give_up(begun)
    ledger.give_up(begun)
    ledger.give_up(Begun(stop=begun.stop + 99))
    seen = look(ledger)
    counts = (seen.blocks, seen.session_blocks, seen.blocked, seen.repeats, seen.repeat_key)
    expect("what is remembered", counts, (1, 1, True, 1, "k"))


@_promise("a stop that is over, or unknown, cannot be counted: LedgerError (B3)")
def _over(ledger: AnyLedger) -> None:
    recorded = decide(ledger, stop())
    refuses("recording a stop twice", ledger.record, recorded, decision(recorded))
    given_up = ledger.begin(stop("other"))
    ledger.give_up(given_up)
    refuses("recording a stop that was given up", ledger.record, given_up, decision(given_up))
    unknown = replace(given_up, stop=given_up.stop + 99)
    refuses("recording an unknown stop", ledger.record, unknown, decision(unknown))
    expect("the count", look(ledger).blocks, 1)


@_promise("a skipped stop counts nothing and answers nobody (A10, B9)")
def _skip(ledger: AnyLedger) -> None:
    skipped = decision(Begun(stop=0), "skipped", why="off", warnings=("said \ud800",))
    event = stop("same", stop_hook_active=False)
    ledger.skip(event, skipped)
    expect("the turns so far", look(ledger, session_id="s2").turn, 1)
    first = decide(ledger, event)
    expect("the turn after a skip", first.history.turn, 1)
    ledger.skip(stop("other", stop_hook_active=False), skipped)
    ledger.skip(stop(session_id=""), skipped)
    expect("what the last block repeats", ledger.begin(event).repeats, first.stop)
    seen = look(ledger)
    expect("the counts", (seen.turn, seen.blocks, seen.blocked), (1, 1, True))


# All at once, and anything at all


@_promise("threads lose no count (B3)")
def _threads(ledger: AnyLedger) -> None:
    def work(name: int) -> list[int]:
        counts = []
        for n in range(20):
            begun = ledger.begin(stop(f"{name} {n}"))
            counts.append(ledger.record(begun, decision(begun)).count)
        return counts

    counts = at_once([partial(work, name) for name in range(4)])
    told = sorted(count for each in counts for count in each)
    expect("the counts told", told, list(range(1, 81)))
    seen = look(ledger)
    expect("the counts kept", (seen.blocks, seen.session_blocks), (80, 80))


@_promise("of equal stops in many threads one is real, and all get its answer (B12)")
def _equal_threads(ledger: AnyLedger) -> None:
    begun = at_once([lambda: ledger.begin(stop("same"))] * 8)
    real = [each for each in begun if not each.repeats]
    expect("how many are real", len(real), 1)
    expect("what the others repeat", {each.repeats for each in begun} - {0}, {real[0].stop})
    wanted = decision(real[0])
    jobs = [lambda: ledger.answer(real[0].stop, _LONG)] * 7
    answers = at_once([*jobs, later(ledger.record, real[0], wanted)])
    expect("the answers", set(answers), {wanted})


@_promise("whatever an event or a gate holds, only LedgerError is raised")
def _anything(ledger: AnyLedger) -> None:
    for odd in ODD_TEXTS:
        begun = ledger.begin(stop(odd, session_id="texts", agent_type=odd, cwd=odd))
        report = Report(gate=odd, answer=Block(odd), matched=odd, warning=odd, output=odd)
        ledger.record(begun, decision(begun, verdict=Block(odd), why=odd, reports=(report,)))
    expect("the count", look(ledger, session_id="texts").blocks, len(ODD_TEXTS))
    cycle: dict[str, object] = {}
    cycle["self"] = cycle
    for n, result in enumerate(({1: 2, "a": 3}, {(1, 2): 3}, cycle, object(), float("nan"), b"x")):
        decide(ledger, stop(f"{n}", session_id="results", result=result, raw={"x": result}))
    expect("the count", look(ledger, session_id="results").blocks, 6)
    begun = ledger.begin(stop("huge"))
    with suppress(LedgerError):
        ledger.record(begun, decision(begun, "passed", count=2**70))


@_promise("`instant` is true or false, and every call can be given a patience")
def _patience(ledger: AnyLedger) -> None:
    expect("its type", type(ledger.instant), bool)
    begun = ledger.begin(stop(), _LONG)
    ledger.record(begun, decision(begun), 50, _LONG)
    ledger.give_up(ledger.begin(stop("other"), _LONG), _LONG)
    ledger.skip(stop(), decision(begun, "skipped"), _LONG)
    expect("the count", look(ledger).blocks, 1)


@_promise("an output that is kept is a private file of its own, all of it; else the path is empty")
def _outputs(ledger: AnyLedger) -> None:
    begun = [ledger.begin(stop(message)) for message in ("one", "two")]
    kept = []
    for each in begun:
        for gate in ("unit tests", "unit/tests", "é" * 300):
            output = f"{each.stop} {gate} begins " + "x" * 100_000 + " ends"
            path = ledger.keep_output(each, Report(gate=gate, output=output))
            if path:
                kept.append((path, output))
            expect("the type of a path", type(path), str)
    for path, output in kept:
        with open(path, encoding="utf-8") as file:
            expect(f"whether {path} holds its output", output in file.read(), True)
        expect(f"who else may use {path}", os.stat(path).st_mode & 0o077, 0)
    ledger.keep_output(begun[0], Report(gate="\ud800 \x00", output="\ud800 \x00"))
