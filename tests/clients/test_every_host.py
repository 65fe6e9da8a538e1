"""The contract: what holds with every host, proven on its real program.

Two or three runs of each host are tried always; the rest of the contract needs FULL=1.
"""

import pytest

from clients.killed_hook import run_with_killed_hook
from clients.model.script import Fail, Run, Say, Spawn
from notyet.hosts import host_named

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
LIMITED = "[limits]\nmax_blocks = {0}\nstuck_after = 0\n"
REPORT = "\n".join(["Report:", *(f"- part {n} is written" for n in range(1, 6))])
# Two sessions wait for each other, so that they are under way at the same time.
TOGETHER = """
[gates.own]
timeout = "40s"
run = '''
touch "came-$NOTYET_SESSION_ID"
while [ "$(ls -d came-* | wc -l)" -lt 2 ]; do sleep 0.05; done
[ "$NOTYET_BLOCK_COUNT" -ge 1 ]
'''
"""


@pytest.mark.rule("A11", "N2")
def test_an_agent_is_sent_back_with_the_reason_until_its_gates_pass(host):
    host.gates(READY)
    host.install()
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == host.as_asked("blocked", "passed")
    (prompt,) = host.WIRE.prompts(ran.model.asked()[1].news)
    assert "FAILED ready (exit 1" in prompt
    assert "Make it ready." in prompt
    assert not host.WIRE.prompts(ran.model.asked()[2].news)


@pytest.mark.rule("B1", "B3")
def test_an_agent_whose_gates_never_pass_delivers_its_answer_at_our_limit(host):
    most = min(2, host.MOST_BLOCKS or 2)
    host.gates(LIMITED.format(2) + NEVER)
    host.install()
    ran = host.run([Say(f"Try {n}.") for n in range(most + 1)])
    assert (ran.code, ran.text) == (0, f"Try {most}."), ran.err
    assert host.outcomes() == host.as_asked(*["blocked"] * most, "capped")
    last = "the only send-back" if host.ASKS_ONCE else "the last"
    assert last in host.WIRE.prompts(ran.model.asked()[most].news)[0]
    assert host.tells_user(ran, "NOT PASSED: never still failing")


@pytest.mark.rule("E2", "B11")
def test_a_hook_that_crashes_lets_the_agent_go_and_the_next_stop_is_gated(host):
    crashed = run_with_killed_hook(host)
    assert (crashed.code, crashed.text) == (0, "Done."), crashed.err
    assert len(crashed.model.requests) == 1
    assert host.run([Say("Again.")]).text == "Again."
    assert host.outcomes() == ["asking", "passed"]


def test_uninstalling_leaves_every_settings_file_as_it_was(host):
    host.gates(NEVER)
    before = host.settings_tree()
    host.install()
    installed = host.settings_tree()
    changed = {path for path in before | installed if before.get(path) != installed.get(path)}
    assert changed
    ran = host.run([Say("Done!"), Say("BLOCKED: it is never right.")])
    assert host.outcomes()[0] == "blocked", ran.err
    host.uninstall()
    after = host.settings_tree()
    assert {path: after.get(path) for path in changed} == {
        path: before.get(path) for path in changed
    }
    ungated = host.run([Say("Done.")])
    assert (ungated.code, ungated.text) == (0, "Done.")
    assert len(host.stops()) == len(host.as_asked(*ran.model.said()))
    host.runs.remove(ungated)  # of which the ledger rightly knows nothing


@pytest.mark.full
@pytest.mark.rule("C4")
def test_an_error_of_the_model_is_no_stop_that_gates_are_run_for(host):
    host.gates('[gates.asked]\nrun = "touch asked; exit 1"\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run({"main": lambda _n, _request: Fail(400)})  # however often it tries
    assert host.shows_error(ran), ran.out
    assert not (host.project / "asked").exists()
    assert "blocked" not in host.outcomes()


@pytest.mark.full
@pytest.mark.rule("B4")
def test_a_session_that_is_resumed_is_gated_as_the_same_session(host):
    if not host.RESUME:
        pytest.skip("it does not resume sessions without its vendor's server")
    host.gates(LIMITED.format(1) + READY)
    host.install()
    host.is_one_session = True
    for words, args in (("One", ()), ("Two", host.RESUME)):
        ran = host.run([Say(f"{words}!"), Run("touch ready"), Say(f"{words}.")], args=args)
        assert (ran.code, ran.text) == (0, f"{words}."), ran.err
        (host.project / "ready").unlink()
    assert "One." in str(ran.model.asked()[0].raw)
    again = ["overridden", "blocked"] if host.ASKS_ONCE else ["blocked", "passed"] * 2
    assert host.outcomes() == again
    assert len({stop.session_id for stop in host.stops()}) == 1


@pytest.mark.full
@pytest.mark.rule("N1")
def test_an_agent_that_changes_nothing_since_its_start_is_not_checked(host):
    if not host_named(host.HOST).starts:
        pytest.skip("it does not tell when a session starts")
    host.gates('[gates.tests]\nrun = "exit 1"\nwhen = "changed"\n')
    host.install()
    ran = host.run([Say("It is a project.")])
    assert (ran.code, ran.text) == (0, "It is a project."), ran.err
    assert [(stop.outcome, stop.why) for stop in host.stops()] == [("skipped", "unchanged")]


@pytest.mark.full
@pytest.mark.rule("A9")
def test_two_sessions_in_one_project_are_counted_each_for_itself(host):
    host.gates(TOGETHER)
    host.install()
    with (
        host.start([Say("A: done!"), Say("A: done.")]) as one,
        host.start([Say("B: done!"), Say("B: done.")]) as two,
    ):
        first, second = one.wait(), two.wait()
    assert (first.text, second.text) == ("A: done.", "B: done.")
    assert sorted(host.outcomes()) == sorted(host.as_asked("blocked", "passed") * 2)
    assert len({stop.session_id for stop in host.stops()}) == 2


@pytest.mark.full
@pytest.mark.rule("E9")
def test_a_gate_that_outlives_the_hosts_timeout_is_ended_and_the_agent_sent_back(host):
    host.gates('[gates.slow]\nrun = "sleep 1000"\ntimeout = "10m"\n')
    host.install("--timeout", "5s")
    ran = host.run([Say("Done!"), Say("BLOCKED: it is too slow.")])
    assert (ran.code, ran.text) == (0, "BLOCKED: it is too slow."), ran.err
    (prompt,) = host.WIRE.prompts(ran.model.asked()[1].news)
    assert "all that its host allows: it hangs or is too slow." in prompt
    assert host.outcomes()[0] == "blocked"


@pytest.mark.full
@pytest.mark.rule("C8", "K12")
def test_a_subagent_is_sent_back_and_its_parent_gets_the_full_report(host):
    if not host.HAS_SUBAGENTS:
        is_held = host_named(host.HOST).holds.get("subagent", "no") != "no"
        pytest.skip("it has a test of its own" if is_held else "its subagents are not gated")
    host.gates(READY + 'for = "subagents"\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is written.")],
            "writer": [Say("Done."), Run("touch ready"), Say(REPORT)],
        }
    )
    assert (ran.code, ran.text) == (0, "It is written."), ran.err
    assert len(host.WIRE.prompts(ran.model.asked("writer")[1].news)) == 1
    (received,) = [text for text in ran.model.asked()[-1].results if "Report:" in text]
    assert all(line in received for line in REPORT.splitlines())
    assert [stop.scope for stop in host.stops()] == ["subagent", "subagent"]
    assert host.outcomes() == ["blocked", "passed"]
