"""What `codex app-server` tells of our hook runs: never one that failed."""

import json

import pytest

from clients.model import responses
from clients.model.script import Fail, Say, Spawn
from commands import until

ONCE = '[gates.once]\nrun = "test -e fixed || { touch fixed; exit 1; }"\n'


def reply_of(**said):
    """Return a gate's command that answers in its own words."""
    return json.dumps(["printf", "%s", json.dumps(said)])


def test_codex_takes_every_answer_of_a_turn(codex):
    codex.gates(ONCE)
    codex.install()
    with codex.serving([Say("first"), Say("second")]) as (server, thread, model):
        turn = server.begin(thread, "do it")
        assert server.ended(turn)["status"] == "completed"
        assert server.hook_runs("sessionStart") == [("sessionStart", "completed", [])]
        blocked, passed = server.hook_runs("stop")
    assert blocked[1] == "blocked"
    (prompt,) = responses.prompts(model.asked()[1].news)
    notes = dict(blocked[2])
    assert notes["feedback"] == prompt
    assert "notyet" in notes["warning"]
    assert passed[1] == "completed"
    ((kind, note),) = passed[2]
    assert kind == "warning"
    assert "notyet" in note
    assert codex.outcomes() == ["blocked", "passed"]


LET_GO = {
    "capped": ("1", "Again.", "NOT PASSED: never still failing; 1 of 1 send-backs used"),
    "stuck": ("3", "Again.", "never failed 2 times with no file changed"),
    "handed_back": ("3", "BLOCKED: no key.", "NOT PASSED: the agent says it needs you"),
}


@pytest.mark.rule("N3")
@pytest.mark.parametrize("outcome", LET_GO)
def test_the_user_is_told_of_work_that_is_let_go_unfinished(codex, outcome):
    most, last, told = LET_GO[outcome]
    codex.gates(f'[limits]\nmax_blocks = {most}\nstuck_after = 2\n[gates.never]\nrun = "exit 1"\n')
    codex.install()
    with codex.serving([Say("Done."), Say(last)]) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        (_, status, entries) = server.hook_runs("stop")[-1]
    assert status == "completed"
    ((kind, note),) = entries
    assert kind == "warning"
    assert told in note
    assert codex.outcomes() == ["blocked", outcome]


@pytest.mark.rule("E9")
def test_codex_waits_as_long_as_the_hook_was_told(codex):
    codex.install("--timeout", "77s")
    waits = {hook["eventName"]: hook["timeoutSec"] for hook in codex.seen_hooks()[0].values()}
    assert waits == {"stop": 77, "subagentStop": 77, "sessionStart": 30, "subagentStart": 30}


@pytest.mark.rule("G2")
def test_a_halt_ends_the_turn_and_says_why(codex):
    codex.gates(f"[gates.enough]\nrun = {reply_of(decision='halt', reason='It is enough.')}\n")
    codex.install()
    with codex.serving([Say("done")]) as (server, thread, _):
        turn = server.begin(thread, "do it")
        assert server.ended(turn)["status"] == "completed"
        ((_, status, entries),) = server.hook_runs("stop")
    assert status == "stopped"
    assert ("stop", "It is enough.") in entries
    assert codex.outcomes() == ["halted"]


def test_a_halted_child_ends_with_its_words_and_its_parent_goes_on(codex):
    halt = reply_of(decision="halt", reason="It is enough.")
    codex.gates(f'[gates.enough]\nrun = {halt}\nfor = "subagents"\n')
    codex.install()
    script = {"main": [Spawn("[actor: kid] Look."), Say("done")], "kid": [Say("half a report")]}
    with codex.serving(script) as (server, thread, model):
        server.ended(server.begin(thread, "do it"))
        statuses = [status for _, status, _ in server.hook_runs("subagentStop")]
    assert statuses == ["stopped"]
    assert "half a report" in model.asked()[1].results[-1]
    codex.ungated = {"main"}
    assert codex.outcomes() == ["halted"]


def test_no_run_fails_whatever_a_gate_says(codex):
    strange = [
        "printf '\\\\033[31m\\\\000\\\\377\\\\376 red'; exit 1",
        "head -c 3000000 /dev/urandom; exit 1",
        "exit 127",
        "kill -9 $$",
        'echo \'{\\"decision\\": \\"block\\", \\"reason\\": \\" \\"}\'',
        'echo \'{\\"decision\\": \\"block\\", \\"reason\\": \\"\\\\\\\\ud800 half\\"}\'',
        "(sleep 40; echo late) & exit 1",
    ]
    gates = [f'[gates.g{n}]\nrun = "{script}"\n' for n, script in enumerate(strange)]
    codex.gates("[limits]\nmax_blocks = 2\nstuck_after = 0\n" + "".join(gates))
    codex.install()
    with codex.serving([Say("a"), Say("b"), Say("c")]) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        runs = server.hook_runs("stop")
    assert [status for _, status, _ in runs] == ["blocked", "blocked", "completed"]
    assert codex.outcomes() == ["blocked", "blocked", "capped"]
    assert {report.gate: report.status for report in codex.stops()[0].reports} == {
        "g0": "blocked",
        "g1": "blocked",
        "g2": "problem",
        "g3": "problem",
        "g4": "problem",
        "g5": "blocked",
        "g6": "blocked",
    }


@pytest.mark.rule("N5")
def test_the_user_is_told_that_a_changed_file_is_not_in_force(codex):
    codex.gates(ONCE)
    codex.install()
    codex.gates('[gates.other]\nrun = "true"\n')
    with codex.serving([Say("first"), Say("second")]) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        runs = server.hook_runs("stop")
    assert [status for _, status, _ in runs] == ["blocked", "completed"]
    for _, _, entries in runs:
        assert "notyet.toml" in dict(entries)["warning"]
    assert codex.outcomes() == ["blocked", "passed"]


def test_words_of_the_user_during_a_gate_reach_the_model_with_the_block(codex):
    codex.gates(
        '[gates.slow]\nrun = "test -e fixed && exit 0; touch asked; sleep 2; touch fixed; exit 1"\n'
    )
    codex.install()
    with codex.serving([Say("first"), Say("second")]) as (server, thread, model):
        turn = server.begin(thread, "do it")
        assert until((codex.project / "asked").exists, 30)
        words = [{"type": "text", "text": "in blue, please"}]
        server.ask("turn/steer", threadId=thread, expectedTurnId=turn, input=words)
        assert server.ended(turn)["status"] == "completed"
    prompt, wish = model.asked()[1].news
    assert responses.prompts([prompt])
    assert wish == "in blue, please"
    assert codex.outcomes() == ["blocked", "passed"]


def test_a_turn_that_the_model_fails_is_no_stop(codex):
    codex.gates(ONCE)
    codex.install()
    with codex.serving([Say("first"), Fail(500), Say("second")]) as (server, thread, _):
        turn = server.begin(thread, "do it")
        assert server.ended(turn)["status"] == "failed"
        assert codex.outcomes() == ["blocked"]
        again = server.begin(thread, "once more")
        assert server.ended(again)["status"] == "completed"
        assert [status for _, status, _ in server.hook_runs("stop")] == ["blocked", "completed"]
    # The block was never heeded: the next turn came without another stop.
    assert codex.outcomes() == ["overridden", "passed"]
