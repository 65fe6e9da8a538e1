"""Every ledger remembers passes and starts alike: which gates can be skipped (N1)."""

from functools import partial

import pytest

from ledger_contract import ODD_TEXTS, at_once, decision, passed, spared, start, stop, wanted
from notyet import Allow, Block, Ledger, Report
from notyet.ledger.memory import MemoryLedger
from support import rows


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


@pytest.mark.rule("N1")
def test_a_pass_is_remembered_by_gate_and_files_for_all_agents(ledger):
    ledger.remember([passed()])
    assert spared(ledger) == {"g": "passed"}
    assert spared(ledger, session_id="other", agent_id="a") == {"g": "passed"}
    assert spared(ledger, wanted(gate="h")) == {"h": "passed"}
    assert spared(ledger, wanted("t2")) == {}
    assert spared(ledger, wanted(definition="e")) == {}
    ledger.remember([passed("t2")])
    both = [wanted(gate="one"), wanted("t2", gate="two"), wanted("t3", gate="three")]
    assert spared(ledger, *both) == {"one": "passed", "two": "passed"}


@pytest.mark.rule("N1", "B12")
@pytest.mark.parametrize("name", ["PATH", "VIRTUAL_ENV", "NODE_PATH", "BASH_FUNC_pytest%%"])
def test_a_pass_counts_only_where_the_same_programs_are_found(ledger, monkeypatch, name):
    ledger.remember([passed()])
    monkeypatch.setenv("EDITOR", "ed")
    assert spared(ledger) == {"g": "passed"}
    with monkeypatch.context() as other:
        other.setenv(name, "/elsewhere/secret")
        assert spared(ledger) == {}
        ledger.remember([passed("t2")])
    assert spared(ledger, wanted(), wanted("t2", gate="h")) == {"g": "passed"}
    if isinstance(ledger, Ledger):
        assert all("secret" not in tree for (tree,) in rows(ledger, "SELECT tree FROM passes"))
    monkeypatch.setenv(name, "/elsewhere")
    ledger.remember([Report(gate="g", answer=Block("no"), definition="d", failed_on="t1")])
    monkeypatch.undo()
    assert spared(ledger) == {}  # a failure takes it back, wherever it is found out


@pytest.mark.rule("N1", "B12")
def test_a_pass_counts_in_the_next_codex_but_not_with_other_commands_there(
    ledger, monkeypatch, tmp_path
):
    for number, names in enumerate((["apply_patch"], ["apply_patch"], ["apply_patch", "pytest"])):
        (tmp_path / f"codex-arg0{number}").mkdir()
        for name in names:
            (tmp_path / f"codex-arg0{number}" / name).touch()

    def known(number):
        monkeypatch.setenv("PATH", f"{tmp_path}/codex-arg0{number}:/bin")
        return spared(ledger)

    assert known(0) == {}
    ledger.remember([passed()])
    assert [known(number) for number in range(4)] == [{"g": "passed"}] * 2 + [{}, {}]


@pytest.mark.rule("N1")
def test_a_stop_s_passes_are_remembered_when_record_returns_and_its_failures_never(ledger):
    begun = ledger.begin(stop())
    failed = Report(gate="h", answer=Block("no"), definition="h")
    reports = (passed(), failed, Report(gate="i", answer=Allow(), definition="i"))
    ledger.record(begun, decision(begun, reports=reports))
    asked = [wanted(), wanted("", "h", gate="h"), wanted("", "i", gate="i")]
    assert spared(ledger, *asked) == {"g": "passed"}


@pytest.mark.rule("N1")
def test_a_failure_takes_back_what_passed_on_the_same_files_and_no_other_pass(ledger):
    failed = Report(gate="g", answer=Block("no"), definition="d", failed_on="t1")
    asked = [wanted(), wanted("t2", gate="other files"), wanted("t1", "e", gate="other question")]
    rest = {"other files": "passed", "other question": "passed"}
    for how in ("remember", "record"):
        ledger.remember([passed(), passed("t2"), passed("t1", "e")])
        if how == "remember":
            ledger.remember([failed])
        else:
            begun = ledger.begin(stop("failed"))
            ledger.record(begun, decision(begun, reports=(failed,)))
        assert spared(ledger, *asked) == rest
    ledger.remember([passed(), failed])
    assert spared(ledger) == {}
    ledger.remember([passed()])
    assert spared(ledger) == {"g": "passed"}


@pytest.mark.rule("N1")
def test_what_is_unknown_is_neither_remembered_nor_spared(ledger):
    ledger.remember([passed("", "d"), passed("t1", "")])
    ledger.remember_start(start(), {"s": ""})
    asked = [wanted("", "d", gate="files"), wanted("t1", "", gate="question")]
    assert spared(ledger, *asked) == {}


