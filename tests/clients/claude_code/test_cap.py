"""Claude Code overrides its hooks after some blocks, and then loses the answer: we stay below."""

import json

import pytest

from clients.conftest import newest_claude
from clients.model.script import Run, Say

NEVER = '[gates.never]\nrun = "echo never; exit 1"\nwhen = "always"\n'
ENDLESS = "[limits]\nmax_blocks = 30\nstuck_after = 0\n"
CAP = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def tries(count):
    return [Say(f"Try {n}.") for n in range(1, count + 1)]


@pytest.mark.rule("B8")
@pytest.mark.parametrize("reply", ["context", "block"])
def test_a_limit_above_the_cap_ends_below_it_and_the_answer_is_delivered(claude, reply):
    claude.gates(ENDLESS + f'[reply]\nclaude = "{reply}"\n' + NEVER)
    claude.install()
    ran = claude.run(tries(8))
    assert (ran.code, ran.text) == (0, "Try 8.")
    assert claude.outcomes() == ["blocked"] * 7 + ["capped"]
    assert "block-cap" not in ran.out


@pytest.mark.rule("B8")
@pytest.mark.parametrize("place", ["environment", "settings"])
def test_a_lower_cap_is_respected_wherever_it_is_set(claude, place):
    claude.gates(ENDLESS + NEVER)
    claude.install()
    environ = {CAP: "3"} if place == "environment" else {}
    if place == "settings":
        claude.change_settings(env={CAP: "3"})
    ran = claude.run(tries(3), **environ)
    assert ran.text == "Try 3."
    assert claude.outcomes() == ["blocked"] * 2 + ["capped"]


@pytest.mark.rule("B8")
def test_without_a_cap_only_our_own_limit_counts(claude):
    claude.gates(ENDLESS.replace("30", "10") + NEVER)
    claude.install()
    ran = claude.run(tries(11), **{CAP: "0"})
    assert ran.text == "Try 11."
    assert claude.outcomes() == ["blocked"] * 10 + ["capped"]


def test_the_cap_really_is_where_we_think_it_is(claude):
    """The same without notyet: what the rule above protects from."""
    hook = {"type": "command", "command": """echo '{"decision": "block", "reason": "no"}'"""}
    claude.write_settings(hooks={"Stop": [{"hooks": [hook]}]})
    claude.ungated = {"main"}
    ran = claude.run(tries(9))
    assert len(ran.model.requests) == 9
    assert (ran.code, ran.text) == (0, "")


@pytest.mark.rule("B1")
@newest_claude
def test_a_busy_agent_that_resets_the_cap_does_not_reset_our_limit(claude):
    claude.gates("[limits]\nmax_blocks = 5\nstuck_after = 0\n" + NEVER)
    claude.install()
    steps = []
    for n in range(6):
        steps += [Run(f"echo {n} > x"), Say(f"Try {n}.")]
    ran = claude.run(steps)
    assert ran.text == "Try 5."
    assert claude.outcomes() == ["blocked"] * 5 + ["capped"]
    assert json.loads((claude.project / "x").read_text()) == 5
