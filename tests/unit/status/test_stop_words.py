"""What people read about a stop."""

import pytest

from notyet import Allow, Block
from notyet.core.event import StopEvent
from notyet.core.verdict import Problem, Report
from notyet.ledger.past_stops import PastStop
from notyet.status.stop_words import cause


def past(outcome, *reports, **fields):
    known = {
        "id": 1, "host": "claude", "session_id": "s", "agent_id": "", "scope": "agent",
        "place": "/p", "turn": 1, "begun_at": 1.0, "ended_at": 2.0, "verdict": "", "prompt": "",
        "reason": "", "why": "", "count": 1, "limit": 3, "limit_source": "", "warnings": (),
        "repeated": 0, "followed": True, "task": "", "event": StopEvent(session_id="s"),
    }  # fmt: skip
    return PastStop(**(known | fields), outcome=outcome, reports=reports)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("=== FAILURES ===\nE assert 1\nt.py:3: AssertionError\nFAILED t.py::a", "FAILED t.py::a"),
        ("ok\n--- FAIL: TestPay (0.00s)\n    pay_test.go:9: no", "--- FAIL: TestPay (0.00s)"),
        ("checking\nsrc/a.py:3:8: F401 `json` imported\n", "src/a.py:3:8: F401 `json` imported"),
        ("3:    print('prices')\n", "3:    print('prices')"),
        ("\x1b[31merror\x1b[0m: no\n", "error: no"),
        ("", "It ended with exit 1."),
    ],
)  # fmt: skip
def test_the_line_of_the_output_that_says_most_is_why_an_agent_was_sent_back(output, line):
    failed = Report(
        gate="tests", answer=Block("It ended with exit 1."), output=output, exit="exit 1"
    )
    passed = Report(gate="lint", answer=Allow(), output="error")
    watching = Report(gate="todo", answer=Block("no"), observed=True)
    assert cause(past("blocked", watching, passed, failed)) == f"tests: {line}"


def test_other_gates_that_failed_are_named():
    late = Report(gate="links", answer=Problem("timeout", "did not finish in 1 s"), held=True)
    failed = Report(gate="tests", answer=Block("no"), output="hush", hidden=True)
    assert cause(past("blocked", late, failed)) == "links: did not finish in 1 s (also tests)"
    assert cause(past("blocked", failed)) == "tests: no"
    silent = Report(gate="docs", answer=Block("\x1b[0m"), exit="exit 2")
    assert cause(past("blocked", silent)) == "docs: exit 2"


def test_without_a_gate_the_prompt_says_why_and_other_outcomes_their_remark():
    assert cause(past("blocked", prompt="go on")) == "go on"
    assert cause(past("passed")) == "after 1 send-back"
    assert cause(past("stuck", why="tests failed 3 times")) == "tests failed 3 times"
