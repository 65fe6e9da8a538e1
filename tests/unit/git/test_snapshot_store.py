"""Snapshots are kept by agent: the first one counts, and a missing one has a reason."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from notyet.git import snapshot_store as store
from notyet.git.run import ODD, Unknown

DAY = 86_400.0


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "home" / "state" / "notyet")


def take_first(state, root, session="s", agent="", patience=30.0):
    return store.take_first(
        state, host="claude", session_id=session, agent_id=agent, root=root, patience=patience
    )


def find(state, root, session="s", agent="", parent=""):
    return store.find(
        state,
        host="claude",
        session_id=session,
        agent_id=agent,
        parent_session_id=parent,
        root=root,
    )


def why(*args, **values):
    with pytest.raises(Unknown) as caught:
        find(*args, **values)
    return caught.value.reason


def kept(state):
    return sorted(os.listdir(store.snapshots_folder(state)))


def test_the_first_snapshot_of_an_agent_counts(state, git_project):
    first = take_first(state, git_project)
    Path(git_project, "file.txt").write_text("two\n")
    assert take_first(state, git_project) is None
    assert find(state, git_project) == first
    assert first.text("file.txt") == "one\n"
    assert len(kept(state)) == 1


def test_snapshots_are_private(state, git_project):
    Path(git_project, "new").write_text("new")
    objects = take_first(state, git_project).objects
    for folder in (store.snapshots_folder(state), os.path.dirname(objects), objects):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700


def test_an_agent_without_a_start_began_with_its_session_or_the_one_around_it(state, git_project):
    outer = take_first(state, git_project, session="outer")
    assert find(state, git_project, session="s", agent="a", parent="outer") == outer
    Path(git_project, "b").write_text("b")
    session = take_first(state, git_project, session="s")
    assert find(state, git_project, session="s", agent="a", parent="outer") == session
    Path(git_project, "c").write_text("c")
    own = take_first(state, git_project, session="s", agent="a")
    assert find(state, git_project, session="s", agent="a", parent="outer") == own
    assert len({outer.tree, session.tree, own.tree}) == 3
    assert why(state, git_project, session="other", parent="outer") == store.NO_SNAPSHOT


def test_the_reason_is_kept_if_none_could_be_taken(state, tmp_path, git_project):
    session = take_first(state, git_project)
    assert take_first(state, git_project, agent="a", patience=0.0) is None
    assert why(state, git_project, agent="a") == "it took too long"
    assert take_first(state, git_project, agent="a") is None  # the start is over
    assert why(state, git_project, agent="a") == "it took too long"
    assert find(state, git_project, agent="b") == session


def test_a_note_does_not_replace_a_snapshot(state, git_project):
    first = take_first(state, git_project)
    about = {"host": "claude", "session_id": "s", "agent_id": "", "root": git_project}
    store.note_unknown(state, **about, reason="too late")
    assert find(state, git_project) == first
    assert len(kept(state)) == 1


def test_repositories_have_snapshots_of_their_own(state, git_project, tmp_path):
    first = take_first(state, git_project)
    (tmp_path / "link").symlink_to(git_project)
    assert find(state, str(tmp_path / "link")) == first
    assert why(state, str(tmp_path)) == store.NO_SNAPSHOT


@pytest.mark.parametrize("said", ["", "{", "[]", '{"root": 1}', '{"root": "/", "tree": "a"}'])
def test_a_damaged_record_is_no_snapshot(state, git_project, said):
    snapshot = take_first(state, git_project)
    Path(snapshot.objects).with_name("snapshot.json").write_text(said)
    assert why(state, git_project) == ODD


_RACE = """
import sys
from notyet.git.snapshot_store import take_first
state, root = sys.argv[1:]
sys.stdin.read()
about = {"host": "claude", "session_id": "s", "agent_id": "", "root": root}
print(take_first(state, **about, patience=30.0) is not None)
"""


def test_of_two_processes_at_once_one_wins(state, git_project):
    argv = [sys.executable, "-c", _RACE, state, git_project]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen(argv, **pipes) for _ in range(3)]
    time.sleep(0.3)
    for racer in racers:
        racer.stdin.close()
        racer.stdin = None
    assert sorted(racer.communicate()[0] for racer in racers) == ["False\n", "False\n", "True\n"]
    assert len(kept(state)) == 1
    assert find(state, git_project).text("file.txt") == "one\n"


def test_old_snapshots_are_pruned_and_unfinished_ones_sooner(state, git_project):
    take_first(state, git_project, session="old")
    take_first(state, git_project, session="new")
    folder = Path(store.snapshots_folder(state))
    (folder / ".left").mkdir()
    now = time.time()
    old = store.snapshot_folder(state, "claude", "old", "", git_project)
    os.utime(old, (now - 31 * DAY, now - 31 * DAY))
    os.utime(folder / ".left", (now - DAY, now - DAY))
    killed, under_way = (Path(store.baselines_folder(state)) / f"run-{n}" for n in "12")
    for run in (killed, under_way):
        (run / "tree").mkdir(parents=True)
    os.utime(killed, (now - 2 * DAY, now - 2 * DAY))
    store.prune(state)
    assert os.listdir(killed.parent) == [under_way.name]
    assert why(state, git_project, session="old") == store.NO_SNAPSHOT
    assert find(state, git_project, session="new")
    assert len(kept(state)) == 1
    store.prune(state, now + 31 * DAY)
    assert kept(state) == []


def test_there_may_be_nothing_to_prune(state):
    store.prune(state)


def test_the_state_folder_may_not_be_writable(tmp_path, git_project):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        take_first(str(tmp_path / "file" / "notyet"), git_project)
