"""`notyet guard`: what a range of changes weakens, with its exit codes."""

import json
from pathlib import Path

import pytest

from conftest import git
from notyet.cli.main import main

TESTS = "def test_a():\n    assert 1\n\n\ndef test_b():\n    assert 2\n"
FEWER = "def test_a():\n    assert 1\n"


@pytest.fixture
def root(git_project, monkeypatch):
    """A repository with two tests on `base`, and a branch `work` that is checked out."""
    root = Path(git_project)
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(root.parent / "home"))
    monkeypatch.chdir(root)
    git(root, "checkout", "-qb", "base")
    put(root, "test_it.py", TESTS)
    git(root, "checkout", "-qb", "work")
    return root


def put(root, name, text):
    """Commit a file."""
    (root / name).write_text(text)
    git(root, "add", ".")
    git(root, "commit", "-qm", name)


@pytest.fixture
def guard(capsys):
    """Return a function that runs the command; it returns the exit code and what was found."""

    def run(*args):
        code = main(["guard", *args, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize("base", ["HEAD~1", "base", "base..HEAD", "base...HEAD"])
def test_a_test_that_a_commit_removed_is_found_from_every_kind_of_base(root, guard, base):
    put(root, "test_it.py", FEWER)
    code, said = guard(base)
    assert code == 1
    assert [one["what"] for one in said["findings"]] == ["1 test removed: test_b"]
    assert guard("HEAD")[0] == 0


def test_what_came_to_the_base_after_this_branch_left_it_is_not_missed_here(root, guard):
    put(root, "notes.txt", "work\n")
    git(root, "checkout", "-q", "base")
    put(root, "test_more.py", TESTS)
    git(root, "checkout", "-q", "work")
    code, said = guard("base")
    assert (code, said["findings"]) == (0, [])
    assert said["since"] == "where this branch left base"
    assert guard("base..work")[0] == 1  # the two commits, as they are


def test_a_branch_without_a_common_commit_is_compared_as_it_is(root, guard):
    git(root, "checkout", "-q", "--orphan", "other")
    put(root, "test_it.py", FEWER)
    assert guard("base")[0] == 1
    code, said = guard("base...other")
    assert (code, said["problem"]) == (2, "base...other has no common commit")


def test_a_name_that_is_no_commit_is_not_taken_for_an_option(root, guard):
    code, said = guard("no-such-commit")
    assert (code, said["problem"]) == (2, "no-such-commit is not a commit here")
