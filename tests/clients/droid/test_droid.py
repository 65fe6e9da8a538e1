"""Droid's own ways: subagents with a type, forks, and `notyet with`."""

import pytest

from clients.conftest import only, world_of
from clients.model.script import Run, Say, Spawn
from clients.test_with import Supervised

READY = '[gates.ready]\nrun = "test -e ready"\n'
NEVER = '[gates.never]\nrun = "echo it is never right; exit 1"\n'
HALT = """'{"decision": "halt", "reason": "enough for today"}'"""

droid = only("droid")


class SupervisedDroid(Supervised):
    """Droid under `notyet with`."""

    NAMES_THREADS = True  # so its story is compared as it is

    def line(self, prompt, args, url):
        return [*super().line(prompt, args, url)[:4], *args, "--", *self.where(url)]


@droid
@pytest.mark.full
@pytest.mark.rule("D1")
def test_a_gate_for_one_type_of_subagents_finds_it(host):
    host.gates(NEVER + 'for = ["worker"]\n')
    host.install()
    host.ungated = {"main"}
    ran = host.run(
        {
            "main": [Spawn("[actor: writer] Write it."), Say("It is written.")],
            "writer": [Say("Done."), Say("BLOCKED: it is never right.")],
        }
    )
    assert (ran.code, ran.text) == (0, "It is written."), ran.err
    assert host.outcomes() == ["blocked", "handed_back"]
    assert {(stop.scope, stop.agent_type) for stop in host.stops()} == {("subagent", "worker")}


@droid
@pytest.mark.full
@pytest.mark.rule("K15")
def test_a_gate_that_halts_ends_the_turn_and_the_answer_is_delivered(host):
    host.gates(f'[gates.budget]\nrun = """echo {HALT}"""\n')
    host.install()
    ran = host.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert host.outcomes() == ["halted"]


@droid
@pytest.mark.full
def test_a_forked_session_is_a_new_one_that_is_gated_too(host):
    host.gates(READY)
    host.install()
    host.run([Say("One!"), Run("touch ready"), Say("One.")])
    (host.project / "ready").unlink()
    (first,) = {stop.session_id for stop in host.stops()}
    ran = host.run([Say("Two!"), Run("touch ready"), Say("Two.")], args=("--fork", first))
    assert (ran.code, ran.text) == (0, "Two."), ran.err
    assert "One." in str(ran.model.asked()[0].raw)
    assert host.outcomes() == ["blocked", "passed"] * 2
    assert len({stop.session_id for stop in host.stops()}) == 2


@droid
@pytest.mark.full
@pytest.mark.rule("F13")
def test_an_agent_is_told_of_its_gates_before_its_first_request(host):
    host.gates("[start]\ntell = true\n" + READY)
    host.install()
    ran = host.run([Run("touch ready"), Say("Done.")])
    assert ran.text == "Done."
    assert "- ready: test -e ready" in "\n".join(ran.model.asked()[0].texts)
    assert host.outcomes() == ["passed"]


@pytest.mark.full
@pytest.mark.parametrize("host", ["droid"])
def test_with_runs_and_gates_it_without_a_hook(host, tmp_path):
    with world_of(host, tmp_path, SupervisedDroid).scenario() as world:
        world.gates(READY)
        world.trust()
        ran = world.run([Say("Done."), Run("touch ready"), Say("Now it is.")])
        assert (ran.code, ran.text) == (0, "Now it is."), ran.err
        assert world.outcomes() == ["blocked", "passed"]
