"""Sessions that go on after their first turn."""

import pytest

from clients.conftest import newest_claude
from clients.killed_hook import run_with_killed_hook
from clients.model.script import Run, Say

NEVER = '[gates.never]\nrun = "echo never; exit 1"\nwhen = "always"\n'


def session_of(claude):
    return claude.stops()[-1].session_id


@pytest.mark.rule("B4", "B13")
def test_a_resumed_session_is_a_new_turn_and_its_ceiling_goes_on(claude):
    claude.gates("[limits]\nmax_blocks = 2\nstuck_after = 0\nsession_ceiling = 3\n" + NEVER)
    claude.install()
    claude.run([Say("a"), Say("b"), Say("c")])
    claude.run([Say("d"), Say("e")], args=("--resume", session_of(claude)))
    assert claude.outcomes() == ["blocked", "blocked", "capped", "blocked", "capped"]
    assert len({stop.session_id for stop in claude.stops()}) == 1


@pytest.mark.rule("B11")
@newest_claude
def test_a_stop_whose_hook_was_killed_is_found_when_the_session_goes_on(claude):
    run_with_killed_hook(claude)
    claude.run([Say("Again.")], args=("--resume", session_of(claude)))
    first, second = claude.stops()
    assert (first.outcome, first.why) == ("skipped", "lost")
    assert second.outcome == "passed"


@pytest.mark.rule("B5")
@newest_claude
def test_a_gate_is_told_how_often_the_agent_was_sent_back(claude):
    claude.gates("""
[gates.counts]
run = "echo $NOTYET_BLOCK_COUNT $NOTYET_MAX_BLOCKS $NOTYET_STOP_HOOK_ACTIVE >> told; exit 1"
when = "always"
""")
    claude.install()
    claude.run([Say("a"), Run("echo 1 > x"), Say("b"), Say("BLOCKED: c")])
    told = (claude.project / "told").read_text().splitlines()
    assert told == ["0 3 false", "1 3 true"]
