"""`notyet with` around the real programs: the supervisor asks the gates, and no hook is needed."""

from __future__ import annotations

import html
import json
import re
import threading

import pytest

from clients.conftest import CLIENTS, NEWEST, world_of
from clients.model.script import Run, Say, Spawn
from clients.world import NOTYET, plain
from commands import until

# What a version may do differently is tried with each, the rest with the newest ones.
each_version = pytest.mark.parametrize("agent", CLIENTS, indirect=True)
READY = '[gates]\nready = "test -e ready"\n'
LEARNS = [Say("Done."), Run("touch ready"), Say("Now it is.")]


class Supervised:
    """What differs where `notyet with` runs a program; its own class is the next one."""

    def __post_init__(self):
        super().__post_init__()
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / self.HOST).symlink_to(self.program)

    @property
    def environ(self):
        environ = super().environ
        return environ | {"PATH": f"{self.folder}/bin:{environ['PATH']}"}

    def line(self, prompt, args, url):
        is_codex = self.HOST == "codex"
        own = self.where(url) if is_codex else ["--dangerously-skip-permissions"]
        return [str(NOTYET), "with", self.HOST, prompt, *args, "--", *own]

    def answer(self, out):
        return json.loads(out)["text"] if out.startswith("{") else out.strip()

    def stops(self):
        """Return what was decided; the hook's own rows say only that it left it to us."""
        return [stop for stop in super().stops() if stop.why != "supervised"]

    def left_to_us(self):
        return [stop for stop in super().stops() if stop.why == "supervised"]

    def story(self):
        """Return what each agent said at its stops, and the words that sent it back."""
        stories = []
        for model in (ran.model for ran in self.runs):
            for actor in {*model.actors} - self.ungated:
                asked = model.asked(actor)
                following = [sent_back(request.last) for request in asked[1:]]
                steps = zip((request.step for request in asked), [*following, ""], strict=True)
                stories.append([(step.text, words) for step, words in steps if said(step)])
        return sorted(stories)

    def told_by_ledger(self):
        """Return the same from the ledger."""
        stories = {}
        for stop in self.stops():
            words = stop.prompt if stop.outcome == "blocked" else ""
            story = stories.setdefault((stop.session_id, stop.agent_id), [])
            story.append((stop.last_message, plain(words)))
        return sorted(stories.values())


def said(step):
    return isinstance(step, Say)


def sent_back(text):
    """Return our words: a supervisor says them as a user, a hook in the program's frame."""
    found = re.search(r"notyet: .*?(?=</system-reminder>|</hook_prompt>|$)", text, re.DOTALL)
    return plain(html.unescape(found[0])) if found else ""


@pytest.fixture(params=NEWEST)
def agent(request, tmp_path):
    """Each of the programs, under `notyet with`."""
    with world_of(request.param, tmp_path, Supervised).scenario() as world:
        yield world


def gated(agent, toml):
    agent.gates(toml)
    agent.trust()


@each_version
def test_an_agent_is_sent_back_in_the_same_conversation_until_it_passes(agent):
    gated(agent, READY)
    ran = agent.run(LEARNS)
    assert (ran.code, ran.out) == (0, "Now it is.\n")
    assert agent.outcomes() == ["blocked", "passed"]
    assert "FAILED ready (exit 1" in ran.told()[1]
    assert "do it" in ran.model.asked()[-1].texts
    assert "not yet: sent back 1/3: ready (exit 1)" in ran.err


@pytest.mark.rule("B1")
def test_an_agent_that_never_makes_it_is_capped_and_its_answer_is_kept(agent):
    gated(agent, '[gates]\nnever = "false"\n')

    def step(n, request):
        return Say(f"Try {n // 2}.") if n % 2 else Run(f"echo {n} >> work.txt")

    ran = agent.run({"main": step}, args=("--max-blocks", "2"))
    assert (ran.code, ran.out) == (3, "Try 2.\n")
    assert agent.outcomes() == ["blocked", "blocked", "capped"]


def test_json_tells_what_came_of_it(agent):
    gated(agent, READY)
    ran = agent.run(LEARNS, args=("--json",))
    said = json.loads(ran.out)
    assert ran.code == 0
    expected = {"outcome": "passed", "ending": "done", "steers": 1, "text": "Now it is."}
    assert expected.items() <= said.items()
    assert said["session"] == agent.stops()[0].session_id
    assert (said["agent"], said["exit_code"], said["tool_calls"]) == (agent.HOST, 0, 1)


CODEX = [name for name in NEWEST if name.startswith("codex")]


@pytest.mark.parametrize("agent", CODEX, indirect=True)
def test_codex_without_a_network_is_not_silent_and_the_cause_is_named(agent):
    gated(agent, READY)
    agent.ungated = {"main"}
    line = agent.line("do it", ("--timeout", "15s"), "http://127.0.0.1:9")  # nobody answers there
    ran = agent.run([], line=line)
    shown = [text for text in ran.err.splitlines() if "econnect" in text or "network" in text]
    assert len(shown) > 1, ran.err
    assert "no end after 15 s; its last error: " in shown[-1]


@each_version
def test_an_interrupt_ends_a_working_agent_and_asks_no_gate(agent):
    gated(agent, READY)
    agent.ungated = {"main"}
    is_over = threading.Event()
    with agent.start([Say("never said", once=is_over.is_set)]) as running:
        assert until(lambda: running.model.requests)
        running.interrupt()
        ran = running.wait(20)
        is_over.set()
    assert (ran.code, ran.out) == (130, "")
    assert "interrupted" in ran.err
    assert not [stop for stop in agent.stops() if stop.reports]


@pytest.mark.rule("E2")
def test_an_interrupt_ends_a_gate_that_is_being_asked(agent):
    gated(agent, '[gates]\nslow = "touch asked; sleep 1000"\n')
    with agent.start([Say("Done.")]) as running:
        assert until((agent.project / "asked").exists)
        running.interrupt()
        ran = running.wait(20)
    assert ran.code == 130
    assert until(lambda: not agent.processes()), agent.processes()


@pytest.mark.rule("E11")
@each_version
def test_an_installed_hook_leaves_the_main_agent_to_the_supervisor(agent):
    agent.gates('[gates]\nready = "echo asked >> asked.log; test -e ready"\n')
    agent.install()
    ran = agent.run(LEARNS)
    assert (ran.code, ran.out) == (0, "Now it is.\n")
    assert agent.outcomes() == ["blocked", "passed"]
    assert [stop.last_message for stop in agent.left_to_us()] == ["Done.", "Now it is."]
    assert (agent.project / "asked.log").read_text() == "asked\n" * 2


def test_an_installed_hook_still_gates_the_subagents(agent):
    agent.gates('[gates.report]\nrun = "test -e report"\nfor = "subagents"\n')
    agent.install()
    agent.ungated = {"main"}
    script = {
        "main": [Spawn("[actor: coder] Write the report."), Say("The coder is done.")],
        "coder": [Say("Done."), Run("touch report"), Say("The report is written.")],
    }
    ran = agent.run(script)
    assert (ran.code, ran.out) == (0, "The coder is done.\n")
    subagent = [stop for stop in agent.stops() if stop.scope == "subagent"]
    assert [stop.outcome for stop in subagent] == ["blocked", "passed"]
    assert "FAILED report (exit 1" in ran.told("coder")[1]
    assert "The report is written." in "\n".join(ran.model.asked()[-1].results)
