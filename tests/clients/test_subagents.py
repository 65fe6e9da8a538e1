"""Subagents meet gates of their own, and their parents get what they are owed: the whole report."""

import pytest

from clients.model.script import Run, Say, Spawn

REPORT = "\n".join(["Report:", *(f"- part {n} is written" for n in range(1, 6))])
READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\nfor = {0}\n'


@pytest.mark.rule("C8", "K12")
def test_a_subagent_is_sent_back_and_its_parent_receives_the_full_report(client):
    client.gates(READY.format('"subagents"'))
    client.install()
    client.ungated = {"main"}
    ran = client.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is written.")],
            "writer": [Say("Done."), Run("touch ready"), Say(REPORT)],
        }
    )
    assert ran.text == "It is written."
    (prompt,) = client.WIRE.prompts(ran.model.asked("writer")[1].news)
    assert "complete report" in prompt
    (received,) = [text for text in ran.model.asked()[-1].results if "Report:" in text]
    assert all(line in received for line in REPORT.splitlines())
    assert [stop.scope for stop in client.stops()] == ["subagent", "subagent"]
    assert client.outcomes() == ["blocked", "passed"]


@pytest.mark.rule("D1", "D2")
def test_a_gate_for_a_kind_of_subagents_leaves_the_others_alone(client):
    for name in ("coder", "reader"):
        client.define_agent(name)
    client.gates(READY.format('["cod*"]'))
    client.install()
    client.ungated = {"main", "reads"}
    ran = client.run(
        {
            "main": [
                Spawn("[actor: reads] Read it.", "reader"),
                Spawn("[actor: codes] Code it.", "coder"),
                Say("Both did it."),
            ],
            "reads": [Say("It is read.")],
            "codes": [Say("Done."), Run("touch ready"), Say("It is coded.")],
        }
    )
    assert ran.text == "Both did it."
    assert [stop.agent_type for stop in client.stops()] == ["coder", "coder"]
    assert client.outcomes() == ["blocked", "passed"]


@pytest.mark.rule("B1")
def test_a_subagent_and_its_parent_have_budgets_of_their_own(client):
    client.gates(
        "[limits]\nmax_blocks = 1\nstuck_after = 0\n"
        '[gates.no]\nrun = "exit 1"\nwhen = "always"\nfor = "all"\n'
    )
    client.install()
    ran = client.run(
        {
            "main": [Spawn("[actor: child] Do it."), Say("Done."), Say("Still done.")],
            "child": [Say("Mine."), Say("Mine is all there is.")],
        }
    )
    assert ran.text == "Still done."
    assert client.outcomes() == ["blocked", "capped", "blocked", "capped"]
    assert any("Mine is all there is." in text for text in ran.model.asked()[-1].results)
