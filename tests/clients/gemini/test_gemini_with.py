"""`notyet with gemini` around the real program: the supervisor asks the gates."""

from __future__ import annotations

import json
import threading

import pytest

from clients.conftest import world_of
from clients.model.script import Fail, Run, Say, Spawn
from clients.test_with import LEARNS, READY, Supervised, gated
from clients.world import NOTYET
from commands import until

pytestmark = pytest.mark.full


class WithGemini(Supervised):
    """Gemini CLI under `notyet with`."""

    NAMES_THREADS = True  # stories of supervised agents are compared as they are

    def line(self, prompt, args, url):
        del url
        return [str(NOTYET), "with", "gemini", prompt, *args, "--", "--yolo"]


@pytest.fixture(params=["gemini"])
def host(request, tmp_path):
    """The program, under `notyet with`."""
    with world_of(request.param, tmp_path, WithGemini).scenario() as world:
        yield world


def test_an_agent_is_sent_back_in_the_same_conversation_until_it_passes(host):
    gated(host, READY)
    ran = host.run(LEARNS, args=("--json",))
    said = json.loads(ran.out)
    assert ran.code == 0, ran.err
    expected = {"outcome": "passed", "ending": "done", "steers": 1, "text": "Now it is."}
    assert expected.items() <= said.items()
    assert (said["agent"], said["exit_code"], said["tool_calls"]) == ("gemini", 0, 1)
    assert said["session"] == host.stops()[0].session_id
    assert host.outcomes() == ["blocked", "passed"]
    assert "FAILED ready (exit 1" in ran.told()[1]
    assert "do it" in "".join(ran.model.asked()[-1].texts)


@pytest.mark.rule("B1")
def test_an_agent_that_never_makes_it_is_capped_and_its_answer_is_kept(host):
    gated(host, '[gates]\nnever = "false"\n')

    def step(n, _request):
        return Say(f"Try {n // 2}.") if n % 2 else Run(f"echo {n} >> work.txt")

    ran = host.run({"main": step}, args=("--max-blocks", "2"))
    assert (ran.code, ran.out) == (3, "Try 2.\n"), ran.err
    assert host.outcomes() == ["blocked", "blocked", "capped"]


@pytest.mark.rule("E11")
def test_an_installed_hook_leaves_the_main_agent_to_the_supervisor_and_gates_subagents(host):
    host.gates(
        '[gates]\nready = "echo asked >> asked.log; test -e ready"\n'
        '[gates.report]\nrun = "test -e report"\nfor = "subagents"\n'
    )
    host.install()
    script = {
        "main": [Spawn("[actor: coder] Write it."), Say("Done."), Run("touch ready"), Say("Now.")],
        "coder": [Say("Done."), Run("touch report"), Say("The report is written.")],
    }
    ran = host.run(script)
    assert (ran.code, ran.out) == (0, "Now.\n"), ran.err
    assert [(stop.scope, stop.outcome) for stop in host.stops()] == [
        ("subagent", "blocked"),
        ("subagent", "passed"),
        ("agent", "blocked"),
        ("agent", "passed"),
    ]
    assert len(host.left_to_us()) == 2
    assert (host.project / "asked.log").read_text() == "asked\n" * 2


def test_an_error_of_the_model_is_named(host):
    gated(host, READY)
    host.ungated = {"main"}
    ran = host.run({"main": lambda _n, _request: Fail(400)})
    assert ran.code == 1
    assert "API Error" in ran.err
    assert not [stop for stop in host.stops() if stop.reports]


def test_an_interrupt_ends_a_working_agent_and_asks_no_gate(host):
    gated(host, READY)
    host.ungated = {"main"}
    is_over = threading.Event()
    with host.start([Say("never said", once=is_over.is_set)]) as running:
        assert until(lambda: running.model.requests, 60)
        running.interrupt()
        ran = running.wait()
        is_over.set()
    assert (ran.code, ran.out) == (130, "")
    assert not [stop for stop in host.stops() if stop.reports]
