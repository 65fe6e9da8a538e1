"""Subagents of Codex: their types, their reports, and children that outlive a turn."""

import json

import pytest

from clients.model import responses
from clients.model.script import Fail, Say, Spawn
from commands import until

REPORT = '[gates.report]\nrun = "test -e fixed || { touch fixed; exit 1; }"\n'


@pytest.mark.rule("K12")
def test_a_child_that_was_sent_back_gives_its_parent_the_full_report(codex):
    codex.gates(REPORT + 'for = "subagents"\n')
    codex.install()
    full = "The complete report.\n" + "line\n" * 5_000 + "The end."
    script = {
        "main": [Spawn("[actor: kid] Look."), Say("done")],
        "kid": [Say("draft"), Say(full)],
    }
    codex.ungated = {"main"}
    ran = codex.run(script)
    (prompt,) = responses.prompts(ran.model.asked("kid")[1].news)
    assert "Your report was not delivered." in prompt
    assert "send your complete report again" in prompt
    # What its tool returns is cut by Codex, what it is told afterwards is not.
    assert "The end." in ran.model.asked()[1].results[-1]
    told = [text for request in ran.model.requests + ran.model.asides for text in request.news]
    assert any(json.dumps(full) in text for text in told)
    assert "draft" not in json.dumps(ran.model.asked()[1].raw["input"])
    assert ran.text == "done"
    assert "hook: Subagent" not in ran.err  # `codex exec` shows nothing of it
    first, second = codex.stops()
    assert (first.outcome, second.outcome) == ("blocked", "passed")
    assert first.agent_type == "default"
    assert first.agent_id != first.session_id


def test_a_child_of_the_newer_kind_is_gated_as_well(codex):
    codex.gates(REPORT + 'for = "all"\n')
    codex.install()
    script = {
        "main": [Spawn("[actor: kid] Look."), Say("done")],
        "kid": [Say("draft"), Say("The complete report.")],
    }
    ran = codex.run(script, args=("--enable", "multi_agent_v2"))
    assert ran.text == "done"
    assert "The complete report." in ran.told()[-1]
    assert "draft" not in json.dumps(ran.model.asked()[1].raw["input"])
    assert codex.outcomes() == ["blocked", "passed", "passed"]
    assert [stop.agent_type for stop in codex.stops()] == ["default", "default", ""]


def test_two_children_at_once_are_counted_apart(codex):
    codex.gates(
        "[limits]\nmax_blocks = 2\nstuck_after = 0\n"
        '[gates.no]\nrun = "sleep 0.2; exit 1"\nfor = "subagents"\n'
    )
    codex.install()
    both = ["a", "b"]
    script = {
        "main": [
            Spawn("[actor: a] Look.", background=True),
            Spawn("[actor: b] Look.", background=True),
            Say("done", once=lambda: codex.outcomes().count("capped") == len(both)),
        ],
        "a": [Say("a1"), Say("a2"), Say("a3")],
        "b": [Say("b1"), Say("b2"), Say("b3")],
    }
    codex.ungated = {"main"}
    ran = codex.run(script)
    assert ran.text == "done"
    for actor in both:
        own = [stop for stop in codex.stops() if stop.last_message.startswith(actor)]
        assert [stop.outcome for stop in own] == ["blocked", "blocked", "capped"]
        assert [stop.count for stop in own] == [1, 2, 2]


def test_a_child_whose_parent_ends_first_leaves_nothing_behind(codex):
    codex.gates(
        '[gates.slow]\nrun = "touch asked; sleep 50; exit 1"\nfor = "subagents"\n'
        '[gates.mine]\nrun = "true"\n'
    )
    codex.install()
    asked = codex.project / "asked"
    script = {
        "main": [Spawn("[actor: kid] Look.", background=True), Say("done", once=asked.exists)],
        "kid": [Say("report")],
    }
    ran = codex.run(script)
    assert ran.text == "done"
    assert until(lambda: not codex.processes(), 10)
    child, mine = codex.stops()
    assert child.outcome in {"asking", "skipped"}
    assert (mine.scope, mine.outcome) == ("agent", "passed")


@pytest.mark.rule("B4")
def test_a_child_that_is_given_more_to_do_has_a_new_turn(codex):
    codex.gates(
        '[limits]\nmax_blocks = 1\nstuck_after = 0\n[gates.no]\nrun = "exit 1"\nfor = "subagents"\n'
    )
    codex.install()
    sent = []

    def parent(n, request):
        if n == 0:
            return Spawn("[actor: kid] Look.")
        if n == 1:
            sent.append(json.loads(request.results[0])["agent_id"])
            return responses.Tell(sent[0], "Look again.")
        return Say("done") if n == 2 else Fail(500)

    script = {"main": parent, "kid": [Say("a"), Say("b"), Say("c"), Say("d")]}
    codex.ungated = {"main"}
    ran = codex.run(script)
    assert "d" in ran.model.asked()[2].results[-1]
    assert codex.outcomes() == ["blocked", "capped", "blocked", "capped"]
    assert [stop.turn for stop in codex.stops()] == [1, 1, 2, 2]
    assert len({stop.agent_id for stop in codex.stops()}) == 1


@pytest.mark.rule("C7")
def test_a_review_is_not_a_stop(codex):
    codex.gates('[gates.no]\nrun = "exit 1"\nfor = "all"\n')
    codex.install()
    found = {"findings": [], "overall_correctness": "patch is correct"}
    found |= {"overall_explanation": "All is well.", "overall_confidence_score": 1.0}
    codex.ungated = {"main"}
    ran = codex.run([Say(json.dumps(found))], args=("review",))
    assert ran.text == "All is well."
    assert ran.model.asked()[0].headers["x-openai-subagent"] == "review"
    assert "hook:" not in ran.err
    assert codex.stops() == []
