"""`notyet trust` in linked work trees: one record for the repository, and words that say so."""

import os

import pytest

from conftest import git
from hook_runs import new_project
from notyet.cli.main import main
from notyet.config.find import state_folder
from notyet.config.records import has_record

pytestmark = pytest.mark.rule("N5")


@pytest.fixture
def project(tmp_path):
    folder = new_project(tmp_path / "project", trusted=False)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "one")
    return folder


@pytest.fixture
def tree(project):
    git(project, "worktree", "add", "--quiet", str(project / "wt/x"))
    return project / "wt/x"


def trust(capsys, folder, *words):
    """Run the command; return its exit code and the last line of what it printed."""
    code = main(["trust", str(folder), *words])
    return code, capsys.readouterr().out.splitlines()[-1]


def test_a_repository_without_other_work_trees_is_told_nothing_of_them(project, capsys):
    done = "trusted: 1 gate of this file in force now"
    assert trust(capsys, project, "--yes") == (0, done)


def test_trust_in_either_work_tree_is_trust_in_both(project, tree, capsys):
    everywhere = f"in every work tree of {project}"
    done = f"trusted: 1 gate of this file in force now, {everywhere}"
    assert trust(capsys, tree, "--yes") == (0, done)
    assert has_record(state_folder(os.environ), f"{project}/notyet.toml")
    assert main(["trust", str(project), "--show"]) == 0
    assert f"{project}/notyet.toml  (trusted, {everywhere})" in capsys.readouterr().out
    for place in (tree, project):
        gone = f"no longer trusted: {place}/notyet.toml, {everywhere}"
        assert trust(capsys, place, "--revoke") == (0, gone)
        assert main(["trust", str(project), "--show"]) == 1
        assert trust(capsys, project, "--yes") == (0, done)


def test_status_says_whose_trust_it_is(project, tree, capsys, monkeypatch):
    assert main(["trust", str(project), "--yes"]) == 0
    for place, count in ((tree, 1), (project, 0)):
        monkeypatch.chdir(place)
        capsys.readouterr()
        main(["status"])
        assert capsys.readouterr().out.count(f"a work tree of {project}, with its trust") == count


def test_hooks_of_a_host_are_taken_back_once(project, tree, capsys):
    for folder in (project, tree):
        (folder / ".mux").mkdir()
        (folder / ".mux/stop").write_text("#!/bin/sh\n")
        (folder / ".mux/stop").chmod(0o755)
    assert main(["trust", str(project), "--read", "mux", "--yes"]) == 0
    assert main(["trust", str(tree), "--read", "mux", "--show"]) == 0
    capsys.readouterr()
    assert main(["trust", str(tree), "--revoke"]) == 0
    gone = [f"no longer trusted: {tree}/{name}" for name in ("notyet.toml", ".mux/stop")]
    out = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in out] == gone
