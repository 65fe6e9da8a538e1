"""Supervised agents meet their gates only when it matters (N1)."""

import pytest

from conftest import git
from gated_files import Place
from hook_runs import query
from supervised import Agent, World
from with_runs import project, run_with

pytestmark = pytest.mark.rule("N1")


@pytest.fixture
def place(git_project, tmp_path):
    return Place(git_project, tmp_path)


@pytest.fixture
def world(place):
    with World(place.marks.parent, gates=place.gates) as made:
        yield made


def writes(place, name, text="x"):
    def act(_prompt):
        place.write(name, text)
        return "done"

    return act


def here(place):
    return {"cwd": str(place.project)}


def test_a_task_that_changes_nothing_meets_nobody(world, place):
    place.write("bad")
    assert world.ran(Agent("an answer"), **here(place)).outcome == "skipped"
    assert world.spawned(Agent("another", id="s2"), **here(place)).outcome == "skipped"
    assert place.asked == []
    assert world.rows("SELECT outcome, why FROM stops") == [("skipped", "unchanged")] * 2


def test_a_task_that_changes_something_is_gated_and_its_pass_is_remembered(world, place):
    held = Agent(writes(place, "bad"), lambda _: (place.project / "bad").unlink() or "mended")
    place.write("more", "x")
    assert world.ran(held, **here(place)).outcome == "skipped"  # as it was when it began
    assert place.asked == ["g"]
    first = world.ran(Agent(writes(place, "new"), id="s2"), **here(place))
    assert (first.outcome, place.asked) == ("passed", ["g"])
    (place.project / "new").unlink()
    again = world.ran(Agent(writes(place, "new"), id="s3"), **here(place))
    assert (again.outcome, place.asked) == ("passed", [])


def test_a_subagent_begins_with_what_its_parent_did(world, place):
    parent = world.launch(Agent(Agent.WAIT), **here(place))
    place.write("bad")
    child = world.spawned(Agent("looked", id="s2"), parent=parent, **here(place))
    assert (child.outcome, place.asked) == ("skipped", [])


def test_an_agent_of_notyet_with_that_changes_nothing_meets_nobody(tmp_path):
    folder = project(tmp_path / "p")
    git(folder, "init", "--quiet")
    done = run_with(folder)
    assert done.returncode == 0, done.stderr
    assert query("SELECT outcome, why FROM stops") == [("skipped", "unchanged")]
    assert "ready unchanged\n" in done.stderr
    assert "nothing was checked" in done.stderr
    assert "failed" not in done.stderr


def test_a_pass_that_is_remembered_is_shown_as_such(tmp_path):
    script = '[[turn]]\nsteps = [{ tool = "bash", run = "touch ready" }, { say = "x" }]\n'
    folder = project(tmp_path / "p", script)
    git(folder, "init", "--quiet")
    said = []
    for _ in range(2):
        (folder / "ready").unlink(missing_ok=True)
        said.append(run_with(folder).stderr)
    assert "ready passed (" in said[0]
    assert "ready passed before\n" in said[1]
