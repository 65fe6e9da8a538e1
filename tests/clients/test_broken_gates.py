"""Gates that misbehave: the agent is sent back with the reason, and nothing is left running."""

import pytest

from clients.conftest import newest
from clients.killed_hook import run_with_killed_hook
from clients.model.script import Say
from commands import until

GATE = "[gates.bad]\nwhen = \"always\"\ntimeout = \"{timeout}\"\nrun = '''\n{run}\n'''\n"


def broken(client, run, timeout="30s"):
    """Let an agent meet one gate; return what became of the run."""
    client.gates(GATE.format(run=run, timeout=timeout))
    client.install()
    return client.run([Say("Done.")])


def assert_sent_back(client, words):
    """Let an agent meet a broken gate twice; check what it reads."""
    ran = client.run([Say("Done."), Say("BLOCKED: the gate is broken.")])
    assert (ran.code, ran.text) == (0, "BLOCKED: the gate is broken.")
    assert client.outcomes() == ["blocked", "handed_back"]
    (prompt,) = client.WIRE.prompts(ran.model.asked()[1].news)
    assert words in prompt


@pytest.mark.rule("A6", "E10")
@newest
def test_a_gate_that_crashes_sends_the_agent_back_with_the_signal(client):
    client.gates(GATE.format(run="kill -SEGV $$", timeout="30s"))
    client.install()
    assert_sent_back(client, "It was ended by signal 11.")


@pytest.mark.rule("A6", "N3")
@newest
def test_a_gate_that_need_not_run_lets_the_agent_go_and_its_user_is_told(client):
    client.gates(GATE.format(run="kill -SEGV $$", timeout="30s") + 'if_broken = "allow"\n')
    client.install()
    ran = client.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert client.outcomes() == ["failed_open"]
    assert client.tells_user(ran, "NOT CHECKED: bad")


@pytest.mark.rule("A6", "E2")
@newest
def test_a_gate_that_hangs_and_ignores_its_end_is_killed_and_blocks(client):
    run = "trap '' TERM INT HUP; while :; do sleep 1; done"
    client.gates(GATE.format(run=run, timeout="1s"))
    client.install()
    assert_sent_back(client, "It did not finish within 1 s: it hangs or is too slow.")


@pytest.mark.rule("E9")
@newest
def test_a_gate_that_outlives_the_hosts_patience_is_cut_before_the_host_loses_it(client):
    client.gates(GATE.format(run="sleep 1000", timeout="10m"))
    client.install("--timeout", "5s")
    assert_sent_back(client, "all that its host allows: it hangs or is too slow.")


@pytest.mark.rule("E4", "E5")
@newest
def test_a_gate_that_floods_is_told_in_a_few_words(client):
    flood = "head -c 50000000 /dev/urandom; yes it is broken | head -c 50000000; exit 1"
    client.gates(GATE.format(run=flood, timeout="60s"))
    client.install()
    ran = client.run([Say("Done!"), Say("BLOCKED: it is broken.")])
    assert ran.text == "BLOCKED: it is broken."
    (prompt,) = client.WIRE.prompts(ran.model.asked()[1].news)
    assert len(prompt) < 4000
    assert "it is broken" in prompt
    assert all(letter.isprintable() or letter in "\n\t" for letter in prompt)


@pytest.mark.rule("E2", "E3")
@newest
def test_a_gate_that_forks_leaves_nothing_running(client):
    run = "setsid sleep 1000 & (sleep 1000 &) ; nohup sleep 1000 & exit 0"
    ran = broken(client, run)
    assert (ran.code, ran.text) == (0, "Done.")
    assert client.outcomes() == ["passed"]


@pytest.mark.rule("E2")
@newest
def test_a_gate_that_kills_its_parent_costs_only_its_own_check(client):
    ran = broken(client, "kill -KILL $PPID; sleep 1000")
    assert (ran.code, ran.text) == (0, "Done.")
    assert client.outcomes() == ["asking"]
    again = client.run([Say("Once more.")])
    assert again.text == "Once more."
    assert "passed" not in client.outcomes()


@pytest.mark.rule("E2", "B11")
def test_a_hook_that_is_killed_lets_the_agent_go_and_the_next_one_is_gated_again(client):
    assert run_with_killed_hook(client).text == "Done."
    assert client.run([Say("Again.")]).text == "Again."
    assert client.outcomes() == ["asking", "passed"]


@pytest.mark.rule("E2")
def test_a_program_that_is_killed_while_a_gate_runs_takes_the_gate_with_it(client):
    client.gates(GATE.format(run="touch begun; sleep 1000 & sleep 1000", timeout="10m"))
    client.install()
    with client.start([Say("Done!")]) as under_way:
        assert until((client.project / "begun").exists, 60)
        under_way.process.kill()
        under_way.wait()
    assert until(lambda: not client.processes(), 20), client.processes()
    assert client.outcomes() in (["skipped"], ["asking"])
