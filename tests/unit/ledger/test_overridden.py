"""A host that lets an agent go against our word is found out, and its user told (B11)."""

import pytest

from hook_runs import FAILING, PASSING, ask, new_project, payload, trust
from notyet import Allow, Block, Engine, Ledger
from notyet.core.note import note
from support import gate, stop

pytestmark = pytest.mark.rule("B11")


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else None


def test_the_next_stop_tells_once_that_the_host_let_the_agent_go(ledger):
    answers = [Block("go on"), Allow(), Allow()]
    engine = Engine([gate("g", lambda *_: answers.pop(0))], ledger=ledger, warn=lambda _: None)
    first = engine.check_sync(stop(turn_id="t1"))
    second = engine.check_sync(stop(turn_id="t2"))
    third = engine.check_sync(stop(turn_id="t3"))
    assert [first.overridden, second.overridden, third.overridden] == [0, 1, 0]
    said = "notyet: the host let the agent go although stop 1 had sent it back"
    assert said in note(second)
    assert said not in note(first) + note(third)


def test_an_agent_that_went_on_was_not_let_go(ledger):
    answers = [Block("go on"), Allow()]
    engine = Engine([gate("g", lambda *_: answers.pop(0))], ledger=ledger, warn=lambda _: None)
    engine.check_sync(stop(turn_id="t1"))
    again = engine.check_sync(stop(turn_id="t1", last_message="now"))
    assert (again.outcome, again.overridden) == ("passed", 0)


def test_the_user_reads_it_beside_the_answer_of_the_hook(tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    ask(payload("claude", folder, last_assistant_message="one"))
    (folder / "notyet.toml").write_text(PASSING)
    trust(folder / "notyet.toml")
    said = ask(payload("claude", folder, last_assistant_message="two")).stdout
    assert "the host let the agent go although stop 1 had sent it back" in said
    said = ask(payload("claude", folder, last_assistant_message="three")).stdout
    assert "sent it back" not in said
