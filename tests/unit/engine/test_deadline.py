"""What the engine does when time runs out, and what it says in how many words."""

import sqlite3
import time
from contextlib import closing

import pytest

from notyet import Block, Command, Engine, Gate, Ledger, Match, Observer, Source
from notyet.engine import stop as deadline
from notyet.engine.observers import EVERY_DECISION
from notyet.engine.stop import Deadline
from notyet.hosts.conclaude import hooks as conclaude
from support import both_ways, gate, stop, substop


def command(name, script, **fields):
    return Gate(name=name, check=Command(script=script), **fields)


@pytest.mark.rule("E9")
def test_what_comes_after_the_gates_may_use_a_part_of_the_margin():
    long, short, endless = Deadline(597.0), Deadline(1.6), Deadline(None)
    assert long.last - long.ends == pytest.approx(1.0)
    assert short.last - short.ends == pytest.approx(0.2)
    assert (endless.ends, endless.last, endless.left(7.0), endless.left_to_record()) == (
        None,
        None,
        7.0,
        60.0,
    )
    assert Deadline(-1.0).left(7.0) == Deadline(-1.0).left_to_begin() == 0.0
    assert endless.left_to_begin() == 60.0
    assert 596 < long.left_to_begin() < 597  # no gate runs before the ledger has the stop
    assert 596 < long.left(1000.0) < 597
    assert short.left(7.0) < short.left_to_record() < 1.8


@pytest.mark.rule("E9", "K10")
def test_observers_are_told_although_the_gates_used_up_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(deadline, "_TO_FINISH", 20.0)  # a busy machine may need long to start one
    monkeypatch.setattr(deadline, "_PART_TO_FINISH", 0.01)
    seen = tmp_path / "seen"
    observer = Observer(EVERY_DECISION, Command(script=f"echo $NOTYET_OUTCOME > {seen}"), name="o")
    engine = Engine([command("slow", "sleep 60")], observers=[observer])
    assert engine.check_sync(stop(), within=0.3).outcome == "failed_open"
    assert seen.read_text() == "failed_open\n"


@both_ways
@pytest.mark.rule("B5")
def test_observers_see_the_count_and_the_limit_of_the_decision(run):
    told = []
    observer = Observer(EVERY_DECISION, lambda event, decision: told.append(event))
    engine = Engine([gate("g", Block("no"))], observers=[observer])
    for _ in range(2):
        run(engine, stop(stop_hook_active=True))
    assert [(event.block_count, event.max_blocks) for event in told] == [(1, 3), (2, 3)]


@pytest.fixture
def locked(tmp_path):
    """A ledger that another process holds, and a way to let go of it."""
    ledger = Ledger(tmp_path / "ledger.db", patience=60.0)
    ledger.begin(stop(session_id="create"))
    other = sqlite3.connect(ledger.path, isolation_level=None, check_same_thread=False)
    with closing(other):
        yield ledger, other


@pytest.mark.rule("B3", "E9")
def test_a_locked_ledger_is_waited_for_no_longer_than_the_host_waits(locked):
    ledger, other = locked
    other.execute("BEGIN IMMEDIATE")
    for event in (stop(), stop(session_id="")):
        started = time.monotonic()
        decision = Engine([gate("g", Block("no"))], ledger=ledger).check_sync(event, within=0.5)
        assert time.monotonic() - started < 20
        assert decision.outcome == "skipped"


@pytest.mark.rule("B3", "E9")
def test_a_decision_that_cannot_be_recorded_in_time_does_not_block(locked, monkeypatch):
    ledger, other = locked
    passed = []  # how much time passes at once
    monkeypatch.setattr(deadline, "monotonic", lambda: time.monotonic() + sum(passed))

    def block(event):
        other.execute("BEGIN IMMEDIATE")
        passed.append(60.0)
        return Block("no")

    started = time.monotonic()
    decision = Engine([gate("g", block)], ledger=ledger).check_sync(stop(), within=40)
    assert time.monotonic() - started < 20
    assert decision.outcome == "failed_open"
    assert "not recorded" in decision.warnings[-1]


@both_ways
@pytest.mark.rule("D2")
def test_a_missing_agent_id_is_said_also_where_only_the_star_fits(run, caplog):
    gates = [
        gate("star", match=Match(events=("subagent",))),
        gate("picky", match=Match(events=("subagent",), agents=("a-*",))),
    ]
    assert run(Engine(gates), substop(agent_id=None, agent_type=None)).outcome == "passed"
    assert "names no agent_id" in caplog.text


@both_ways
@pytest.mark.rule("A6")
def test_one_stop_warns_in_a_dozen_lines_at_most(run):
    said = []
    gates = [gate(f"g{n}", lambda _: 1 / 0) for n in range(40)]
    decision = run(Engine(gates, warn=said.append))
    assert len(decision.warnings) == 40
    assert len(said) == 11
    assert said[-1] == "and 30 more warnings about this stop"


@both_ways
@pytest.mark.rule("A2", "D3")
def test_all_commands_of_conclaude_run_although_a_gate_of_an_earlier_stage_blocked(run, tmp_path):
    commands = [{"run": f"echo {n} >> {tmp_path}/ran"} for n in range(3)]
    settings = {
        "subagentStop": {
            "commands": {
                "*": [*commands, {"run": f"echo 3 >> {tmp_path}/ran; exit 1", "block": True}],
                "coder": [{"run": f"echo 4 >> {tmp_path}/ran; exit 1"}],
            }
        }
    }
    theirs = conclaude.gates(settings, str(tmp_path / ".conclaude.yaml"), lambda _: 1)
    ours = gate("native", Block("no"), scopes=("subagent",))
    decision = run(Engine([ours, *theirs]), substop())
    assert (tmp_path / "ran").read_text().split() == ["0", "1", "2", "3", "4"]
    assert decision.outcome == "blocked"
    statuses = [report.status for report in decision.reports]
    assert statuses == ["blocked", "allowed", "allowed", "allowed", "blocked", "blocked"]
    assert decision.verdict.prompt == "no\n\n" + decision.verdict.prompt.split("\n\n", 1)[1]


@both_ways
@pytest.mark.rule("N2")
def test_each_failed_gate_whose_output_is_cut_has_a_log(run, tmp_path):
    gates = [
        command("long", "seq 1 5000; exit 1", source=Source(str(tmp_path / "notyet.toml"), 1)),
        command("middle", "seq 1 200; exit 1"),
        command("short", "echo short; exit 1"),
        command("answers", """echo '{"decision": "block", "reason": "say more"}'"""),
    ]
    decision = run(Engine(gates, ledger=Ledger(tmp_path / "ledger.db")))
    assert [bool(report.log) for report in decision.reports] == [True, True, False, False]
    assert decision.verdict.prompt.count("lines left out") == 2
    assert decision.verdict.prompt.count("Full output: ") == 2
    assert "FAILED answers (exit 0" not in decision.verdict.prompt
    assert "say more" in decision.verdict.prompt
