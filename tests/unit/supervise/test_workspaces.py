"""Supervised agents that work on another machine: their gates run there (M1, M5)."""

import pytest

from notyet import Command, Function, Gate, Match, Starter
from notyet.core.session import Turn
from supervised import Agent, World

EVERYBODY = Match(events=("agent", "subagent"))
THERE = "ssh://box/srv/app"


def workspaces(world, *names):
    """Return the workspaces of tasks as the ledger has them."""
    known = {view.task.prompt: view.task.workspace for view in world.do(world.supervisor.tasks())}
    return [known[name] for name in names]


@pytest.fixture
def told(world):
    """What each task's decision was about, by its prompt."""
    events = {}
    world.engine.on("decision", lambda event, _: events.update({event.task: event.workspace}))
    return events


def parent_of(world, **fields):
    agent = Agent(Agent.WAIT, id="parent")
    handle = world.launch(agent, "parent", **fields)
    world.at_work(agent)
    return agent, handle


def test_a_task_knows_where_its_files_are_and_so_do_its_events(world, told):
    world.ran(Agent(), "main", workspace=f"{THERE}/")
    world.spawned(Agent(id="s2"), "child", workspace=THERE)
    world.ran(Agent(id="s3"), "here")
    assert workspaces(world, "main", "child", "here") == [THERE, THERE, ""]
    assert told == {"main": THERE, "child": THERE, "here": ""}


def test_a_subagent_works_where_its_parent_does_unless_it_is_told_otherwise(world, told):
    agent, parent = parent_of(world, workspace=THERE)
    elsewhere = "ssh://other/srv"
    local = world.spawn(Agent(Agent.WAIT, id="s2"), "local", parent=parent, workspace="local")
    world.spawned(Agent(id="s3"), "same", parent=parent)
    world.spawned(Agent(id="s4"), "other", parent=parent, workspace=elsewhere)
    world.spawned(Agent(id="s5"), "below local", parent=local)
    world.spawned(Agent(id="s6"), "of a stranger", parent="some session")
    world.do(world.supervisor.kill(local))
    agent.come_back(Turn(text="done"))
    world.result(parent)
    assert told == {
        "parent": THERE,
        "local": "",
        "same": THERE,
        "other": elsewhere,
        "below local": "",
        "of a stranger": "",
    }


def test_a_start_is_told_where_the_files_are(world):
    starts = []
    registry = world.engine
    note = Function(lambda event: starts.append((event.scope, event.workspace)))
    registry._add_starter(Starter(name="a", check=note))
    registry._add_starter(Starter(name="b", check=note, scope="subagent"))
    world.ran(Agent(), workspace=THERE)
    world.spawned(Agent(id="s2"), workspace="local")
    assert starts == [("agent", THERE), ("subagent", "")]


@pytest.mark.parametrize("workspace", ["box:/srv/app", "ssh://box", "/srv/app", "ssh://a:b@c/d"])
def test_what_names_no_place_is_refused_before_anything_happens(world, workspace):
    agent = Agent()
    with pytest.raises(ValueError):
        world.launch(agent, workspace=workspace)
    with pytest.raises(ValueError):
        world.spawn(agent, workspace=workspace)
    assert world.do(world.supervisor.tasks()) == []
    assert agent.got == []


@pytest.mark.rule("M1", "M5", "K2")
def test_a_subagent_is_sent_back_by_a_gate_that_runs_where_its_files_are(warm_box, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (here / "child.jsonl").write_text('{"said": "1 failed"}\n')
    script = (
        'cp "$NOTYET_AGENT_TRANSCRIPT_PATH" copy.jsonl; echo "$NOTYET_CWD" >> asked;'
        " [ -e tested ] || { echo run the tests; exit 1; }"
    )
    checks = Gate(name="tests", check=Command(script=script), match=EVERYBODY)

    def work(prompt):
        (there / "tested").touch()
        return "now they pass"

    with World(here, gates=[checks]) as world:
        agent = Agent("done", work, transcript=str(here / "child.jsonl"))
        result = world.spawned(agent, workspace=warm_box.url(str(there)))
    assert (result.outcome, result.steers, result.text) == ("passed", 1, "now they pass")
    assert "run the tests" in agent.got[1]
    assert (there / "asked").read_text() == f"{there}\n" * 2
    assert (there / "copy.jsonl").read_text() == '{"said": "1 failed"}\n'
    assert sorted(path.name for path in here.iterdir() if "db" not in path.name) == ["child.jsonl"]


@pytest.mark.rule("M1", "K18")
def test_a_task_that_is_taken_over_is_gated_where_it_was(warm_box, tmp_path):
    there = tmp_path / "there"
    there.mkdir()
    checks = Gate(name="g", check=Command(script="pwd >> asked"), match=EVERYBODY)
    with World(tmp_path, gates=[checks]) as world:
        world.launch(Agent(Agent.WAIT), workspace=warm_box.url(str(there)))
        # Closed before it could send anything; somebody else takes the task over.
    with World(tmp_path, gates=[checks], reopen=lambda ref: Agent("done", knows=False)) as world:
        (handle,) = world.do(world.supervisor.recover())
        assert world.result(handle).text == "done"
    assert (there / "asked").read_text() == f"{there}\n"


@pytest.mark.rule("M2", "K6")
def test_a_gate_there_that_is_overtaken_is_ended(warm_box, tmp_path):
    checks = Gate(name="g", check=Command(script="echo $$ > pid; sleep 60"), match=EVERYBODY)
    with World(tmp_path, gates=[checks]) as world:
        handle = world.launch(Agent("done"), workspace=warm_box.url(str(tmp_path)))
        pid = tmp_path / "pid"
        world.until(lambda: pid.exists() and pid.read_text().strip())
        world.do(world.supervisor.kill(handle))
        assert world.result(handle).ending == "killed"
        number = int(pid.read_text())
        world.until(lambda: number not in warm_box.processes())
