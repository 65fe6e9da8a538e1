"""Mistakes of whoever uses a supervisor, each said in words at once."""

import pytest

from notyet import Engine
from notyet.errors import Refused
from notyet.ledger.memory import MemoryLedger
from notyet.supervise import Handle, Supervisor, SupervisorSettings
from supervised import Agent


def test_a_supervisor_needs_a_ledger_that_lasts():
    with pytest.raises(TypeError, match=r"needs a durable ledger, like Ledger\('tasks.db'\)"):
        Supervisor(Engine(), MemoryLedger())


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_a_prompt_needs_words(world, prompt):
    for verb in (world.supervisor.launch, world.supervisor.spawn):
        with pytest.raises(ValueError, match="a prompt needs words"):
            world.do(verb(Agent(), prompt))
    agent = Agent(Agent.WAIT)
    handle = world.spawn(agent)
    for verb in (world.supervisor.say, world.supervisor.steer):
        with pytest.raises(ValueError, match="a prompt needs words"):
            world.do(verb(handle, prompt))
    world.do(world.supervisor.kill(handle))


def test_cleanup_is_to_keep_or_to_delete(world):
    with pytest.raises(ValueError, match="cleanup must be 'keep' or 'delete', not 'burn'"):
        world.spawn(Agent(), cleanup="burn")


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_timeout_is_a_number_of_seconds(world, timeout):
    for start in (world.spawn, world.launch):
        with pytest.raises(ValueError, match="timeout is a number of seconds above 0"):
            start(Agent(), timeout=timeout)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("grace", -1, "grace must be a number from 0 up, not -1"),
        ("max_depth", "5", "max_depth must be a number from 0 up, not '5'"),
        ("poll", 0, "poll must be a number above 0"),
        ("lease", 0, "lease must be a number above 0"),
        ("steer_pause", True, "steer_pause must be a number from 0 up, not True"),
    ],
)
def test_settings_are_numbers(name, value, words):
    with pytest.raises(ValueError, match=words):
        SupervisorSettings(**{name: value})


def test_nothing_is_started_before_the_supervisor_is(tmp_path, world):
    idle = Supervisor(Engine(), world.ledger)
    with pytest.raises(Refused, match="the supervisor is not running; use it in: async with"):
        world.do(idle.spawn(Agent(), "do it"))


def test_unknown_tasks_are_refused_by_name(world):
    for verb in ("kill", "reset", "interrupt", "task"):
        with pytest.raises(Refused, match="there is no task t404; list them with: notyet tasks"):
            world.do(getattr(world.supervisor, verb)("t404"))
    with pytest.raises(Refused, match="there is no task t404"):
        world.do(world.supervisor.say("t404", "hello"))


def test_tasks_are_listed_with_what_became_of_them(world):
    handle = world.spawn(Agent("done"), label="first")
    world.result(handle)
    agent = Agent(Agent.WAIT, id="s2")
    running = world.launch(agent, label="second")
    world.at_work(agent)
    new, old = world.do(world.supervisor.tasks())
    assert (old.task.label, old.state, old.ending, old.text) == ("first", "ended", "done", "done")
    assert (old.delivery, old.outcome, old.session_id) == ("delivered", "skipped", "s1")
    assert (new.task.label, new.state, new.ending, new.delivery) == ("second", "running", None, "")
    assert new.owner_alive
    assert new.ended_at is None
    assert len(world.do(world.supervisor.tasks(most=1))) == 1
    assert repr(running) == f"Handle({running.task_id!r})"
    assert isinstance(running, Handle)
    world.do(world.supervisor.kill(running))
