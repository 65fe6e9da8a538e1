"""Which presets are proposed, and what they look like in a file."""

import tomllib

import pytest

from notyet.cli.init.text import gates_text
from notyet.cli.init.trial import Trial, missing_before
from notyet.project import detect
from preset_questions import program

PYTEST = {"pytest.ini": ""}
PRE_COMMIT = {".pre-commit-config.yaml": "repos: []\n"}
IN_GIT = {".git/HEAD": ""}


def found(root):
    return {one.name: one.uses or one.run for one in detect(root).proposals}


def test_a_repository_with_checks_gets_no_preset_that_nothing_asks_for(project):
    assert found(project(PYTEST | IN_GIT)) == {"tests": "pytest -q"}


def test_a_worktree_is_a_repository_too(project):
    program(project.tools, "pre-commit", "")
    here = {".git": "gitdir: elsewhere\n"}
    assert found(project(PRE_COMMIT | here)) == {"pre-commit": "pre-commit"}


def test_without_any_check_or_outside_of_git_no_preset_is_proposed(project):
    assert found(project(IN_GIT)) == {}


def test_outside_of_git_a_hook_runner_stays_a_command(project):
    program(project.tools, "pre-commit", "")
    assert found(project(PRE_COMMIT)) == {"pre-commit": "pre-commit run --all-files"}


@pytest.mark.parametrize(
    ("files", "tool", "name"),
    [
        (PRE_COMMIT, "pre-commit", "pre-commit"),
        ({"prek.toml": ""}, "prek", "pre-commit"),
        ({"lefthook.yml": "pre-commit:\n"}, "lefthook", "lefthook"),
        ({"hk.pkl": ""}, "hk", "hk"),
    ],
)
def test_a_hook_runner_is_a_preset_once_it_is_installed(files, tool, name, project):
    root = project(files | IN_GIT)
    assert found(root)[name] != name, "a command, which says what to install"
    program(project.tools, tool, "")
    assert found(root)[name] == name


@pytest.mark.parametrize(
    ("file", "tool"),
    [(".gitleaks.toml", "gitleaks"), (".secrets.baseline", "detect-secrets-hook")],
)
def test_secrets_are_scanned_where_the_project_does_and_can(file, tool, project):
    root = project({file: ""} | IN_GIT)
    assert found(root) == {}
    program(project.tools, tool, "")
    assert found(root) == {"secrets": "no:secrets"}


def test_a_preset_is_written_as_uses_and_needs_no_program_of_its_own(project):
    program(project.tools, "gitleaks", "")
    root = project({".gitleaks.toml": ""} | IN_GIT)
    one = detect(root).proposals[-1]
    gates = tomllib.loads(gates_text([Trial(one)]))["gates"]
    assert gates == {"secrets": {"uses": "no:secrets"}}
    assert missing_before(root, one) == ""
    assert one.shown == "uses no:secrets"
