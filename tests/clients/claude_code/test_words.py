"""The very words that Claude Code passes on: to the model, and to the user."""

import json

import pytest

from clients.claude_code.driver import events
from clients.model.script import Fail, Run, Say, Spawn

READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
BLOCK = '[reply]\nclaude = "block"\n'


@pytest.mark.rule("G1")
def test_the_model_reads_the_prompt_once_as_context_and_not_how_the_hook_is_called(claude):
    claude.gates(READY)
    claude.install()
    ran = claude.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    prompt = claude.stops()[0].prompt
    told = f"<system-reminder>\nStop hook additional context: {prompt}\n</system-reminder>"
    assert [text.strip() for text in ran.model.asked()[1].news] == [told]
    assert "notyet hook" not in json.dumps(ran.model.asked()[-1].raw["messages"])


@pytest.mark.rule("G1")
def test_a_subagent_reads_the_prompt_once_as_context(claude):
    claude.gates(READY + 'for = "subagents"\n')
    claude.install()
    claude.ungated = {"main"}
    ran = claude.run(
        {
            "main": [Spawn("[actor: child] Do it."), Say("Done.")],
            "child": [Say("Done!"), Run("touch ready"), Say("All of it is done.")],
        }
    )
    prompt = claude.stops()[0].prompt
    told = f"<system-reminder>\nSubagentStop hook additional context: {prompt}\n</system-reminder>"
    assert [text.strip() for text in ran.model.asked("child")[1].news] == [told]


@pytest.mark.rule("G1")
def test_with_reply_block_the_model_reads_the_prompt_as_feedback(claude):
    claude.gates(BLOCK + READY)
    claude.install()
    ran = claude.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert ran.text == "Now it is."
    news = ran.model.asked()[1].news
    assert news[0].strip() == f"Stop hook feedback:\n{claude.stops()[0].prompt}"
    # Newer versions tell it twice, with our command line: why context is the default.
    assert len(news) == (1 if claude.version == "2.1.197" else 2)


@pytest.mark.rule("N3")
def test_the_user_is_told_in_one_line_what_became_of_each_stop(claude):
    claude.gates(READY)
    claude.install()
    ran = claude.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    told = ["notyet: sent back 1/3: ready (exit 1)", "notyet: passed after 1 send-back"]
    assert claude.notes(ran) == told
    assert [reply["systemMessage"] for reply in claude.replies(ran)] == told
    shown = [event.get("content") for event in events(ran.out)]
    assert (f"Stop says: {told[0]}" in shown) == (claude.version != "2.1.197")


@pytest.mark.rule("K15", "G1")
@pytest.mark.parametrize("actor", ["main", "child"])
def test_a_halt_is_answered_with_the_end_and_its_reason(claude, actor):
    halt = """'{"decision": "halt", "reason": "Enough for today."}'"""
    who = "main" if actor == "main" else "subagents"
    claude.gates(f'[gates.budget]\nrun = """echo {halt}"""\nwhen = "always"\nfor = "{who}"\n')
    claude.install()
    claude.ungated = {"main", "child"} - {actor}
    script = {"main": [Say("Done.")]}
    if actor == "child":
        script = {"main": [Spawn("[actor: child] Do it."), Say("Done.")], "child": [Say("Half.")]}
    ran = claude.run(script)
    (reply,) = claude.replies(ran, "Stop" if actor == "main" else "SubagentStop")
    assert (reply["continue"], reply["stopReason"]) == (False, "Enough for today.")
    assert (ran.code, ran.text) == (0, "Done.")
    assert len(ran.model.asked(actor)) == 1
    assert claude.outcomes() == ["halted"]
    if actor == "child":
        assert "Half." in ran.model.asked()[-1].results[-1]


@pytest.mark.rule("G1")
def test_an_agent_that_is_let_go_quietly_costs_not_one_word(claude):
    claude.gates('[gates.ok]\nrun = "true"\nwhen = "always"\n')
    claude.install()
    ran = claude.run([Say("Done.")])
    assert claude.notes(ran) == []
    replies = [e for e in events(ran.out) if e.get("subtype") == "hook_response"]
    assert [reply["exit_code"] for reply in replies] == [0, 0]
    assert [reply["stderr"] for reply in replies] == ["", ""]


@pytest.mark.rule("K14")
def test_an_agent_is_told_at_its_start_which_gates_it_will_meet(claude):
    claude.gates("[start]\ntell = true\n" + READY + 'for = "all"\n')
    claude.install()
    (claude.project / "ready").touch()
    ran = claude.run(
        {"main": [Spawn("[actor: child] Do it."), Say("Done.")], "child": [Say("Mine is.")]}
    )
    for actor in ("main", "child"):
        first = "\n".join(ran.model.asked(actor)[0].texts)
        assert "notyet" in first
        assert "test -e ready" in first


@pytest.mark.rule("C2")
def test_an_agent_that_ends_by_an_error_of_its_model_is_not_gated(claude):
    claude.gates(READY)
    claude.install()
    ran = claude.run({"main": lambda _n, _request: Fail(400)})
    assert ran.code == 1
    assert claude.stops() == []


@pytest.mark.parametrize("options", [("--bare",), ("--max-turns", "1")])
def test_a_run_without_hooks_or_without_an_end_of_its_turn_is_not_gated(claude, options):
    """The first reads no settings; the second is ended by the program, not by its agent."""
    claude.gates(READY)
    claude.install()
    claude.ungated = {"main"}
    is_bare = "--bare" in options
    ran = claude.run([Say("Done.")] if is_bare else [Run("true")], args=options)
    assert (ran.code, ran.text) == ((0, "Done.") if is_bare else (1, ""))
    assert claude.replies(ran) == []
    assert claude.stops() == []


def test_a_run_that_prints_only_its_answer_prints_only_its_last_answer(claude):
    claude.gates("[limits]\nmax_blocks = 1\n" + READY)
    claude.install()
    ran = claude.run(
        [Say("Done!"), Say("It cannot be.")], line=[str(claude.program), "-p", "do it"]
    )
    assert (ran.code, ran.out, ran.err) == (0, "It cannot be.\n", "")
    assert claude.outcomes() == ["blocked", "capped"]
