"""The gates of a worker's tasks: of clones, trusted or not, and of folders on other machines."""

import asyncio
from pathlib import Path

import pytest

from conftest import git
from notyet.core.task import Room
from notyet.fleet import Workspaces
from supervised import Agent, World
from workspaces import trust_there, write_there

FAILING = '[gates]\ntests = "test -e fixed || { echo not fixed; exit 1; }"\n'


@pytest.fixture
def shop(git_project):
    Path(git_project, "notyet.toml").write_text(FAILING)
    git(git_project, "add", ".")
    git(git_project, "commit", "--quiet", "-m", "gates")
    return Path(git_project).as_uri()


def begun(crew, tmp_path, opened, **options):
    work = Workspaces(str(tmp_path / "work"))
    crew.start(opened, engine_of=None, workspaces=work, **options)


def test_trusted_gates_run_in_the_clone_and_send_the_agent_back(crew, shop, tmp_path):
    agents = []

    def opened(order, cwd):
        fix = lambda _: (Path(cwd, "fixed").write_text("") and "") or "fixed"
        agents.append(Agent("done", fix))
        return agents[-1]

    task = crew.submit(cwd=shop)
    begun(crew, tmp_path, opened, trust=[shop])
    result = crew.result(task)
    assert (result.outcome, result.steers, result.text) == ("passed", 1, "fixed")
    assert "not fixed" in agents[0].got[1]


def test_gates_that_are_not_trusted_are_not_run_and_that_is_said(crew, shop, tmp_path):
    task = crew.submit(cwd=shop)
    begun(crew, tmp_path, lambda order, cwd: Agent("done"))
    result = crew.result(task)
    assert (result.outcome, result.stop_reason, result.steers) == ("skipped", "config", 0)
    said = "the gates of its project are not trusted; start workers with --trust"
    assert any(said in warning for warning in result.warnings)
    assert any("trust" in warning for warning in crew.warnings)


def test_what_is_said_of_gates_that_are_not_trusted_has_no_password(crew, git_project, shop):
    class Ready(Workspaces):
        def prepare(self, place, name):
            return str(git_project)

    task = crew.submit(cwd="https://bob:s3cret@host/shop.git")
    crew.start(lambda order, cwd: Agent("done"), engine_of=None, workspaces=Ready())
    said = (*crew.result(task).warnings, *crew.warnings)
    assert any("--trust https://host/shop.git" in text for text in said)
    assert not any("s3cret" in text for text in said)


def test_gates_of_a_folder_on_another_machine_run_there(crew, box, app, tmp_path):
    write_there(app, "notyet.toml", FAILING)
    trust_there(box, app)

    def opened(order, cwd):
        return Agent("done", lambda _: ((app / "fixed").write_text("") and "") or "fixed")

    task = crew.submit(cwd=box.url(app))
    begun(crew, tmp_path, opened)
    result = crew.result(task)
    assert (result.outcome, result.steers) == ("passed", 1)


def test_a_task_that_is_being_adopted_is_not_recovered_meanwhile(tmp_path, office):
    """A start hook takes its time, while the worker looks for what others left."""
    office.enter()
    with World(tmp_path, reopen=lambda ref: Agent("reopened")) as world:
        supervisor = world.supervisor

        async def both():
            at_hook, go_on = asyncio.Event(), asyncio.Event()

            async def first_prompt(session, task, engine):
                at_hook.set()
                await go_on.wait()
                return task.prompt

            supervisor._first_prompt = first_prompt
            agent = Agent("adopted")
            adopting = asyncio.ensure_future(supervisor.adopt(office.task(), agent, room=Room()))
            await at_hook.wait()
            found = await supervisor.recover(only="t9")
            go_on.set()
            return found, await (await adopting).result()

        found, result = world.do(both())
    assert found == ()
    assert result.text == "adopted"
