"""One agent meets the gates: what it is told, how often, and what its user gets in the end."""

import threading

import pytest

from clients.conftest import newest
from clients.model.script import Run, Say
from clients.world import NOTYET
from commands import until

READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\nhint = "Make it ready."\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\nwhen = "always"\n'
PATIENT = "[limits]\nmax_blocks = {0}\nstuck_after = 0\n"
# Each gate waits for the others, so they pass this point only if they run at the same time.
TOGETHER = """
[gates.{0}]
when = "always"
timeout = "30s"
run = '''
touch here-{0}
while ! [ -e here-one -a -e here-two -a -e here-three ]; do sleep 0.05; done
{1}
'''
"""


@pytest.mark.rule("A8")
def test_an_agent_whose_gates_pass_is_let_go_at_once(client):
    client.gates(READY)
    client.install()
    ran = client.run([Run("touch ready"), Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert client.outcomes() == ["passed"]
    assert len(ran.model.requests) == 2


@pytest.mark.rule("A11", "N2")
def test_the_model_receives_the_prompt_and_the_agent_goes_on_until_it_is_let_go(client):
    client.gates(READY)
    client.install()
    ran = client.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is.")
    assert client.outcomes() == ["blocked", "passed"]
    (prompt,) = client.WIRE.prompts(ran.model.asked()[1].news)
    assert "FAILED ready (exit 1" in prompt
    assert "Make it ready." in prompt
    assert "send-back 1 of 3" in prompt
    assert not client.WIRE.prompts(ran.model.asked()[2].news)


@pytest.mark.rule("A1", "A4")
@newest
def test_three_gates_are_asked_at_once_and_all_their_reasons_are_told(client):
    client.gates(
        "[limits]\njobs = 3\n"
        + TOGETHER.format("one", "test -e ready || { echo no one; exit 1; }")
        + TOGETHER.format("two", "test -e ready || { echo no two; exit 1; }")
        + TOGETHER.format("three", "exit 0")
    )
    client.install()
    ran = client.run([Say("Done!"), Run("touch ready"), Say("Right.")])
    assert ran.text == "Right."
    assert client.outcomes() == ["blocked", "passed"]
    (prompt,) = client.WIRE.prompts(ran.model.asked()[1].news)
    assert prompt.index("FAILED one") < prompt.index("FAILED two")
    assert "no one" in prompt
    assert "no two" in prompt
    assert "FAILED three" not in prompt
    assert [report.status for report in client.stops()[0].reports] == [
        "blocked",
        "blocked",
        "allowed",
    ]


@pytest.mark.rule("K15", "A3")
def test_a_gate_that_halts_ends_the_turn_and_the_answer_is_delivered(client):
    halt = """'{"decision": "halt", "reason": "enough for today"}'"""
    client.gates(f'[gates.budget]\nrun = """echo {halt}"""\nwhen = "always"\n' + NEVER)
    client.install()
    ran = client.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert client.outcomes() == ["halted"]


@pytest.mark.rule("B1", "B3")
def test_a_gate_that_always_blocks_gives_up_and_the_final_answer_is_delivered(client):
    client.gates(PATIENT.format(3) + NEVER)
    client.install()
    ran = client.run([Say(f"Try {n}.") for n in range(4)])
    assert (ran.code, ran.text) == (0, "Try 3.")
    assert client.outcomes() == ["blocked", "blocked", "blocked", "capped"]
    assert [stop.count for stop in client.stops()] == [1, 2, 3, 3]
    assert "the last" in client.WIRE.prompts(ran.model.asked()[3].news)[0]
    assert client.tells_user(ran, "NOT PASSED: never still failing; 3 of 3 send-backs used")


@pytest.mark.rule("B1")
@newest
def test_tools_between_the_send_backs_buy_no_more_of_them(client):
    client.gates(PATIENT.format(2) + NEVER)
    client.install()
    ran = client.run([Say("a"), Run("echo 1 > x"), Say("b"), Run("echo 2 > x"), Say("c")])
    assert ran.text == "c"
    assert client.outcomes() == ["blocked", "blocked", "capped"]


@pytest.mark.rule("B6")
@newest
def test_an_agent_that_fails_three_times_alike_and_changes_nothing_is_let_go_earlier(client):
    client.gates("[limits]\nmax_blocks = 6\n" + NEVER)
    client.install()
    ran = client.run([Say("a"), Say("b"), Say("c")])
    assert (ran.code, ran.text) == (0, "c")
    assert client.outcomes() == ["blocked", "blocked", "stuck"]
    assert client.tells_user(ran, "never failed 3 times with no file changed")


@pytest.mark.rule("B14")
def test_an_agent_that_says_it_is_blocked_hands_the_matter_to_its_user(client):
    client.gates(NEVER)
    client.install()
    ran = client.run([Say("Done!"), Say("BLOCKED: the registry needs a password.")])
    assert ran.text == "BLOCKED: the registry needs a password."
    assert client.outcomes() == ["blocked", "handed_back"]
    assert client.tells_user(ran, "NOT PASSED: the agent says it needs you")


@pytest.mark.rule("N5")
@newest
def test_a_config_that_the_agent_edits_changes_nothing_until_a_person_trusts_it(client):
    client.gates(READY)
    client.install()
    ran = client.run(
        [Run("echo '[gates]' > notyet.toml"), Say("Done!"), Run("touch ready"), Say("Well.")]
    )
    assert ran.text == "Well."
    assert client.outcomes() == ["blocked", "passed"]
    assert client.tells_user(ran, "changed since it was trusted")


@pytest.mark.rule("N5")
@newest
def test_an_agent_cannot_trust_what_it_wrote(client):
    client.gates(READY)
    client.install()
    trust = f"echo '[gates]' > notyet.toml; {NOTYET} trust --yes; true"
    ran = client.run([Run(trust), Say("Done!"), Run("touch ready"), Say("Well.")])
    assert "an agent may not do this" in ran.model.asked()[1].results[-1]
    assert client.outcomes() == ["blocked", "passed"]


def test_an_agent_is_no_longer_gated_once_the_hook_is_uninstalled(client):
    client.gates(NEVER)
    client.install()
    client.run([Say("a"), Say("BLOCKED: b")])
    assert client.outcomes() == ["blocked", "handed_back"]
    client.uninstall()
    after = client.run([Say("Done.")])
    assert after.text == "Done."
    assert len(client.stops()) == 2
    client.runs.remove(after)  # of which the ledger rightly knows nothing


@pytest.mark.rule("A9")
@newest
def test_two_agents_in_one_project_are_counted_each_for_itself(client):
    client.gates("""
[gates.own]
when = "always"
timeout = "40s"
run = '''
touch "came-$NOTYET_SESSION_ID"
while [ "$(ls -d came-* | wc -l)" -lt 2 ]; do sleep 0.05; done
[ "$NOTYET_BLOCK_COUNT" -ge 2 ]
'''
""")
    client.install()
    steps = ["Done!", "Still.", "Really."]
    with (
        client.start([Say(f"A: {words}") for words in steps]) as one,
        client.start([Say(f"B: {words}") for words in steps]) as two,
    ):
        first, second = one.wait(), two.wait()
    assert (first.text, second.text) == ("A: Really.", "B: Really.")
    assert sorted(client.outcomes()) == ["blocked"] * 4 + ["passed"] * 2
    assert len({stop.session_id for stop in client.stops()}) == 2


@pytest.mark.rule("C4")
def test_a_user_who_interrupts_the_working_agent_has_no_gate_asked(client):
    client.gates('[gates.asked]\nrun = "touch asked"\nwhen = "always"\n')
    client.install()
    client.ungated = {"main"}
    is_over = threading.Event()
    with client.start([Say("Never said.", once=is_over.is_set)]) as under_way:
        assert until(lambda: under_way.model.requests, 60)
        under_way.interrupt()
        ran = under_way.wait()
        is_over.set()
    assert ran.text == ""
    assert client.stops() == []
    assert not (client.project / "asked").exists()


@pytest.mark.rule("C4")
def test_a_user_who_interrupts_during_a_gate_ends_the_gate_and_the_turn(client):
    client.gates("""
[gates.long]
run = "touch begun; sleep 1000 & sleep 1000"
when = "always"
""")
    client.install()
    with client.start([Say("Done!")]) as under_way:
        assert until((client.project / "begun").exists, 60)
        under_way.interrupt()
        ran = under_way.wait()
    assert len(ran.model.requests) == 1
    assert client.outcomes() in (["skipped"], ["asking"])  # as the hook was given time, or not
