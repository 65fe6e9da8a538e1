"""What is special about Qwen Code: subagents in the background, and a cap of its own."""

import pytest

from clients.conftest import only
from clients.model.script import Run, Say, Spawn

NEVER = '[gates.never]\nrun = "echo never; exit 1"\n'
READY = '[gates.ready]\nrun = "test -e ready"\nfor = "all"\n'
ENDLESS = "[limits]\nmax_blocks = 30\nstuck_after = 0\n"


def stopped(host, words):
    """Return a condition: an agent with these words at its end is in the ledger."""
    return lambda: any(stop.last_message == words for stop in host.stops())


@pytest.mark.full
@pytest.mark.rule("B10")
@only("qwen")
def test_the_main_agent_is_gated_only_when_its_background_subagent_is_done(host):
    host.gates(READY)
    host.install()
    ran = host.run(
        {
            "main": [
                Spawn("[actor: worker] Do it.", background=True),
                Say("It is under way."),
                Say("It is done."),
            ],
            "worker": [
                Say("Done!", once=stopped(host, "It is under way.")),
                Run("touch ready"),
                Say("All of it is done."),
            ],
        }
    )
    assert ran.text == "It is done."
    told = [(stop.last_message, stop.outcome, stop.why) for stop in host.stops()]
    assert told[0] == ("It is under way.", "skipped", "background")
    assert [row[:2] for row in told[1:]] == [
        ("Done!", "blocked"),
        ("All of it is done.", "passed"),
        ("It is done.", "passed"),  # the finished subagent is still in its list
    ]
    assert {stop.session_id for stop in host.stops()} == {host.stops()[0].session_id}


@pytest.mark.full
@pytest.mark.rule("B8")
@pytest.mark.parametrize("cap", [8, 3])
@only("qwen")
def test_a_limit_above_its_cap_ends_below_it_and_the_answer_is_delivered(host, cap):
    host.gates(ENDLESS + NEVER)
    host.install()
    environ = {} if cap == 8 else {"QWEN_CODE_STOP_HOOK_BLOCK_CAP": str(cap)}
    ran = host.run([Say(f"Try {n}.") for n in range(1, cap + 1)], **environ)
    assert (ran.code, ran.text) == (0, f"Try {cap}.")
    assert host.outcomes() == ["blocked"] * (cap - 1) + ["capped"]
    assert "overriding" not in ran.err  # it did not come to that


@pytest.mark.full
@pytest.mark.rule("K15")
@only("qwen")
def test_a_gate_that_halts_lets_the_agent_go_and_its_user_is_told_why(host):
    halt = """'{"decision": "halt", "reason": "enough for today"}'"""
    host.gates(f'[gates.budget]\nrun = """echo {halt}"""\n')
    host.install()
    ran = host.run([Say("Done.")])  # a second request would mean that it was sent back
    assert (ran.code, ran.text) == (0, "Done.")
    assert host.outcomes() == ["halted"]
    assert host.tells_user(ran, "enough for today")
