"""Folders that an agent makes a work tree of another repository, or of its own: no gate is shed."""

import os
import shutil
from pathlib import Path

import pytest

from conftest import git
from hook_runs import ask, new_project, payload, stops, told, trust
from notyet.cli import person
from notyet.cli.main import main

FAILS = '[gates.t]\nrun = "exit 1"\nwhen = "always"\n'
BECAME = "became a work tree of"
MOVED = "is in another work tree or repository since its gates were trusted"


@pytest.fixture
def project(git_project):
    """A trusted project with a member, both of whose gates fail."""
    root = Path(git_project)
    new_project(root, f'members = ["packages/*"]\n{FAILS}')
    new_project(root / "packages/a", FAILS)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "gates")
    return root


def turn(folder, repository):
    """Make a folder a linked work tree of a repository, with git's own means."""
    tree = repository.parent / "tree"
    git(repository, "worktree", "add", "--quiet", "--detach", str(tree))
    shutil.rmtree(folder / ".git", ignore_errors=True)
    (tree / ".git").rename(folder / ".git")
    git(repository, "worktree", "repair", str(folder))


def other_repository(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    git(other, "commit", "--quiet", "--allow-empty", "-m", "one")
    return other


@pytest.mark.rule("N5")
@pytest.mark.parametrize("is_removed", [False, True], ids=["file kept", "file removed"])
def test_a_trusted_folder_that_became_a_work_tree_keeps_its_gates(tmp_path, project, is_removed):
    turn(project, other_repository(tmp_path))
    if is_removed:
        (project / "notyet.toml").unlink()
    assert '"decision": "block"' in ask(payload("claude", project)).stdout
    start = payload("claude", project, hook_event_name="SessionStart", session_id="s2")
    assert f"{project} {BECAME} {tmp_path}/other" in told(ask(start))


@pytest.mark.rule("N5", "A8")
def test_no_stop_passes_there_until_its_trust_is_taken_back(
    tmp_path, git_project, monkeypatch, capsys
):
    monkeypatch.setattr(person, "inside_agent", lambda _environ: "")
    project = new_project(Path(git_project), '[gates.t]\nrun = "true"\nwhen = "always"\n')
    turn(project, other_repository(tmp_path))
    assert "NOT CHECKED" in told(ask(payload("claude", project)))
    assert stops()[0][0] == "failed_open"
    assert main(["trust", "--revoke", str(project / "notyet.toml")]) == 0
    assert f"no longer trusted: {project}" in capsys.readouterr().out
    trust(project / "notyet.toml")
    ask(payload("claude", project, session_id="s2"))
    assert stops()[-1][0] == "passed"


@pytest.mark.rule("N5")
def test_a_work_tree_that_became_one_of_another_repository_is_reported(tmp_path, project):
    tree = tmp_path / "linked"
    git(project, "worktree", "add", "--quiet", str(tree))
    assert '"decision": "block"' in ask(payload("claude", tree)).stdout
    (tree / ".git").unlink()
    turn(tree, other_repository(tmp_path))
    (tree / "notyet.toml").unlink()
    said = told(ask(payload("claude", tree, session_id="s2")))
    assert f"{tree} is no longer in a work tree of {project}" in said
    assert "NOT CHECKED" in said


@pytest.mark.rule("J6", "A8")
@pytest.mark.parametrize("part", ["packages", "packages/a"])
def test_a_member_that_became_another_work_tree_lets_no_stop_pass(project, part):
    (project / "notyet.toml").write_text('members = ["packages/*"]\n[gates.t]\nrun = "true"\n')
    trust(project / "notyet.toml")
    turn(project / part, project)
    assert f"{project}/packages/a {MOVED}" in told(ask(payload("claude", project)))
    assert [outcome for outcome, _ in stops()] == ["failed_open"]


@pytest.mark.rule("N5", "A8")
def test_a_subagent_whose_work_tree_was_removed_has_not_passed(project):
    (project / "notyet.toml").write_text('[gates.t]\nrun = "true"\nwhen = "always"\nfor = "all"\n')
    trust(project / "notyet.toml")
    tree = project / "wt" / "x"
    git(project, "worktree", "add", "--quiet", str(tree))
    agent = {"agent_id": "a1", "agent_type": "coder"}
    start = payload("claude", tree, hook_event_name="SubagentStart", **agent)
    environ = {**os.environ, "CLAUDE_PROJECT_DIR": str(project)}
    ask(start, environ=environ)
    git(project, "worktree", "remove", "--force", str(tree))
    end = payload("claude", tree, hook_event_name="SubagentStop", **agent)
    said = told(ask(end, environ=environ))
    assert f"{tree} is no longer in a work tree of {project}" in said
    assert [outcome for outcome, _ in stops()] == ["failed_open"]
