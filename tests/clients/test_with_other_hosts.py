"""`notyet with` around the hosts whose own tests do not try it."""

import pytest

from clients.conftest import world_of
from clients.model.script import Run, Say
from clients.test_with import Supervised
from clients.world import NOTYET

READY = '[gates.ready]\nrun = "test -e ready"\n'
_OUR_WORDS = ("-p", "run", "--format", "json")  # `notyet with` adds these itself


class SupervisedHost(Supervised):
    """A host under `notyet with`, with the options of its own line that the model needs."""

    NAMES_THREADS = True  # so its story is compared as it is

    def line(self, prompt, args, url):
        words = super(Supervised, self).line(prompt, (), url)[1:]
        own = [word for word in words if word not in (*_OUR_WORDS, prompt)]
        return [str(NOTYET), "with", self.HOST, prompt, *args, "--", *own]


@pytest.mark.full
@pytest.mark.rule("K2")
@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize("host", ["opencode", "pi", "qwen", "vibe"])
def test_an_agent_is_sent_back_in_the_same_conversation_until_it_passes(
    host, is_installed, tmp_path
):
    with world_of(host, tmp_path, SupervisedHost).scenario() as world:
        world.gates(READY)
        (world.install if is_installed else world.trust)()
        ran = world.run([Say("Done."), Run("touch ready"), Say("Now it is.")])
        assert (ran.code, ran.text) == (0, "Now it is."), ran.err
        assert world.outcomes() == ["blocked", "passed"]
        assert "Done." in str(ran.model.asked()[-1].raw)
        assert len(world.left_to_us()) == 2 * is_installed
