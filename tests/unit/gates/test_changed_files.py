"""The files that an agent changed: since its session began, else since the last commit."""

import os
from pathlib import Path

import pytest

from conftest import git
from notyet.config.find import state_folder
from notyet.core.event import StopEvent
from notyet.gates.changed_files import changed_files
from notyet.gates.presets import check as check_preset
from notyet.gates.question import Question
from notyet.gates.with_files import files_of
from notyet.gates.working_tree import WorkingTree
from notyet.git.snapshot_store import take_first
from preset_questions import ask

WHOLE = [range(1, 2**62)]


@pytest.fixture
def root(git_project):
    return Path(git_project)


def begin(root):
    about = {"host": "claude", "session_id": "s", "agent_id": "", "root": str(root)}
    assert take_first(state_folder(os.environ), **about, patience=30.0)


def question(root, **more):
    return Question(event=StopEvent(host="claude", session_id="s", cwd=str(root)), gate="g", **more)


def changed(root):
    return changed_files(question(root), WorkingTree(str(root), 60.0))


def test_what_differed_when_the_session_began_is_not_the_agents(root):
    (root / "mine.txt").write_text("mine\n")
    (root / "both.txt").write_text("mine\nmine\n")
    begin(root)
    (root / "both.txt").write_text("mine\nits\nmine\n")
    (root / "file.txt").write_text("two\n")
    (root / "new.txt").write_text("new\n")
    found = changed(root)
    assert found.since == "the session began"
    assert found.names == ("both.txt", "file.txt", "new.txt")
    assert found.added_lines("both.txt") == [range(2, 3)]
    assert found.added_lines("new.txt") == WHOLE


def test_what_the_agent_committed_is_still_its_change(root):
    begin(root)
    (root / "file.txt").write_text("two\n")
    git(root, "commit", "-qam", "two")
    assert changed(root).names == ("file.txt",)


def test_without_a_start_the_last_commit_counts(root):
    (root / "file.txt").write_text("one\ntwo\n")
    (root / "new dir").mkdir()
    (root / "new dir" / "a\nb").touch()
    (root / "staged").touch()
    git(root, "add", "staged")
    found = changed(root)
    assert found.since.startswith("the last commit (")
    assert found.names == ("file.txt", "new dir/a\nb", "staged")
    assert found.added_lines("file.txt") == [range(2, 3)]


def test_a_renamed_file_has_the_lines_that_it_had(root):
    (root / "file.txt").write_text("".join(f"{n}\n" for n in range(20)))
    begin(root)
    (root / "file.txt").rename(root / "other.txt")
    with (root / "other.txt").open("a") as file:
        file.write("more\n")
    found = changed(root)
    assert found.names == ("file.txt", "other.txt")
    assert found.existing() == found.regular() == ["other.txt"]
    assert found.added_lines("other.txt") == [range(21, 22)]


def test_with_a_submodule_git_status_says_what_changed(root, tmp_path):
    git(tmp_path, "clone", "-q", str(root), "sub")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../sub", "sub")
    (root / "file.txt").write_text("one\ntwo\n")
    (root / "new").write_text("new\n")
    found = changed(root)
    assert found.since == "the last commit (the repository has submodules)"
    assert found.existing() == [".gitmodules", "file.txt", "new"]
    assert found.added_lines("file.txt") == [range(2, 3)]
    assert found.added_lines("new") == WHOLE
    assert found.added_lines(".gitmodules") == WHOLE


def test_a_repository_without_commits_has_only_new_files(tmp_path):
    root = tmp_path / "new"
    root.mkdir()
    git(root, "init", "--quiet")
    (root / "a").write_text("a\n")
    found = changed(root)
    assert found.names == ("a",)
    assert found.added_lines("a") == WHOLE


def test_conflict_markers_that_the_agent_committed_are_found(root):
    begin(root)
    (root / "file.txt").write_text("<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n")
    git(root, "commit", "-qam", "resolved")
    answer = check_preset(question(root, options={"uses": "no:conflicts"}))
    assert "file.txt:1" in answer.reason
    assert not ask("no:conflicts", root).reason  # of a session without a start


def test_a_gate_gets_the_changed_files_below_its_folder(root):
    begin(root)
    for name in ("a/x.py", "a/x.txt", "a/-x.py", "b/x.py"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x\n")
    given = question(root, command={"dir": str(root / "a")}, options={"paths": ["*.py"]})
    assert files_of(given) == ["-x.py", "x.py"]
