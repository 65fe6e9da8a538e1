"""Codex's SubagentStop and SubagentStart as their authors describe them, with real hook files."""

import json
import os
import shutil

import pytest

from config_places import READS, hooks, write, write_own, write_user_toml
from notyet import Ledger
from notyet.config.compile import compile_text
from notyet.config.load import load
from notyet.core.session import Turn
from notyet.engine.from_project import supervising_engine
from supervised import Agent, World

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
EVENTS = ("SessionStart", "SubagentStart", "Stop", "SubagentStop")
STOP = {
    "session_id",
    "turn_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "model",
    "permission_mode",
    "stop_hook_active",
    "last_assistant_message",
}
SUBAGENT_STOP = STOP | {"agent_id", "agent_type", "agent_transcript_path"}
SUBAGENT_START = STOP - {"stop_hook_active", "last_assistant_message"} | {"agent_id", "agent_type"}
TOML = """\
model = "large"

[[hooks.{event}]]
matcher = "{matcher}"

[[hooks.{event}.hooks]]
type = "command"
command = "{command}"
timeout = 30
"""


class Codex(World):
    """A world with the hooks of a Codex project, which write down what they are told."""

    def __init__(self, tmp_path, files, whose="project"):
        self.project = tmp_path / "project"
        self.project.mkdir()
        for name, text in files.items():
            if whose == "user":
                write_own(f".codex/{name}", text)
                write_user_toml(READS.format("codex"))
            else:
                write(self.project, f".codex/{name}", text)
        (tmp_path / "state").mkdir()
        setup = load(str(self.project), "notyet", os.environ, agent="scripted")
        ledger, self.said = Ledger(tmp_path / "state" / "ledger.db"), []
        engine = supervising_engine(setup, os.environ, ledger, self.said.append)
        super().__init__(tmp_path / "state", engine=engine)

    def _here(self, fields):
        return {"cwd": str(self.project)} | fields

    def told(self):
        path = self.project / "log"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def names(self):
        return [line["hook_event_name"] for line in self.told()]


def all_events(script="cat >> log; echo >> log", **matchers):
    found = {}
    for event in EVENTS:
        (group,) = json.loads(hooks(script, event=event))["hooks"][event]
        found[event] = [group | ({"matcher": matchers[event]} if event in matchers else {})]
    return {"hooks.json": json.dumps({"hooks": found})}


@pytest.mark.rule("C8", "K14", "W2")
def test_a_child_has_its_own_start_and_stop_and_the_root_has_the_others(tmp_path):
    with Codex(tmp_path, all_events()) as world:
        root = Agent(Agent.WAIT, "root done", id="root-1", transcript="/root.jsonl")
        above = world.launch(root)
        world.at_work(root)
        world.until(lambda: world.view(above).session_id)
        child = Agent("child done", id="child-1", transcript="/child.jsonl")
        handle = world.spawn(child, "Look.", parent=above, agent_type="explorer")
        world.result(handle)
        root.come_back(Turn(text="root done"))
        world.result(above)
        told = world.told()
    assert [line["hook_event_name"] for line in told] == [
        "SessionStart",
        "SubagentStart",
        "SubagentStop",
        "Stop",
    ]
    _, start, sub, main = told
    assert (set(start), set(sub), set(main)) == (SUBAGENT_START, SUBAGENT_STOP, STOP)
    assert {line["session_id"] for line in (start, sub, main)} == {"root-1"}
    assert start["transcript_path"] == "/child.jsonl"
    assert (start["agent_id"], sub["agent_id"]) == (handle.task_id, handle.task_id)
    assert (start["agent_type"], sub["agent_type"]) == ("explorer", "explorer")
    assert (sub["transcript_path"], sub["agent_transcript_path"]) == ("/root.jsonl", "/child.jsonl")
    assert (sub["last_assistant_message"], sub["stop_hook_active"]) == ("child done", False)


