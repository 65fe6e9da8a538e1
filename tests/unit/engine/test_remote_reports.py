"""Where a gate ran is known afterwards: to its user, to its agent, and in the ledger (M3)."""

import asyncio
import json

import pytest

from notyet import Command, Engine, Gate, Ledger
from notyet.core.gate import Exit
from notyet.core.message import note
from notyet.core.remote import remote_from
from notyet.core.verdict import Allow, Block, Decision, Problem
from notyet.engine.observers import EVERY_DECISION, Observer
from notyet.hosts.hook_answers import HookAnswer
from notyet.run.gate_command import GateCommand
from notyet.run.ssh_job import remote_job
from support import rows, run_sync, stop

pytestmark = pytest.mark.rule("M3")

THERE = "ssh://ci@builder:2222/srv/app"
ADVICE = "look at the host key of builder, and connect once with: ssh builder"


def question(read=lambda _exit: HookAnswer(answer=Allow())):
    remote = remote_from(THERE)
    job = remote_job(remote, argv=("true",), dir=remote.path, environ={})
    return GateCommand(name="g", job=job, read=read)


def gate(name, script, **fields):
    return Gate(name=name, check=Command(script=script, workspace=fields.pop("at")), **fields)


def test_every_report_names_the_workspace_and_every_problem_the_machine():
    says = lambda answer, warning="": lambda _exit: HookAnswer(answer=answer, warning=warning)
    passed = question().report(Exit(code=0), cut=False)
    assert (passed.answer, passed.workspace) == (Allow(), THERE)
    blocked = question(says(Block("no"), "odd")).report(Exit(code=1), cut=False)
    assert (blocked.answer, blocked.warning) == (Block("no"), "on ci@builder: odd")
    slow = question(says(Problem("timeout", "no answer in 2 s")))
    late = slow.report(Exit(timed_out=True), cut=False)
    assert late.answer == Problem("timeout", "no answer in 2 s (on ci@builder)")
    cut = slow.report(Exit(timed_out=True, seconds=1), cut=True)
    ended = "the agent's host waits no longer; it was ended after 1.0 s (on ci@builder)"
    assert cut.answer == Problem("deadline", ended)
    crashed = question(lambda _exit: 1 / 0).report(Exit(code=0), cut=False)
    assert crashed.answer.detail.endswith(" (on ci@builder)")
    broken = question().broken(Problem("timeout", "it was not ended in time"))
    assert broken.answer.detail == "it was not ended in time (on ci@builder)"
    for report in (blocked, late, cut, crashed, broken):
        assert report.workspace == THERE


def test_what_a_person_should_do_is_told_to_the_user_and_words_are_not_said_twice():
    unknown = Exit(problem="the host key of builder is not known here", advice=ADVICE)
    read = lambda ended: HookAnswer(
        answer=Problem("cannot_start", ended.problem), tell_user="hello"
    )
    report = question(read).report(unknown, cut=False)
    assert report.answer.detail == "the host key of builder is not known here"
    assert report.tell_user == f"hello | {ADVICE}"


@pytest.mark.rule("N3")
def test_a_machine_that_is_not_known_is_its_users_matter_and_not_the_agents(warm_box, monkeypatch):
    config = warm_box.config_with("nobody_known", "UserKnownHostsFile /dev/null")
    monkeypatch.setenv("NOTYET_SSH_CONFIG", config)
    gates = [gate(name, "true", at=warm_box.url(), if_broken="block") for name in "ab"]
    decision = run_sync(Engine(gates))
    assert decision.outcome == "blocked"
    prompt = decision.verdict.prompt
    assert (
        "It cannot run: the host key of box is not known here.\n  Only your user can fix that."
        in prompt
    )
    assert "BLOCKED:" in prompt
    assert "ssh box" not in prompt
    assert note(decision).count("connect once with: ssh box") == 1


def test_the_ledger_and_the_note_say_where_each_gate_ran(warm_box, tmp_path):
    url = warm_box.url(tmp_path)
    gates = [
        gate("passes", "true", at=url),
        gate("fails", "exit 3", at=url),
        gate("watches", "true", at=url, observe=True),
        gate("missing", "no-such-program", at=url),
        gate("killed", "kill -9 $$", at=url),
        gate("slow", "sleep 60", at=url, timeout=2),
        gate("here", "true", at="local"),
    ]
    ledger = Ledger(tmp_path / "ledger.db")
    decision = run_sync(Engine(gates, ledger=ledger))
    places = {report.gate: report.workspace for report in decision.reports}
    assert places == {each.name: url for each in gates[:-1]} | {"here": ""}
    assert rows(ledger, "SELECT gate, workspace FROM reports") == [*places.items()]
    said = {report.gate: str(getattr(report.answer, "detail", "")) for report in decision.reports}
    assert said["missing"].endswith("not found (on box)")
    assert said["killed"] == "was ended by signal 9 (on box)"
    assert "box" in said["slow"]
    assert "fails (exit 3, on box)" in note(decision)


def test_observers_are_told_where_a_gate_ran(tmp_path):
    seen = tmp_path / "seen"
    tell = Observer(EVERY_DECISION, Command(script=f"cat > '{seen}'"), name="o")
    report = question().report(Exit(code=0), cut=False)
    decision = Decision(verdict=Allow(), outcome="passed", reports=(report,))
    asyncio.run(Engine(observers=[tell]).tell(stop(cwd=str(tmp_path)), decision))
    assert json.loads(seen.read_text())["decision"]["reports"][0]["workspace"] == THERE