@pytest.mark.rule("N1")
def test_files_that_an_agent_began_with_are_unchanged_for_that_agent(ledger):
    ledger.remember_start(start(), {"s": "t1", "other": "t9"})
    assert spared(ledger) == {"g": "unchanged"}
    assert spared(ledger, wanted("t2")) == {}
    assert spared(ledger, wanted("t1", scope="other")) == {}
    assert spared(ledger, wanted("t1", scope="new")) == {}
    assert spared(ledger, session_id="s2") == {}
    assert spared(ledger, host="codex") == {}


@pytest.mark.rule("N1")
def test_an_agent_begins_once_however_often_its_start_is_told(ledger):
    ledger.remember_start(start(), {"s": "t1"})
    ledger.remember_start(start(source="compact"), {"s": "t2", "new": "t2"})
    asked = [wanted(), wanted("t2", gate="later"), wanted("t2", gate="new", scope="new")]
    assert spared(ledger, *asked) == {"g": "unchanged"}


@pytest.mark.rule("N1")
def test_an_agent_that_has_stopped_before_does_not_begin_nor_does_a_subagent(ledger):
    for about in ({}, {"agent_id": "a", "scope": "subagent"}):
        begun = ledger.begin(stop(**about))
        ledger.record(begun, decision(begun))
        ledger.remember_start(start(**about), {"s": "t1"})
        assert spared(ledger, **about) == {}
    ledger.remember_start(start(agent_id="b", scope="subagent"), {"s": "t1"})
    assert spared(ledger, agent_id="b") == {"g": "unchanged"}


@pytest.mark.rule("N1")
@pytest.mark.parametrize("seen", ["a start", "a stop"])
def test_a_session_does_not_begin_after_a_subagent_of_it(ledger, seen):
    child = {"agent_id": "a", "scope": "subagent"}
    if seen == "a start":
        ledger.remember_start(start(**child), {"s": "t0"})
    else:
        begun = ledger.begin(stop(**child))
        ledger.record(begun, decision(begun))
    ledger.remember_start(start(), {"s": "t1"})
    assert spared(ledger) == {}
    ledger.remember_start(start(session_id="s2"), {"s": "t1"})
    assert spared(ledger, session_id="s2") == {"g": "unchanged"}


@pytest.mark.rule("N1")
def test_a_subagent_began_with_its_own_files_or_else_with_those_of_its_session(ledger):
    ledger.remember_start(start(), {"s": "t1"})
    ledger.remember_start(start(scope="subagent", agent_id="own"), {"s": "t2"})
    both = (wanted(gate="session's"), wanted("t2", gate="own"))
    for agent, cause in (("own", "own"), ("none", "session's"), ("", "session's")):
        said = spared(ledger, *both, agent_id=agent or None)
        assert said == {cause: "unchanged"}


@pytest.mark.rule("N1")
def test_nothing_is_unchanged_for_an_agent_with_a_task_that_was_to_be_done(ledger):
    ledger.remember_start(start(), {"s": "t1"})
    assert spared(ledger, task_id="t") == {}
    ledger.remember([passed()])
    assert spared(ledger, task_id="t") == {"g": "passed"}


@pytest.mark.rule("N1")
def test_any_text_can_be_a_definition_a_scope_a_fingerprint_or_an_id(ledger):
    for text in ODD_TEXTS:
        ledger.remember([passed(text, text)])
        ledger.remember_start(start(session_id=text, agent_id=text), {text: text})
    for text in ODD_TEXTS:
        asked = [
            wanted(text, text, gate="passed"),
            wanted(text, "none", gate="unchanged", scope=text),
        ]
        said = spared(ledger, *asked, session_id=text, agent_id=text)
        assert said == {"passed": "passed", "unchanged": "unchanged"}


@pytest.mark.rule("N1")
def test_many_who_remember_at_once_lose_nothing(ledger):
    def work(name: int) -> None:
        for n in range(10):
            ledger.remember([passed(f"{name} {n}")])
            ledger.remember_start(start(session_id=f"{name} {n}"), {"s": f"{name} {n}"})

    jobs = [partial(work, name) for name in range(4)]
    at_once(jobs)
    trees = [f"{name} {n}" for name in range(4) for n in range(10)]
    asked = [wanted(tree, gate=tree) for tree in trees]
    assert spared(ledger, *asked) == dict.fromkeys(trees, "passed")
    for tree in trees:
        found = spared(ledger, wanted(tree, "other"), session_id=tree)
        assert found == {"g": "unchanged"}


@pytest.mark.rule("N1")
def test_passes_and_starts_are_there_after_reopening(durable, reopen):
    durable.remember([passed()])
    durable.remember_start(start(), {"s": "t2"})
    again = reopen(durable)
    asked = [wanted(), wanted("t2", gate="h")]
    assert spared(again, *asked) == {"g": "passed", "h": "unchanged"}
    again.remember_start(start(), {"s": "t3"})
    assert spared(durable, wanted("t3")) == {}