@pytest.mark.rule("C7")
@pytest.mark.parametrize("kind", ["review", "compact", "memory_consolidation", "other"])
def test_internal_agents_run_none_of_the_four_hooks(tmp_path, kind):
    with Codex(tmp_path, all_events("echo $0 >> asked; echo no >&2; exit 2")) as world:
        agent = Agent("done")
        result = world.spawned(agent, internal=True, agent_type=kind)
        assert not (world.project / "asked").exists()
    assert (agent.got, result.text) == (["do it"], "done")


@pytest.mark.rule("D5", "K14")
@pytest.mark.parametrize(
    ("matcher", "agent_type", "asked"),
    [
        ("default", None, True),
        ("worker", None, False),
        ("explorer|worker", "worker", True),
        ("work", "worker", False),
        ("^work", "worker", True),
        ("", "worker", True),
    ],
)
def test_matchers_of_start_and_stop_are_about_the_agents_type(tmp_path, matcher, agent_type, asked):
    files = all_events(SubagentStart=matcher, SubagentStop=matcher)
    with Codex(tmp_path, files) as world:
        world.spawned(Agent("done"), agent_type=agent_type)
        assert world.names() == (["SubagentStart", "SubagentStop"] if asked else [])
        types = {line["agent_type"] for line in world.told()}
    assert types == ({agent_type or "default"} if asked else set())


@pytest.mark.rule("F1-codex", "F3-codex", "F5-codex", "F6-codex", "F9-codex", "A6")
@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("true", "passed"),
        ("echo '{}'", "passed"),
        ('echo \'{"decision": "block"}\'', "failed_open"),
        ('echo \'{"decision": "block", "reason": " "}\'', "failed_open"),
        ('echo \'{"decision": "approve"}\'', "failed_open"),
        ('echo \'{"decision": "block", "reason": "x", "more": 1}\'', "failed_open"),
        ("echo looks fine", "failed_open"),
        ("echo oops >&2; exit 1", "failed_open"),
        ("exit 2", "failed_open"),
    ],
)
def test_a_hook_that_decides_nothing_or_says_it_wrongly_lets_the_child_finish(
    tmp_path, script, outcome
):
    with Codex(tmp_path, {"hooks.json": hooks(script, event="SubagentStop")}) as world:
        agent = Agent("done")
        result = world.spawned(agent)
    assert (agent.got, result.text, result.outcome) == (["do it"], "done", outcome)
    assert bool(world.said) is (outcome == "failed_open")


@pytest.mark.rule("F2-codex", "B5", "K12")
def test_a_block_continues_the_child_alone_and_the_next_payload_says_so(tmp_path):
    script = (
        "cat >> log; echo >> log; [ -e again ] && exit 0; touch again;"
        """ echo '{"decision": "block", "reason": "Run the tests."}'"""
    )
    with Codex(tmp_path, {"hooks.json": hooks(script, event="SubagentStop")}) as world:
        root = Agent(Agent.WAIT, id="root-1")
        above = world.launch(root)
        world.at_work(root)
        child = Agent("done", "tests pass", id="child-1")
        result = world.spawned(child, "Mend it.", parent=above)
        flags = [line["stop_hook_active"] for line in world.told()]
        last = [line["last_assistant_message"] for line in world.told()]
        world.do(world.supervisor.kill(above))
    assert root.got == ["do it"]
    assert child.got[1].startswith("Run the tests.")
    assert (flags, last) == ([False, True], ["done", "tests pass"])
    assert result.text == "tests pass"


@pytest.mark.rule("J4", "D5", "F7-codex")
def test_hooks_of_config_toml_are_read_with_their_matcher_beside_all_else_in_it(tmp_path):
    command = "echo again >> asked; echo Go on. >&2; exit 2"
    text = TOML.format(event="SubagentStop", matcher="worker", command=command)
    with Codex(tmp_path, {"config.toml": text}) as world:
        worker, other = Agent(id="w"), Agent("done", id="o")
        world.spawned(worker, agent_type="worker")
        world.spawned(other, agent_type="explorer")
        asked = (world.project / "asked").read_text().split()
    assert (len(worker.got), len(other.got)) == (4, 1)
    assert len(asked) == 4  # three send-backs, and asked once more


