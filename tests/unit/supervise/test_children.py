"""Agents that start agents: who waits for whom, how many there may be, and who gets reports."""

import asyncio

import pytest

from notyet.core.session import Turn
from notyet.errors import Refused
from supervised import Agent, World
from support import gate


def parent_of(world, **fields):
    agent = Agent(Agent.WAIT, **({"id": "parent"} | fields))
    handle = world.launch(agent)
    world.at_work(agent)
    return agent, handle


@pytest.mark.rule("K9")
def test_a_parents_stop_comes_after_its_childrens_subagent_stop(world):
    order = []

    async def slow(event, ctx):
        await asyncio.sleep(0.1)  # longer than a parent waits before it looks again

    world.engine.on("subagent_stop", slow)
    for name in ("stopping", "subagent_stopping", "stop", "subagent_stop"):
        world.engine.on(name, lambda event, ctx, name=name: order.append(name))
    parent, above = parent_of(world)
    child = Agent(Agent.WAIT, id="child")
    below = world.spawn(child, parent=above)
    world.at_work(child)
    parent.come_back(Turn(text="done"))
    world.until(lambda: world.state(above) == "settling")
    assert order == []
    child.come_back(Turn(text="report"))
    world.result(below)
    world.result(above)
    assert order == ["subagent_stopping", "subagent_stop", "stopping", "stop"]


@pytest.mark.rule("C9")
def test_a_users_message_does_not_wait_for_the_children(world):
    parent, above = parent_of(world)
    child = Agent(Agent.WAIT, id="child")
    below = world.spawn(child, parent=above)
    world.at_work(child)
    parent.come_back(Turn(text="I wait for my subagent."))
    world.until(lambda: world.state(above) == "settling")
    world.do(world.supervisor.say(above, "What is taking so long?"))
    world.until(lambda: len(parent.got) == 2)
    assert parent.got[1] == "What is taking so long?"
    assert world.state(below) == "running"
    world.do(world.supervisor.kill(above))


@pytest.mark.rule("K9")
def test_a_parent_waits_no_longer_than_the_expiry_and_the_gates_are_told_who_is_overdue(tmp_path):
    asked = []
    with World(tmp_path, gates=[gate("g", asked.append)], children_expiry=0.05) as world:
        parent, above = parent_of(world)
        child = Agent(Agent.WAIT, id="child")
        below = world.spawn(child, parent=above)
        world.at_work(child)
        parent.come_back(Turn(text="done"))
        result = world.result(above)
        world.do(world.supervisor.kill(below))
    assert result.outcome == "passed"
    ((late,),) = [event.background_tasks for event in asked]
    assert (late.id, late.type, late.status) == (below.task_id, "subagent", "overdue")
    said = f"task {above.task_id} waited 0.05 s for 1 children, and is gated without them"
    assert said in world.warnings


@pytest.mark.rule("K13")
def test_agents_may_be_nested_as_deep_as_the_limit_says_and_a_refusal_says_why(tmp_path):
    with World(tmp_path, max_depth=2) as world:
        agents = [Agent(Agent.WAIT, id=f"s{n}") for n in range(4)]
        main = world.launch(agents[0])
        child = world.spawn(agents[1], parent=main)
        grandchild = world.spawn(agents[2], parent=child)
        assert world.view(grandchild).task.depth == 2
        with pytest.raises(Refused, match="agents may be nested 2 deep, and this one would be"):
            world.spawn(agents[3], parent=grandchild)
        assert agents[3].got == []
        world.do(world.supervisor.kill(main))


@pytest.mark.rule("K13")
def test_children_are_counted_while_they_work_and_also_while_they_are_gated(tmp_path):
    with World(tmp_path, max_children=2) as world:
        _, above = parent_of(world)
        children = [Agent(Agent.WAIT, id=f"c{n}") for n in range(2)]
        handles = [world.spawn(child, parent=above) for child in children]
        with pytest.raises(Refused, match="2 children are at work already, of 2 at once"):
            world.spawn(Agent(id="c3"), parent=above)
        world.at_work(*children)
        children[0].come_back(Turn(text="done"))
        world.result(handles[0])
        assert world.spawned(Agent(id="c3"), parent=above).ending == "done"
        world.do(world.supervisor.kill(above))


