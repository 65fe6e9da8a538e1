"""Where an agent's files are, and where a command runs."""

import pytest

from notyet import Command, StartEvent, StopEvent, Task
from notyet.core.gate import Function, Gate, machine_of, where
from notyet.core.remote import Remote

pytestmark = pytest.mark.rule("M1")

BOX = Remote(host="box", path="/srv/app", user="dev")


def runs(agents="", /, **fields):
    return where(Command(script="make", **fields), agents)


def test_a_command_runs_here_by_default():
    assert runs() is None
    assert runs(dir="/srv") is None
    assert where(Command(script="make")) is None


def test_a_command_runs_where_the_agents_files_are():
    assert runs("ssh://dev@box/srv/app") == BOX


def test_the_workspace_of_a_command_comes_first():
    assert runs("ssh://other/", workspace="ssh://dev@box/srv/app") == BOX
    assert runs("ssh://other/", workspace="local") is None
    assert runs(workspace="ssh://dev@box/srv/app", dir="/srv") == BOX


def test_a_folder_without_a_machine_is_one_of_this_machine():
    assert runs("ssh://dev@box/srv/app", dir="/here") is None


def test_a_gate_runs_where_its_command_does_and_a_function_here():
    there = Gate(name="g", check=Command(script="make", workspace="ssh://dev@box/srv/app"))
    assert machine_of(there) == BOX
    assert machine_of(Gate(name="g", check=Command(script="make")), BOX.url) == BOX
    assert machine_of(Gate(name="g", check=Function(print)), BOX.url) is None


@pytest.mark.parametrize("make", [StopEvent, StartEvent, lambda **f: Task(id="t", prompt="p", **f)])
def test_a_workspace_has_one_form_wherever_it_is_named(make):
    assert make().workspace == ""
    assert make(workspace="ssh://dev@box//srv/./app/").workspace == "ssh://dev@box/srv/app"
    with pytest.raises(ValueError, match="write it like ssh://"):
        make(workspace="box:/srv/app")


def test_here_needs_no_words_in_an_event_but_is_a_choice_in_a_task():
    assert StopEvent(workspace="local").workspace == StartEvent(workspace="local").workspace == ""
    assert Task(id="t", prompt="p", workspace="local").workspace == "local"


@pytest.mark.parametrize("make", [StopEvent, lambda **f: Task(id="t", prompt="p", **f)])
def test_a_workspace_is_text(make):
    with pytest.raises(TypeError, match="workspace is text"):
        make(workspace=None)