@pytest.mark.rule("W2")
def test_a_child_that_said_nothing_has_a_last_message_of_null(tmp_path):
    with Codex(tmp_path, all_events()) as world:
        world.spawned(Agent(Turn(text="")))
        (line,) = [line for line in world.told() if line["hook_event_name"] == "SubagentStop"]
    assert line["last_assistant_message"] is None
    assert line["transcript_path"] is None


@pytest.mark.rule("J7")
def test_a_file_of_the_user_that_codex_would_drop_whole_keeps_its_good_hooks_here(tmp_path):
    good = {"type": "command", "command": "echo Go on. >&2; exit 2"}
    bad = {"type": "command", "command": "touch bad", "timeout": "30"}
    text = json.dumps({"hooks": {"SubagentStop": [{"hooks": [bad, good]}]}})
    with Codex(tmp_path, {"hooks.json": text}, whose="user") as world:
        child = Agent()
        world.spawned(child)
        setup = load(str(world.project), "notyet", os.environ, agent="scripted")
    assert len(child.got) == 4
    assert any("hooks.json:1:" in said and "timeout" in said for said in setup.warnings)


@pytest.mark.rule("J7", "A7")
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"type": "command", "command": "  "}, "command` must not be blank"),
        ({"type": "prompt", "prompt": "Is it done?"}, "a hook of type 'prompt' is not run"),
        ({"type": "agent", "prompt": "Is it done?"}, "a hook of type 'agent' is not run"),
        ({"type": "command", "command": "touch watched; echo No. >&2; exit 2", "async": True}, ""),
    ],
    ids=["blank", "prompt", "agent", "async"],
)
def test_what_codex_does_not_run_or_wait_for_blocks_nothing_and_its_neighbour_counts(
    tmp_path, other, said
):
    good = {"type": "command", "command": "touch asked"}
    text = json.dumps({"hooks": {"SubagentStop": [{"hooks": [other, good]}]}})
    with Codex(tmp_path, {"hooks.json": text}, whose="user") as world:
        child = Agent("done")
        result = world.spawned(child)
        assert (world.project / "asked").exists()
        assert (world.project / "watched").exists() is ("async" in other)
        setup = load(str(world.project), "notyet", os.environ, agent="scripted")
    assert (child.got, result.text) == (["do it"], "done")
    assert len(setup.gates) == (2 if "async" in other else 1)
    settings = compile_text(text, "hooks.json", "codex")
    told = [str(one) for one in (*settings.mistakes, *settings.warnings)]
    assert [said in words for words in told] == ([True] if said else [])
    assert result.outcome == ("observed" if "async" in other else "passed")


@pytest.mark.rule("C4", "C2")
@pytest.mark.parametrize(
    ("turn", "ending"),
    [
        (Turn(text="half", stop_reason="cancelled"), "interrupted"),
        (Turn(text="", stop_reason="error", error="boom"), "error"),
    ],
)
def test_no_hook_of_codex_is_run_after_an_interrupt_or_an_error(tmp_path, turn, ending):
    hook = {"type": "command", "command": "touch asked; echo Go on. >&2; exit 2"}
    block = {event: [{"hooks": [hook]}] for event in ("Stop", "SubagentStop")}
    with Codex(tmp_path, {"hooks.json": json.dumps({"hooks": block})}) as world:
        child, main = Agent(turn), Agent(turn)
        assert world.spawned(child).ending == world.ran(main).ending == ending
        assert not (world.project / "asked").exists()
        assert (child.got, main.got) == (["do it"], ["do it"])
        world.spawned(Agent("done", id="other"))
        assert (world.project / "asked").exists()