@pytest.mark.rule("K13")
def test_a_parent_that_has_ended_gets_no_child(world):
    parent, above = parent_of(world)
    parent.come_back(Turn(text="done"))
    world.result(above)
    with pytest.raises(Refused, match=f"the parent task {above.task_id} has ended; its result"):
        world.spawn(Agent(), parent=above)


@pytest.mark.rule("C3", "K6")
@pytest.mark.parametrize(
    ("verb", "ending"), [("kill", "killed"), ("reset", "reset"), ("interrupt", "interrupted")]
)
def test_ending_a_task_ends_what_it_started_and_what_that_started(world, verb, ending):
    _, above = parent_of(world)
    child, grandchild = Agent(Agent.WAIT, id="c"), Agent(Agent.WAIT, id="g")
    below = world.spawn(child, parent=above)
    deepest = world.spawn(grandchild, parent=below)
    world.at_work(child, grandchild)
    assert world.do(getattr(world.supervisor, verb)(above)) is True
    handles = (above, below, deepest)
    assert [world.result(each).ending for each in handles] == [ending] * 3
    assert (child.aborts, grandchild.aborts) == (1, 1)


@pytest.mark.rule("K8", "K9", "B7")
def test_a_report_reaches_its_parent_before_the_parent_may_stop(tmp_path):
    asked = []
    with World(tmp_path) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        world.engine.on("stopping", lambda event, ctx: asked.append(event.lastAssistantMessage))
        parent, above = parent_of(world)
        parent.answers.append("I read it")
        child = Agent(Agent.WAIT, id="child")
        below = world.spawn(child, parent=above, label="finder")
        world.at_work(child)
        parent.come_back(Turn(text="waiting for it"))
        child.come_back(Turn(text="found"))
        result = world.result(above)
        assert world.view(below).delivery == "delivered"
        assert world.view(above).source == "children"
    assert parent.got == ["do it", "Subagent finder has finished.\nIts report:\nfound"]
    assert asked == ["I read it"]
    assert (result.text, result.steers) == ("I read it", 0)


@pytest.mark.rule("K8")
def test_a_report_whose_parent_has_ended_goes_to_the_grandparent(tmp_path):
    with World(tmp_path, children_expiry=0.0) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        main, above = parent_of(world)
        main.answers.append("read")
        child, grandchild = Agent(Agent.WAIT, id="c"), Agent(Agent.WAIT, id="g")
        below = world.spawn(child, parent=above)
        deepest = world.spawn(grandchild, parent=below, label="deep")
        world.at_work(child, grandchild)
        child.come_back(Turn(text="child's report"))
        world.result(below)
        grandchild.come_back(Turn(text="deep report"))
        world.until(lambda: world.view(deepest).delivery == "delivered")
        main.come_back(Turn(text="done"))
        world.result(above)
    assert "deep report" in main.got[1]


@pytest.mark.rule("K8")
def test_an_undeliverable_report_is_suspended_with_a_visible_error(tmp_path):
    with World(tmp_path, children_expiry=0.0) as world:
        world.supervisor.deliver = world.supervisor.tell_parent
        main, above = parent_of(world)
        child = Agent(Agent.WAIT, id="c")
        below = world.spawn(child, parent=above)
        world.at_work(child)
        main.come_back(Turn(text="done"))
        world.result(above)
        child.come_back(Turn(text="too late"))
        world.until(lambda: world.view(below).delivery == "suspended")
        view = world.view(below)
    assert view.delivery_error == "its parent and all tasks above it have ended"
    assert any(f"notyet tasks retry {below.task_id}" in said for said in world.warnings)


def test_a_session_works_on_one_task_at_a_time(world):
    agent = Agent(Agent.WAIT, "next")
    handle = world.launch(agent)
    with pytest.raises(Refused, match=f"this session is at work on task {handle.task_id}"):
        world.launch(agent)
    world.at_work(agent)
    agent.come_back(Turn(text="done"))
    world.result(handle)
    assert world.ran(agent).text == "next"
