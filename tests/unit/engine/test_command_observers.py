"""Observers that are commands: told of every decision, and unable to change it."""

import json

import pytest

from hook_runs import ask, new_project, payload, run_hook, run_late_hook, stops
from notyet import Allow, Block, Command, Engine, Ledger, Limits, Problem
from notyet.engine.observers import EVERY_DECISION, Observer, Watch
from notyet.engine.stop import Stop, check
from notyet.ledger.memory import MemoryLedger
from notyet.run.drive import drive_sync
from support import both_ways, gate, stop

SEE = "cat > seen; env > environ"


def watching(tmp_path, script=SEE, **fields):
    fields = {"timeout": 10.0, "name": "o", "folder": str(tmp_path)} | fields
    return Observer(EVERY_DECISION, Command(script=script, dir=str(tmp_path)), **fields)


@both_ways
def test_an_observer_is_told_the_event_and_the_decision(tmp_path, run):
    engine = Engine([gate("g", None)], observers=[watching(tmp_path)])
    run(engine, stop(last_message="é", cwd=str(tmp_path)))
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["event"]["session_id"], seen["event"]["last_message"]) == ("s1", "é")
    assert seen["decision"]["outcome"] == "passed"
    assert seen["decision"]["verdict"] == "allow"
    assert seen["decision"]["reports"][0]["gate"] == "g"
    environ = (tmp_path / "environ").read_text()
    assert "NOTYET_OUTCOME=passed\n" in environ
    assert "NOTYET_INSIDE=1\n" in environ
    assert f"NOTYET_PROJECT_DIR={tmp_path}\n" in environ


@both_ways
def test_an_observer_of_decisions_is_told_of_a_block_too(tmp_path, run):
    engine = Engine([gate("g", Block("no"))], observers=[watching(tmp_path)])
    assert run(engine).outcome == "blocked"
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["decision"]["outcome"], seen["decision"]["verdict"]) == ("blocked", "block")


@both_ways
@pytest.mark.parametrize(
    "script",
    [
        "exit 2",
        'echo \'{"decision": "block", "reason": "no"}\'',
        "kill -9 $$",
        "no-such",
        "sleep 9",
    ],
)
def test_an_observer_cannot_change_anything(tmp_path, run, script):
    engine = Engine([gate("g", None)], observers=[watching(tmp_path, script, timeout=0.3)])
    assert run(engine).outcome == "passed"


@both_ways
def test_an_observer_is_told_of_the_outcomes_it_asked_for(tmp_path, run):
    observer = watching(tmp_path, "cat > seen", outcomes=("capped", "stuck"))
    run(Engine([gate("g", None)], observers=[observer]))
    assert not (tmp_path / "seen").exists()


@pytest.mark.rule("N3")
def test_an_observer_hears_of_groups_of_outcomes_with_the_line_for_the_user(tmp_path):
    script = 'echo "$NOTYET_NOTE" >> seen'
    groups = ("not_passed", "not_checked")
    answers = [Block("no"), Block("no"), Problem("crashed", "boom"), Allow()]
    engine = Engine(
        [gate("g", lambda *_: answers.pop(0), if_broken="allow")],
        observers=[watching(tmp_path, script, outcomes=groups)],
        limits=Limits(max_blocks=1),
        ledger=Ledger(tmp_path / "ledger.db"),
        warn=lambda _: None,
    )
    for turn in ("t1", "t1", "t2"):
        engine.check_sync(stop(turn_id=turn, last_message=str(len(answers))))
    answers.insert(0, Allow())
    engine.check_sync(stop(turn_id="t3"))
    capped, *broken = (tmp_path / "seen").read_text().splitlines()
    assert capped.startswith("notyet: NOT PASSED: g still failing")
    assert capped.endswith("(notyet log 2)")
    assert [line.startswith("notyet: NOT CHECKED: g") for line in broken] == [True]


@pytest.mark.rule("N3")
def test_where_nothing_is_trusted_observers_hear_that_it_was_not_checked(tmp_path):
    heard = []
    watch = Watch(Observer(EVERY_DECISION, lambda _, decision: heard.append(decision)))
    only = Stop(
        stop(), (), MemoryLedger(), warn=heard.append, watches=[watch], untrusted=["p: no trust"]
    )
    decision = drive_sync(check(only))
    assert (decision.outcome, decision.why) == ("skipped", "untrusted")
    assert heard == ["p: no trust", decision]


def test_an_observer_in_a_file_is_told_of_a_block_and_its_failure_is_only_said(tmp_path):
    text = '[gates]\ng = "exit 1"\n[observers.see]\nrun = "cat > seen"\n'
    text += '[observers.bad]\nrun = "exit 3"\n'
    project = new_project(tmp_path / "p", text)
    done = run_hook(payload("claude", project))
    assert json.loads(done.stdout)["decision"] == "block"
    assert b"observer bad crashed: exit 3 (ignored)" in done.stderr
    assert json.loads((project / "seen").read_text())["decision"]["outcome"] == "blocked"


def test_an_observer_in_a_file_is_cut_off_by_the_hosts_deadline(tmp_path):
    text = '[gates.g]\nrun = "true"\nwhen = "always"\n'
    text += '[observers.slow]\nrun = "touch there; sleep 60"\n'
    project = new_project(tmp_path / "p", text)
    done = run_late_hook(payload("claude", project), project / "there")
    assert b"observer slow" in done.stderr
    assert stops() == [("passed", "")]


def test_an_observer_in_a_file_can_ask_for_outcomes(tmp_path):
    text = '[gates.g]\nrun = "true"\nwhen = "always"\n'
    text += '[observers.o]\nrun = "cat > seen"\non = ["blocked"]\n'
    project = new_project(tmp_path / "p", text)
    ask(payload("claude", project))
    assert not (project / "seen").exists()


def test_only_decisions_are_told_to_commands():
    with pytest.raises(TypeError, match="an observer is a function"):
        Observer("stop", Command(script="x"))


def test_an_observer_reads_what_was_said_and_how_each_gate_answered(tmp_path):
    from notyet import Block, Halt

    for verdict, said in ((Block("no", "why"), "why"), (Halt("enough"), "enough")):
        engine = Engine([gate("g", verdict)], observers=[watching(tmp_path)])
        engine.check_sync(stop(cwd=str(tmp_path)))
        decision = json.loads((tmp_path / "seen").read_text())["decision"]
        assert decision["reason"] == said
        assert decision["reports"][0]["status"] in {"blocked", "halted"}


def test_a_python_observer_that_fails_is_told_of(tmp_path):
    project = new_project(
        tmp_path / "p",
        '[gates]\ng = "true"\n[observers.o]\npython = "watch:told"\n',
    )
    (project / "watch.py").write_text("def told(event, decision):\n    raise ValueError('oh')\n")
    reply = ask(payload("claude", project))
    assert "observer o crashed: exit 1 (ignored)" in reply.stderr
    assert stops() == [("passed", "")]
