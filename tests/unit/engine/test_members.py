"""Which members changed since a session began: real git, both ledgers (J6)."""

from pathlib import Path

import pytest

from conftest import git
from notyet import Ledger
from notyet.core.event import StartEvent
from notyet.core.gate import Source
from notyet.core.limits import History
from notyet.engine import members
from notyet.engine.members import changed_members
from notyet.engine.stop import Stop
from notyet.engine.unchanged import remember_start
from notyet.git.fingerprint import FileSet, fingerprint
from notyet.git.run import Unknown
from notyet.ledger.memory import MemoryLedger
from notyet.run.drive import drive_sync
from support import gate, stop

pytestmark = pytest.mark.rule("J6")
GLOBS = ("packages/*",)
KNOWN = ["packages/a", "packages/b"]


class Project:
    """A repository with two members, in a folder of it or at its top."""

    def __init__(self, top, ledger, inner=""):
        self.top, self.ledger = Path(top), ledger
        self.root = self.top / inner if inner else self.top
        for name in ("a", "b"):
            self.write(f"packages/{name}/x.py", "1\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "members")

    def write(self, name, text="changed\n"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *args):
        git(self.top, *args)

    def begin(self, **options):
        event = StartEvent(session_id="s1", cwd=str(self.root))
        known = [(str(self.root), GLOBS)]
        drive_sync(remember_start(event, [], self.ledger, 5.0, members=known, **options))

    def changed(self, known=KNOWN, patience=5.0):
        event = stop(cwd=str(self.root), session_id="s1")
        project = (str(self.root), GLOBS, known)
        self.looked = {}
        found = changed_members(event, self.ledger, patience, project, self.looked)
        return None if found is None else sorted(found)


@pytest.fixture(params=["file", "memory"])
def ledger(request, tmp_path):
    return Ledger(tmp_path / "ledger.db") if request.param == "file" else MemoryLedger()


@pytest.fixture
def project(git_project):
    return Project(git_project, MemoryLedger())


@pytest.mark.parametrize("inner", ["", "inner"])
def test_members_with_changed_files_changed(git_project, ledger, inner):
    project = Project(git_project, ledger, inner)
    project.begin()
    assert project.changed() == []
    project.write("other/x.py")
    project.write("packages/x.py")
    assert project.changed() == []
    project.write("packages/a/x.py")
    project.write("packages/a/y.py")
    project.write("packages/new/deep/x.py")
    assert project.changed() == ["packages/a", "packages/new"]
    if inner:
        (project.top / "packages/b").mkdir(parents=True)
        (project.top / "packages/b/x.py").write_text("not of this project\n")
        assert project.changed() == ["packages/a", "packages/new"]


def test_changes_from_before_the_start_count_only_if_they_changed(project):
    project.write("packages/a/x.py", "2\n")
    project.write("packages/b/x.py", "2\n")
    project.begin()
    assert project.changed() == []
    project.write("packages/a/x.py", "3\n")
    project.git("checkout", "-q", "packages/b")
    assert project.changed() == ["packages/a", "packages/b"]


def test_commits_count_by_the_files_that_they_change(project):
    project.begin()
    project.write("packages/b/x.py")
    project.git("commit", "-qam", "one")
    assert project.changed() == ["packages/b"]
    project.git("revert", "--no-edit", "HEAD")
    assert project.changed() == []


def test_the_fingerprint_of_the_repository_is_known_afterwards(project):
    assert project.changed() is None
    assert project.looked == {FileSet(str(project.root)): fingerprint(str(project.root))}


def test_a_member_without_a_tracked_file_changed(project):
    project.begin()
    assert project.changed([*KNOWN, "packages/none"]) == ["packages/none"]


def test_what_cannot_be_found_out_is_unknown(project, monkeypatch):
    assert project.changed() is None  # no start is known
    project.begin()
    assert project.changed() == []
    assert project.changed(patience=-1.0) is None
    project.write("packages/b/x.py")
    project.git("commit", "-qam", "one")
    monkeypatch.setattr(members, "_MOST_PRINTED", 1)
    assert project.changed() is None

    def run(_commands, _ends):
        raise Unknown

    monkeypatch.setattr(members, "run", run)
    assert project.changed() is None


def test_settings_that_can_hide_files_make_it_unknown(project):
    project.begin()
    (project.top / ".git/info/exclude").write_text("new.py\n")
    project.write("packages/a/new.py")
    assert project.changed() is None


@pytest.mark.parametrize("commit", [True, False])
def test_a_repository_that_begins_in_a_member_hides_no_change(project, commit):
    project.begin()
    inner = project.root / "packages/a"
    git(inner, "init", "-q")
    project.write("packages/a/x.py")
    project.write("packages/a/new.py")
    if commit:
        git(inner, "add", "-A")
        git(inner, "commit", "-qm", "hidden")
    assert project.changed() == ["packages/a"]
    inner = project.root / "packages/b"
    git(inner, "init", "-q")
    git(inner, "commit", "-qm", "hidden", "--allow-empty")
    project.write("packages/b/new.py")
    assert project.changed() == ["packages/a", "packages/b"]


@pytest.mark.parametrize("late", [True, False])
def test_a_start_with_too_many_changes_or_after_them_is_unknown(project, monkeypatch, late):
    project.write("packages/a/x.py")
    monkeypatch.setattr(members, "_MOST", 1 if late else 0)
    project.begin(**({"since": 1.0} if late else {}))
    assert project.changed() is None


def test_a_start_outside_of_git_is_unknown(tmp_path):
    ledger = MemoryLedger()
    event = StartEvent(session_id="s1", cwd=str(tmp_path))
    known = [(str(tmp_path), GLOBS)]
    drive_sync(remember_start(event, [], ledger, 5.0, members=known))
    project = (str(tmp_path), GLOBS, [])
    event = stop(cwd=str(tmp_path), session_id="s1")
    assert changed_members(event, ledger, 5.0, project, {}) is None


@pytest.mark.rule("A8")
def test_only_gates_of_unchanged_members_may_be_left_behind():
    def left(file, *declared, members=(("/p", GLOBS),)):
        gates = tuple(gate(f"{n}", source=Source(name)) for n, name in enumerate(declared))
        event = stop(session_id="s1")
        one = Stop(event, gates, MemoryLedger(), members=members, warn=print)
        history = History(turn=1, blocks=1, sent_back_by=(("t", file),))
        return len(one.plan(history, {}).unchecked)

    member = "/p/packages/a/notyet.toml"
    assert left(member, "/p/notyet.toml") == 0
    assert left(member, "/p/notyet.toml", members=()) == 1
    assert left(member, member) == 1  # its file counts, and this gate is not in it
    assert left("/p/other/notyet.toml", "/p/notyet.toml") == 1
    assert left("/q/packages/a/notyet.toml", "/p/notyet.toml") == 1
