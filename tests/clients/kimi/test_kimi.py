"""Kimi Code's own ways: one send-back in a turn, for subagents too; and `notyet with`."""

import pytest

from clients.conftest import only, world_of
from clients.model.script import Run, Say, Spawn
from clients.test_with import Supervised

READY = '[gates.ready]\nrun = "test -e ready"\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
# A shorter report makes Kimi ask its subagent for more.
REPORT = "\n".join(f"- part {n} is written, and nothing else is to be done" for n in range(8))

kimi = only("kimi")


class SupervisedKimi(Supervised):
    """Kimi Code under `notyet with`."""

    NAMES_THREADS = True  # so its story is compared as it is

    def line(self, prompt, args, url):
        return [*super().line(prompt, args, url)[:4], *args]


@kimi
@pytest.mark.full
@pytest.mark.rule("B8", "B11")
def test_every_turn_has_one_send_back_and_the_last_is_said_to_be_overridden(host):
    host.gates("[limits]\nmax_blocks = 5\n" + NEVER)
    host.install()
    host.is_one_session = True
    first = host.run([Say("One!"), Say("One.")])
    second = host.run([Say("Two!"), Say("Two.")], args=host.RESUME)
    assert (first.text, second.text) == ("One.", "Two.")
    assert host.outcomes() == ["overridden", "blocked"]
    assert [(stop.count, stop.max_blocks) for stop in host.stops()] == [(1, 1), (1, 1)]
    for ran in (first, second):
        (prompt,) = host.WIRE.prompts(ran.model.asked()[1].news)
        assert "send-back 1 of 1" in prompt


@kimi
@pytest.mark.full
@pytest.mark.rule("C8")
def test_a_subagent_is_told_from_its_parent_and_sent_back_once(host):
    host.gates(READY + 'for = ["coder"]\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is written.")],
            "writer": [Say(f"Done.\n{REPORT}"), Run("touch ready"), Say(f"Right.\n{REPORT}")],
        }
    )
    assert (ran.code, ran.text) == (0, "It is written."), ran.err
    assert any("Right." in text for text in ran.model.asked()[-1].results)
    (stop,) = host.stops()
    assert (stop.outcome, stop.scope, stop.agent_type) == ("blocked", "subagent", "coder")


@pytest.mark.full
@pytest.mark.parametrize("host", ["kimi"])
def test_with_sends_it_back_as_often_as_our_limit_says(host, tmp_path):
    with world_of(host, tmp_path, SupervisedKimi).scenario() as world:
        world.gates("[limits]\nmax_blocks = 3\n" + READY)
        world.install()
        ran = world.run([Say("Done."), Say("Still."), Run("touch ready"), Say("Now it is.")])
        assert (ran.code, ran.text) == (0, "Now it is."), ran.err
        assert world.outcomes() == ["blocked", "blocked", "passed"]
        assert len(world.left_to_us()) == 3
