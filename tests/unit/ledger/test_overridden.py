"""An agent that was sent back and did not come again is found out, and its user told (B11)."""

import json

import pytest

from hook_runs import FAILING, PASSING, ask, new_project, payload, stops, trust
from notyet import Allow, Block, Decision, Engine, Ledger
from notyet.cli.main import main
from notyet.core.message import note
from notyet.core.verdict import GONE, skipped
from notyet.ledger.memory import MemoryLedger
from support import gate, stop

pytestmark = pytest.mark.rule("B11")


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else None


def test_the_next_stop_tells_once_that_the_agent_did_not_come_again(ledger):
    answers = [Block("go on"), Allow(), Allow()]
    engine = Engine([gate("g", lambda *_: answers.pop(0))], ledger=ledger, warn=lambda _: None)
    first = engine.check_sync(stop(turn_id="t1"))
    second = engine.check_sync(stop(turn_id="t2"))
    third = engine.check_sync(stop(turn_id="t3"))
    assert [first.overridden, second.overridden, third.overridden] == [0, 1, 0]
    said = f"notyet: NOT PASSED: the agent {GONE} (notyet log 1)"
    assert said in note(second)
    assert said not in note(first) + note(third)


def test_the_user_reads_it_beside_the_answer_of_the_hook(tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    ask(payload("claude", folder, last_assistant_message="one"))
    (folder / "notyet.toml").write_text(PASSING)
    trust(folder / "notyet.toml")
    said = ask(payload("claude", folder, last_assistant_message="two")).stdout
    assert f"NOT PASSED: the agent {GONE} (notyet log 1)" in said
    said = ask(payload("claude", folder, last_assistant_message="three")).stdout
    assert GONE not in said


@pytest.fixture(params=["file", "memory"])
def counting(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


def enter(ledger, event, outcome=None):
    """Enter a stop, and decide it if there is an outcome; return what it overrode."""
    begun = ledger.begin(event)
    if outcome is None:
        ledger.give_up(begun)
    else:
        verdict = Block("go on") if outcome == "blocked" else Allow()
        decision = Decision(verdict=verdict, outcome=outcome, turn=begun.history.turn, limit=3)
        ledger.record(begun, decision)
    return begun.overridden


@pytest.mark.parametrize("between", ["skipped", "given up", "another agent's"])
def test_a_stop_that_was_not_counted_is_a_further_stop_too(counting, between):
    enter(counting, stop(turn_id="t1"), "blocked")
    if between == "skipped":
        counting.skip(stop(turn_id="t1"), skipped("off"))
    elif between == "given up":
        enter(counting, stop(turn_id="t1", last_message="two"))
    else:
        counting.skip(stop(session_id="s2"), skipped("off"))
    is_overridden = between == "another agent's"
    assert enter(counting, stop(turn_id="t2"), "blocked") == is_overridden
    assert enter(counting, stop(turn_id="t3"), "passed") > 0  # and it is found out the next time


@pytest.mark.file_only("the hook has one")
def test_an_agent_that_we_let_go_while_we_were_off_was_not_let_go_by_its_host(
    tmp_path, monkeypatch, capsys
):
    folder = new_project(tmp_path / "p", FAILING)
    monkeypatch.chdir(folder)
    ask(payload("claude", folder, last_assistant_message="one"))
    assert main(["off"]) == 0
    ask(payload("claude", folder, last_assistant_message="two", stop_hook_active=True))
    assert main(["on"]) == 0
    said = ask(payload("claude", folder, last_assistant_message="three")).stdout
    assert GONE not in said
    assert [outcome for outcome, _ in stops()] == ["blocked", "skipped", "blocked"]
    assert "off" in capsys.readouterr().out


def test_an_observer_in_a_file_is_told_which_stop_was_overridden(tmp_path):
    observers = '[observers.all]\nrun = "cat >> all; echo >> all"\n'
    observers += '[observers.some]\nrun = "cat >> some; echo >> some"\non = ["overridden"]\n'
    folder = new_project(tmp_path / "p", FAILING + observers)
    for message in ("one", "two", "three"):
        ask(payload("claude", folder, last_assistant_message=message))
    told = [json.loads(line) for line in (folder / "some").read_text().splitlines()]
    decisions = [each["decision"] for each in told]
    assert [each["overridden"] for each in decisions] == [1, 2]
    assert decisions[0]["outcome"] == "overridden"
    assert decisions[0]["turn"] == 1
    assert decisions[0]["why"] == f"the agent {GONE}"
    assert [each["stop"] for each in decisions] == [1, 2]
    assert told[0]["event"]["last_message"] == "two"
    told = [json.loads(line)["decision"] for line in (folder / "all").read_text().splitlines()]
    outcomes = ["blocked", "overridden", "blocked", "overridden", "blocked"]
    assert [each["outcome"] for each in told] == outcomes
