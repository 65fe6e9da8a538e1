"""The proposal for OpenClaw's `subagent_stopping`, played: its plugin, its runs, its file."""

import json
import os

import pytest

from config_places import write
from notyet import Ledger
from notyet.config.load import load
from notyet.core.session import Turn
from notyet.engine.from_project import supervising_engine
from supervised import Agent, World

UNCONFIRMED = (
    "You indicated completion but the test results are not confirmed. "
    "Please run the test suite and report the results."
)
# The example of its chapter on configuration, as it stands there.
FILE = """\
# openclaw config
agents:
  defaults:
    subagents:
      maxSteerRestarts: {} # Default: 3. Max times subagent_stopping can redirect.
"""


def plugin(log):
    """Return the plugin of its chapter on usage: telemetry first, then a check of test runners."""

    async def handler(event, ctx):
        with log.open("a") as file:
            file.write(json.dumps({"kind": "subagent.stop", "data": event.to_dict()}) + "\n")
        if event.label == "test-runner" and event.outcome == "ok":
            response = event.lastAssistantMessage or ""
            if "All tests passed" not in response and "✓" not in response:
                return {
                    "allow": False,
                    "prompt": UNCONFIRMED,
                    "reason": "Test results not confirmed in output",
                }
        return {"allow": True}

    return handler


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Delivered(World):
    """A world whose results are announced to a list."""

    def __init__(self, folder, **settings):
        self.announced = []
        super().__init__(folder, deliver=self.keep, **settings)

    async def keep(self, announcement):
        self.announced.append(announcement.result)

    def all_announced(self, count=1):
        self.until(lambda: len(self.announced) >= count)
        return self.announced


@pytest.mark.rule("K2", "K3", "A11", "B5")
@pytest.mark.parametrize("confirmed", ["All tests passed.", "✓ 12 of 12"])
def test_the_plugin_of_the_document_holds_a_test_runner_until_it_confirms(tmp_path, confirmed):
    log = tmp_path / "telemetry.jsonl"
    with Delivered(tmp_path) as world:
        world.engine.on("subagent_stopping", plugin(log), priority=100)
        agent = Agent("Done!", confirmed)
        result = world.spawned(agent, "Test it.", label="test-runner")
        assert world.all_announced() == [result]
        reasons = world.rows("SELECT outcome, reason FROM stops ORDER BY id")
    assert agent.got == ["Test it.", UNCONFIRMED]
    assert (result.text, result.steers, result.outcome) == (confirmed, 1, "passed")
    assert reasons[0] == ("blocked", "Test results not confirmed in output")
    told = [line["data"] for line in lines(log)]
    assert [(data["label"], data["steerCount"], data["maxSteers"]) for data in told] == [
        ("test-runner", 0, 3),
        ("test-runner", 1, 3),
    ]
    assert [data["lastAssistantMessage"] for data in told] == ["Done!", confirmed]


@pytest.mark.rule("K2", "C2")
@pytest.mark.parametrize(
    ("label", "turn", "outcome"),
    [
        ("writer", Turn(text="Done!"), "ok"),
        (None, Turn(text="Done!"), "ok"),
        ("test-runner", Turn(text="", stop_reason="error", error="boom"), "error"),
    ],
)
def test_the_plugin_of_the_document_lets_others_go_and_logs_them(tmp_path, label, turn, outcome):
    log = tmp_path / "telemetry.jsonl"
    with Delivered(tmp_path) as world:
        world.engine.on("subagent_stopping", plugin(log), priority=100)
        agent = Agent(turn)
        world.spawned(agent, "Test it.", label=label)
        world.all_announced()
    assert agent.got == ["Test it."]
    (line,) = lines(log)
    assert (line["kind"], line["data"]["outcome"]) == ("subagent.stop", outcome)


