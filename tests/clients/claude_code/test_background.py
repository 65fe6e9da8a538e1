"""Agents in the background: the main one is not held while others of its session are at work."""

import pytest

from clients.conftest import newest_claude
from clients.model.script import Run, Say, Spawn
from commands import until

READY = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\nfor = "all"\n'


def stopped(claude, words):
    """Tell whether an agent with these words at its end is in the ledger."""
    return lambda: any(stop.last_message == words for stop in claude.stops())


@pytest.mark.rule("B10")
def test_the_main_agent_is_gated_only_when_its_background_subagent_is_done(claude):
    claude.gates(READY)
    claude.install()
    ran = claude.run(
        {
            "main": [
                Spawn("[actor: worker] Do it.", background=True),
                Say("It is under way."),
                Say("It is done."),
            ],
            "worker": [
                Say("Done!", once=stopped(claude, "It is under way.")),
                Run("touch ready"),
                Say("All of it is done."),
            ],
        }
    )
    assert ran.text == "It is done."
    told = [(stop.last_message, stop.outcome, stop.why) for stop in claude.stops()]
    assert told[0] == ("It is under way.", "skipped", "background")
    assert [row[:2] for row in told[1:]] == [
        ("Done!", "blocked"),
        ("All of it is done.", "passed"),
        ("It is done.", "passed"),
    ]
    assert "All of it is done." in "\n".join(ran.model.asked()[-1].texts)


@pytest.mark.rule("B10")
def test_the_main_agent_is_gated_anyway_where_the_project_wants_it(claude):
    claude.gates("[limits]\nwait_for_background = false\n" + READY.replace("all", "main"))
    claude.install()
    claude.ungated = {"worker"}
    ran = claude.run(
        {
            "main": [
                Spawn("[actor: worker] Do it.", background=True),
                Say("It is under way."),
                Run("touch ready"),
                Say("Ready."),
                Say("It is done."),
            ],
            "worker": [Say("Mine is.", once=stopped(claude, "Ready."))],
        }
    )
    assert ran.text == "It is done."
    told = [(stop.last_message, stop.outcome) for stop in claude.stops()]
    assert told == [
        ("It is under way.", "blocked"),
        ("Ready.", "passed"),
        ("It is done.", "passed"),
    ]


@pytest.mark.rule("B10")
def test_a_shell_in_the_background_holds_up_no_gate(claude):
    claude.gates(READY)
    claude.install()
    steps = [
        Run("while ! [ -e go ]; do sleep 0.05; done", background=True),
        Say("Done!"),
        Run("touch ready"),
        Say("Ready."),
        Say("It came back."),
    ]
    with claude.start(steps) as under_way:
        assert until(stopped(claude, "Ready."), 60)
        (claude.project / "go").touch()
        ran = under_way.wait()
    assert ran.text == "It came back."
    assert claude.outcomes() == ["blocked", "passed", "passed"]


@pytest.mark.rule("B1", "B13")
@newest_claude
def test_subagents_that_come_back_one_by_one_buy_no_endless_blocks(claude):
    claude.gates(
        "[limits]\nmax_blocks = 1\nstuck_after = 0\nsession_ceiling = 2\n"
        '[gates.never]\nrun = "echo never; exit 1"\nwhen = "always"\n'
    )
    claude.install()
    claude.ungated = {"one", "two", "three"}

    def main(n, _request):
        names = ("one", "two", "three")
        if n < len(names):
            return Spawn(f"[actor: {names[n]}] Do it.", background=True)
        return Say(f"Answer {n}.")

    def after(words):
        return lambda: len(claude.stops()) >= words

    ran = claude.run(
        {
            "main": main,
            "one": [Say("One is.", once=after(1))],
            "two": [Say("Two is.", once=after(2))],
            "three": [Say("Three is.", once=after(3))],
        }
    )
    assert ran.text.startswith("Answer")
    assert claude.outcomes().count("blocked") <= 2
    assert claude.outcomes()[-1] != "blocked"
