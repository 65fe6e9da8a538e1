"""A member's gates apply when a file below it changed, wherever the agent works (J6)."""

import json
import os
from pathlib import Path

import pytest

from conftest import git
from hook_runs import ask, new_project, payload, stops, told, trust

ROOT = 'members = ["packages/*"]\n'
FAILS = '[gates.t]\nrun = "echo ran >> ran; pwd; exit 1"\nwhen = "always"\n'


@pytest.fixture
def project(git_project):
    """A repository with members a and b, whose gates fail."""
    root = Path(git_project)
    new_project(root, ROOT)
    for name in ("a", "b"):
        new_project(root / "packages" / name, FAILS)
        (root / "packages" / name / "x.py").write_text("1\n")
    (root / ".gitignore").write_text("ran\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "members")
    return root


def start(project, **fields):
    ask(payload("claude", project, hook_event_name="SessionStart", source="startup", **fields))


def stop(project, **fields):
    """Return the gates that blocked a stop, as its reason names them."""
    reply = ask(payload("claude", project, **fields))
    said = json.loads(reply.stdout or "{}").get("reason", "")
    return [name for name in ("a", "b") if f"packages/{name}:t" in said]


@pytest.mark.rule("J6")
def test_only_the_gates_of_changed_members_apply_and_run_in_their_folder(project):
    start(project)
    assert stop(project) == []
    (project / "packages/a/x.py").write_text("2\n")
    assert stop(project) == ["a"]
    assert (project / "packages/a/ran").exists()
    assert not (project / "packages/b/ran").exists()
    (project / "packages/b/new.py").write_text("2\n")
    assert stop(project, last_assistant_message="again") == ["a", "b"]


@pytest.mark.rule("J6")
def test_a_change_counts_wherever_the_agent_stands(project):
    start(project)
    (project / "docs").mkdir()
    (project / "packages/a/x.py").write_text("2\n")
    assert stop(project / "docs") == ["a"]
    assert stop(project / "packages/b") == ["a", "b"]  # its own file is on the way


@pytest.mark.rule("J6")
def test_what_was_changed_before_the_session_does_not_count_until_it_changes_again(project):
    (project / "packages/a/x.py").write_text("2\n")
    start(project)
    assert stop(project) == []
    git(project, "checkout", "-q", "packages/a/x.py")  # clean by now, and changed since the start
    assert stop(project) == ["a"]


@pytest.mark.rule("J6", "A8")
def test_a_member_whose_changes_were_undone_after_a_send_back_does_not_count(project):
    new_project(project, ROOT + '[gates.top]\nrun = "true"\nwhen = "always"\n')
    git(project, "commit", "-qam", "top")
    start(project)
    (project / "packages/a/x.py").write_text("2\n")
    assert stop(project) == ["a"]
    git(project, "checkout", "-q", "packages/a/x.py")
    assert stop(project, stop_hook_active=True) == []
    assert [outcome for outcome, _ in stops()] == ["blocked", "passed"]


@pytest.mark.rule("J6")
def test_a_committed_change_counts(project):
    start(project)
    (project / "packages/b/x.py").write_text("2\n")
    git(project, "commit", "-qam", "change")
    assert stop(project) == ["b"]


@pytest.mark.rule("J6")
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_a_change_that_git_was_told_to_overlook_counts(project, flag):
    start(project)
    git(project, "update-index", flag, "packages/a/x.py")
    (project / "packages/a/x.py").write_text("2\n")
    assert stop(project) == ["a"]


@pytest.mark.rule("J6")
def test_a_change_that_git_was_told_to_replace_counts(project):
    start(project)
    git(project, "tag", "before")
    (project / "packages/a/x.py").write_text("2\n")
    git(project, "commit", "-qam", "changed")
    git(project, "replace", "before", "HEAD")
    assert stop(project) == ["a"]


@pytest.mark.rule("J6")
def test_without_a_known_start_all_members_count(project):
    assert stop(project) == ["a", "b"]


@pytest.mark.rule("J6")
def test_outside_of_git_all_members_count(tmp_path):
    root = new_project(tmp_path / "p", ROOT)
    new_project(root / "packages/a", FAILS)
    start(root)
    assert stop(root) == ["a"]


@pytest.mark.rule("J6")
def test_a_member_without_a_tracked_file_always_counts(project):
    new_project(project / "packages/ignored", FAILS.replace("gates.t", "gates.u"))
    (project / ".git/info/exclude").write_text("/packages/ignored\n")
    start(project)
    reply = ask(payload("claude", project))
    assert "packages/ignored:u" in json.loads(reply.stdout)["reason"]


@pytest.mark.rule("J6", "N5")
def test_an_untrusted_member_is_said_at_the_start_and_when_it_changed(project):
    path = project / "packages/c/notyet.toml"
    new_project(path.parent, FAILS, trusted=False)
    begun = payload("claude", project, hook_event_name="SessionStart", source="startup")
    assert f"{path} is not trusted" in told(ask(begun))
    git(project, "add", "-A")
    assert f"{path} is not trusted" in told(ask(payload("claude", project)))
    assert not (path.parent / "ran").exists()


@pytest.mark.rule("J6", "N5")
def test_an_agent_cannot_shed_members(project):
    start(project)
    (project / "packages/a/x.py").write_text("2\n")
    (project / "notyet.toml").write_text("")
    (project / "packages/a/notyet.toml").unlink()
    for number in range(50):
        (project / f"packages/{number:05}").mkdir()
    assert stop(project) == ["a"]
    os.rename(project / "packages/a", project / "elsewhere")
    (project / "packages/a").symlink_to("../elsewhere")
    reply = ask(payload("claude", project, last_assistant_message="again"))
    assert "packages/a is a link" in reply.stdout


@pytest.mark.rule("J6", "J7")
def test_two_files_that_define_the_same_gate_are_two_gates(project):
    text = ROOT + FAILS.replace("exit 1", "echo root; exit 1")
    (project / "notyet.toml").write_text(text)
    trust(project / "notyet.toml")
    start(project)
    (project / "packages/a/x.py").write_text("2\n")
    reason = json.loads(ask(payload("claude", project)).stdout)["reason"]
    assert "packages/a:t" in reason
    assert (project / "ran").exists()
    assert (project / "packages/a/ran").exists()
    assert stops() == [("blocked", "t, packages/a:t")]


@pytest.mark.rule("J6", "N5")
def test_members_of_a_linked_work_tree_are_trusted_and_run_there(project, tmp_path):
    tree = tmp_path / "tree"
    git(project, "worktree", "add", "-q", str(tree))
    start(tree)
    assert stop(tree) == []
    (tree / "packages/a/x.py").write_text("2\n")
    assert stop(tree, last_assistant_message="again") == ["a"]
    assert (tree / "packages/a/ran").exists()
    assert not (project / "packages/a/ran").exists()


@pytest.mark.rule("J6")
def test_a_stop_reads_no_file_of_a_member_that_did_not_change(project):
    start(project)
    for name in ("a", "b"):  # that it is gone is said where it is read
        os.unlink(project / "packages" / name / "notyet.toml")
        git(project, "update-index", "--assume-unchanged", f"packages/{name}/notyet.toml")
    (project / "packages/a/x.py").write_text("2\n")
    reply = ask(payload("claude", project))
    assert "packages/a/notyet.toml was removed" in told(reply)
    assert "packages/b/notyet.toml" not in told(reply)


@pytest.mark.rule("J6")
def test_a_glob_that_matches_ten_thousand_folders_hides_no_member_and_is_said(project):
    for number in range(10_000):
        (project / f"packages/{number:05}").mkdir()
    reply = ask(payload("claude", project))
    assert "packages/a:t" in json.loads(reply.stdout)["reason"]
    assert "members" not in told(reply)
    for number in range(1_001):
        (project / f"packages/{number:05}/notyet.toml").touch()
    reply = ask(payload("claude", project, last_assistant_message="again"))
    assert "packages/b:t" in json.loads(reply.stdout)["reason"]
    assert "`members` match more than 1,000 folders that are not trusted" in told(reply)
    assert "990 more files are not trusted" in told(reply)
    assert told(reply).count("is not trusted") <= 20  # on stderr too