@pytest.mark.rule("K1", "K2", "C5")
def test_the_three_runs_of_the_document_are_announced_once_and_ended_once(tmp_path):
    prompts = ["Check test results", "Fix the failing test"]
    asked, ended, seen = [], [], []

    def handler(event, ctx):
        asked.append((event.steer_count, event.run_id))
        seen.append(len(world.announced))
        if event.steer_count < len(prompts):
            return {"allow": False, "prompt": prompts[event.steer_count]}
        return {"allow": True}

    with Delivered(tmp_path) as world:
        world.engine.on("subagent_stopping", handler)
        world.engine.on("subagent_ended", lambda event, ctx: ended.append(event))
        agent = Agent("one", "two", "three")
        handle = world.spawn(agent, "Test it.")
        world.result(handle)
        announced = world.all_announced()
        runs = world.rows("SELECT generation, state FROM runs ORDER BY generation")
    task = handle.task_id
    assert asked == [(0, f"{task}.1"), (1, f"{task}.2"), (2, f"{task}.3")]
    assert agent.got == ["Test it.", *prompts]
    assert seen == [0, 0, 0]
    assert [(event.run_id, event.outcome) for event in ended] == [(f"{task}.3", "ok")]
    assert [result.text for result in announced] == ["three"]
    assert runs == [(1, "superseded"), (2, "superseded"), (3, "ended")]


@pytest.mark.rule("K1")
def test_the_end_of_a_run_is_written_down_before_its_handlers_are_asked(tmp_path):
    seen = []

    def handler(event, ctx):
        seen.extend(world.rows("SELECT state, ending, finished_at IS NOT NULL FROM runs"))

    with Delivered(tmp_path) as world:
        world.engine.on("subagent_stopping", handler)
        world.spawned(Agent("done"))
    assert seen == [("gating", "done", 1)]


@pytest.mark.rule("C5", "K3")
def test_subagent_ended_has_no_last_message_and_comes_after_the_handlers_allowed(tmp_path):
    order = []
    with Delivered(tmp_path) as world:
        world.engine.on("subagent_ended", lambda event, ctx: order.append(event.to_dict()))
        world.engine.on("subagent_stopping", lambda event, ctx: order.append("asked"))
        world.spawned(Agent("done"))
    asked, ended = order
    assert asked == "asked"
    assert "lastAssistantMessage" not in ended
    assert (ended["outcome"], ended["reason"]) == ("ok", "subagent-complete")


@pytest.mark.rule("A5")
@pytest.mark.parametrize("prompt", [7, ["Run the tests."], {"text": "Run them."}])
def test_a_prompt_that_is_not_text_redirects_no_agent_and_warns(tmp_path, prompt):
    with Delivered(tmp_path) as world:
        world.engine.on("subagent_stopping", lambda event, ctx: {"allow": False, "prompt": prompt})
        agent = Agent("done")
        assert world.spawned(agent).outcome == "passed"
    assert agent.got == ["do it"]
    assert any("allow=False with a prompt that is not text" in said for said in world.warnings)


@pytest.mark.rule("J9", "B1")
@pytest.mark.parametrize("number", [3, 1, 5])
def test_the_file_of_the_document_sets_how_often_a_subagent_is_sent_back(tmp_path, number):
    project = tmp_path / "project"
    project.mkdir()
    (project / "openclaw.yaml").write_text(FILE.format(number))
    write(project, "notyet.toml", '[read]\nopenclaw = "openclaw.yaml"\n')
    ledger, warnings = Ledger(tmp_path / "ledger.db"), []
    setup = load(str(project), "notyet", os.environ, agent="scripted")
    engine = supervising_engine(setup, os.environ, ledger, warnings.append)
    with Delivered(tmp_path, engine=engine) as world:
        engine.on("subagent_stopping", lambda event, ctx: {"allow": False, "prompt": "more"})
        agent = Agent()
        result = world.spawned(agent)
    assert agent.got == ["do it", *["more"] * number]
    assert (result.steers, result.outcome) == (number, "capped")
    assert any(f"{number} of {number} send-backs used" in said for said in warnings)


@pytest.mark.rule("J9")
def test_a_number_in_a_comment_of_openclaws_file_is_no_number_of_it(tmp_path):
    text = "# maxSteerRestarts: 9\n" + FILE.format(4) + "      # maxSteerRestarts: 8\n"
    (tmp_path / "openclaw.yaml").write_text(text)
    write(tmp_path, "notyet.toml", '[read]\nopenclaw = "openclaw.yaml"\n')
    setup = load(str(tmp_path), "notyet", os.environ)
    assert (setup.limits, setup.warnings) == ({"max_blocks": 4}, ())
