"""OpenHands' command line: its hooks, and `notyet with`."""

import pytest

from clients.conftest import only, world_of
from clients.model.script import Run, Say
from clients.test_with import Supervised

READY = '[gates.ready]\nrun = "test -e ready"\nhint = "Make it ready."\n'
pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]


class SupervisedOpenHands(Supervised):
    """OpenHands under `notyet with`."""

    NAMES_THREADS = True  # so its story is compared as it is

    def line(self, prompt, args, url):
        return [*super().line(prompt, args, url)[:4], *args, "--", "--override-with-envs"]

    def answer(self, out):
        return out.strip()


@only("openhands-cli")
@pytest.mark.rule("A11", "N2")
def test_the_hooks_of_the_command_line_hold_its_agent(host):
    host.gates(READY)
    host.install()
    ran = host.run([Say("Done!"), Run("touch ready"), Say("Now it is.")])
    assert (ran.code, ran.text) == (0, "Now it is."), ran.err
    assert host.outcomes() == ["blocked", "passed"]
    (prompt,) = host.WIRE.prompts(ran.model.asked()[1].news)
    assert "Make it ready." in prompt


@pytest.mark.rule("E11")
@pytest.mark.parametrize("host", ["openhands-cli"])
def test_with_sends_it_back_in_the_same_conversation_until_it_passes(host, tmp_path):
    with world_of(host, tmp_path, SupervisedOpenHands).scenario() as world:
        world.gates(READY)
        world.install()
        ran = world.run([Say("Done."), Run("touch ready"), Say("Now it is.")])
        assert (ran.code, ran.text) == (0, "Now it is."), ran.err
        assert world.outcomes() == ["blocked", "passed"]
        assert "do it" in ran.model.asked()[-1].texts
        assert len(world.left_to_us()) == 2
