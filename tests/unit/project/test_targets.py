"""Targets that a project gave names to are found."""

import pytest

from projects import shown


def test_targets_of_a_makefile_are_found(project):
    text = "T := test\nlint-all:\nall: x\nlint tests : x\n\ttest:\ntypes::\n\ncheck: lint\n"
    assert shown(project({"Makefile": text})) == {
        "lint": "make lint |  | Makefile:4",
        "types": "make types |  | Makefile:6",
        "tests": "make tests |  | Makefile:4",
    }


def test_a_target_for_all_counts_where_there_are_no_tests(project):
    assert shown(project({"GNUmakefile": "check:\n"})) == {"check": "make check |  | GNUmakefile:1"}


def test_recipes_of_a_justfile_are_found(project):
    text = "test := 'x'\n@lint:\n  x\ntest *args: lint\n  y\n"
    assert shown(project({"justfile": text})) == {
        "lint": "just lint |  | justfile:2",
        "tests": "just test |  | justfile:4",
    }


def test_tasks_of_a_taskfile_are_found(project):
    text = "version: 3\nvars:\n  lint: no\ntasks:\n  test:\n    cmds: [x]\n"
    assert shown(project({"Taskfile.yml": text})) == {"tests": "task test |  | Taskfile.yml:5"}


@pytest.mark.parametrize(
    "text",
    [
        "lint: FOO = 1\n",
        "lint: export FOO := 1\n",
        "lint:FOO+=1\n",
    ],
)
def test_a_variable_of_a_target_and_a_text_of_a_makefile_are_no_targets(project, text):
    assert shown(project({"Makefile": text})) == {}
    assert shown(project({"Makefile": f"{text}lint: x ; X=1 y\n"}))["lint"].startswith("make lint")


@pytest.mark.parametrize(
    "line", ['check arg="a:b":', "check a='x:' b=\"y\": dep", "check a=b *c:", "@check:"]
)
def test_a_recipe_may_have_parameters(project, line):
    assert set(shown(project({"justfile": f"{line}\n  x\n"}))) == {"check"}
