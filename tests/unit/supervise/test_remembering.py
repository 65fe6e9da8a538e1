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


def test_a_task_that_changes_nothing_is_asked_unless_it_passed_on_these_files(world, place):
    place.write("bad")
    gone = Agent("done!", lambda _: (place.project / "bad").unlink() or "mended")
    assert world.ran(gone, **here(place)).outcome == "passed"
    assert place.asked == ["g", "g"]
    assert world.ran(Agent("an answer", id="s2"), **here(place)).outcome == "passed"
    assert place.asked == []
    assert world.rows("SELECT * FROM starts") == []


def test_a_task_that_changes_something_is_gated_and_its_pass_is_remembered(world, place):
    held = Agent(writes(place, "bad"), lambda _: (place.project / "bad").unlink() or "mended")
    place.write("more", "x")
    assert world.ran(held, **here(place)).outcome == "passed"
    assert place.asked == ["g", "g"]
    first = world.ran(Agent(writes(place, "new"), id="s2"), **here(place))
    assert (first.outcome, place.asked) == ("passed", ["g"])
    (place.project / "new").unlink()
    again = world.ran(Agent(writes(place, "new"), id="s3"), **here(place))
    assert (again.outcome, place.asked) == ("passed", [])


def test_an_agent_of_notyet_with_that_changes_nothing_is_no_success(tmp_path):
    folder = project(tmp_path / "p", '[[turn]]\nsay = "Done! All tests pass now."\n')
    git(folder, "init", "--quiet")
    done = run_with(folder)
    assert done.returncode != 0
    assert "ready failed" in done.stderr
    assert "sent back 1/3" in done.stderr
    assert ("skipped", "unchanged") not in query("SELECT outcome, why FROM stops")
