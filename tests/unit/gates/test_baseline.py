"""A command runs on a snapshot as if the agent had not changed a file, and leaves nothing."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import git
from notyet.gates import baseline, shared_files
from notyet.gates.baseline import ANOTHER_FOLDER, ORIGINAL_PATH, run_on
from notyet.git.snapshot import take
from support import wait_for

_TRY = "import notyet.gates.enter as enter; enter.enter()"
HAS_NAMESPACES = (
    sys.platform == "linux"
    and subprocess.run([sys.executable, "-c", _TRY], capture_output=True, check=False).returncode
    == 0
)
needs_namespace = pytest.mark.skipif(
    not HAS_NAMESPACES, reason="the system allows no mount namespace here"
)
BOTH = [
    pytest.param(False, marks=needs_namespace, id="at the original path"),
    pytest.param(True, id="elsewhere"),
]


class World:
    """A project with a snapshot, and what a run must not leave behind."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.scratch = folder / "state" / "baselines"
        self.numbers = iter(range(99))

    def write(self, **files):
        for name, text in files.items():
            self.put(name, text)

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def begin(self):
        """Take the snapshot, later than all changes so far."""
        time.sleep(0.05)
        self.snapshot = take(str(self.root), str(self.folder / f"s{next(self.numbers)}"), 30.0)
        time.sleep(0.05)

    def run(self, *argv, is_elsewhere=False, **options):
        before = _around(self.root)
        given = {"dir": str(self.root), "environ": os.environ, "timeout": 60.0} | options
        script = argv if len(argv) > 1 else ("sh", "-c", *argv)
        run = run_on(
            self.snapshot, script, scratch=str(self.scratch), is_elsewhere=is_elsewhere, **given
        )
        assert _around(self.root) == before
        assert os.listdir(self.scratch) == []
        return run


def _around(root):
    """Return the mounts, and the files of a project with its repository."""
    mounts = Path("/proc/self/mountinfo")
    kept = {
        path: path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not path.is_symlink()
    }
    return mounts.read_text() if mounts.exists() else "", kept, sorted(root.rglob("*"))


@pytest.fixture
def world(git_project, tmp_path):
    return World(Path(git_project), tmp_path)


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_a_command_sees_the_files_of_the_snapshot(world, is_elsewhere):
    world.put("new.txt", "untracked")
    world.begin()
    world.put("file.txt", "changed")
    (world.root / "new.txt").unlink()
    world.put("later.txt", "later")
    run = world.run("cat *.txt; echo >&2 e; exit 3", is_elsewhere=is_elsewhere)
    assert (run.stdout, run.stderr, run.code) == ("one\nuntracked", "e\n", 3)
    assert run.place == (ANOTHER_FOLDER if is_elsewhere else ORIGINAL_PATH)
    assert not run.refused


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_it_runs_in_a_folder_with_marks_and_input(world, is_elsewhere):
    world.put("sub/a.txt", "a")
    world.begin()
    line = (
        'cat; cat a.txt; echo " $NOTYET_INSIDE$NOTYET_BASELINE"; pwd; printf "\\033[31mred\\033[0m"'
    )
    where = str(world.root / "sub")
    run = world.run(line, is_elsewhere=is_elsewhere, dir=where, stdin=b"in ")
    assert run.stdout == f"in a 11\n{where}\nred"


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_a_folder_that_is_new_is_refused(world, is_elsewhere):
    world.begin()
    world.put("fresh/a", "a")
    run = world.run("ls", is_elsewhere=is_elsewhere, dir=str(world.root / "fresh"))
    assert run.refused == "fresh was not there when the session began"
    run = world.run("ls", is_elsewhere=is_elsewhere, dir=str(world.folder))
    assert run.refused.endswith("is not in the repository")


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_time_limits_and_signals_are_told(world, is_elsewhere):
    world.begin()
    run = world.run("sleep 60", is_elsewhere=is_elsewhere, timeout=1.0)
    assert run.timed_out
    run = world.run("kill -9 $$", is_elsewhere=is_elsewhere)
    assert run.signal == signal.SIGKILL


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_reports_are_read_before_the_files_go(world, is_elsewhere):
    world.begin()
    line = "mkdir -p build/r; pwd > build/r/junit.xml; ln -s /etc/passwd build/r/link.xml"
    run = world.run(line, is_elsewhere=is_elsewhere, reports=("build/*/*.xml", "none.xml"))
    assert run.reports == {"build/r/junit.xml": f"{world.root}\n".encode()}


# Ignored files.


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_unchanged_ignored_files_are_shared_and_caches_are_not(world, is_elsewhere):
    world.put(".gitignore", "node_modules/\n.env\n*.log\n__pycache__/\nlogs/\n")
    world.put("node_modules/pkg/index.js", "installed")
    world.put(".env", "secret")
    world.put("a.log", "log")
    world.put("logs/b", "log")
    world.put("__pycache__/x.pyc", "compiled")
    world.begin()
    world.put("__pycache__/x.pyc", "compiled again")
    world.put("a.log", "more")
    run = world.run(
        "cat node_modules/pkg/index.js .env; echo; ls -d *.log __pycache__/* logs/*",
        is_elsewhere=is_elsewhere,
    )
    assert run.stdout == "installedsecret\n"
    assert not run.refused


@pytest.mark.parametrize("is_elsewhere", BOTH)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("echo x > node_modules/pkg/index.js", "node_modules changed"),
        ("touch -d 2001-01-01 node_modules/pkg/index.js", "node_modules changed"),
        ("rm node_modules/pkg/index.js", "node_modules changed"),
        ("mkdir node_modules/new", "node_modules changed"),
        ("echo x > .env", ".env changed"),
        ("rm .env", ".env was deleted"),
        ("rm -r node_modules", "node_modules was deleted"),
    ],
)
def test_changed_ignored_files_are_refused(world, is_elsewhere, change, said):
    world.put(".gitignore", "node_modules/\n.env\n")
    world.put("node_modules/pkg/index.js", "installed")
    world.put(".env", "secret")
    world.begin()
    subprocess.run(["sh", "-c", change], cwd=world.root, check=True)
    run = world.run("ls", is_elsewhere=is_elsewhere)
    assert run.refused == f"{said} since the session began"


@pytest.mark.parametrize(
    "line", ["truncate -s 70M r.xml", "for i in $(seq 201); do echo > r$i.xml; done"]
)
def test_more_reports_than_are_read_are_no_baseline(world, line):
    world.begin()
    run = world.run(line, reports=("r*.xml",))
    assert run.refused == "its reports are more than 200 files or 64 MiB"


def test_the_cache_that_python_writes_is_no_change_but_a_lost_module_is(world):
    world.put(".gitignore", ".venv/\n")
    for name in ("a.py", "b.py"):
        world.put(f".venv/lib/site-packages/pkg/{name}", "")
    world.begin()
    folder = world.root / ".venv/lib/site-packages/pkg"
    world.put(".venv/lib/site-packages/pkg/__pycache__/a.cpython-311.pyc", "")
    world.put(".venv/lib/site-packages/pkg/__pycache__/b.cpython-311.pyc", "")
    assert not world.run("ls").refused
    (folder / "b.py").unlink()
    assert world.run("ls").refused == ".venv changed since the session began"


@pytest.mark.parametrize("cache", [".pytest_cache", ".ruff_cache", ".mypy_cache", "htmlcov"])
def test_a_cache_that_ignores_itself_is_no_change(world, cache):
    """Git then names the files in it, as the project's own .gitignore does not have it."""
    world.put(f"{cache}/.gitignore", "*\n")
    world.put(f"{cache}/v/1/data", "")
    world.begin()
    world.put(f"{cache}/v/2/data", "")
    world.put(f"{cache}/README.md", "a cache")
    run = world.run(f"ls {cache}/v/1")
    assert (run.refused, run.stdout) == ("", "")


def test_a_cache_that_a_tool_makes_among_packages_is_no_change_but_a_lost_package_is(world):
    world.put(".gitignore", "node_modules/\n")
    for name in ("a", "b"):
        world.put(f"node_modules/{name}/index.js", "")
    world.begin()
    world.put("node_modules/.vite/vitest/results.json", "{}")
    world.put("node_modules/.vite-temp/config.mjs", "")
    assert not world.run("ls").refused
    shutil.rmtree(world.root / "node_modules" / "b")
    assert world.run("ls").refused == "node_modules changed since the session began"


def test_a_file_that_a_package_of_the_project_lost_is_a_change(world):
    """Python wrote its cache there, which alone would explain that the folder changed."""
    world.put(".gitignore", "generated/\n")
    for name in ("__init__.py", "data.json", "inner/__init__.py", "inner/data.json"):
        world.put(f"generated/{name}", "")
    world.begin()
    world.put("generated/__pycache__/__init__.cpython-311.pyc", "")
    assert not world.run("ls").refused
    (world.root / "generated" / "data.json").unlink()
    assert world.run("ls").refused == "generated changed since the session began"


def test_outputs_that_cargo_builds_anew_are_left_out_and_others_refused(world):
    world.put(".gitignore", "target/\ndist/\n")
    world.put("target/debug/x", "")
    world.put("dist/x", "")
    world.put("Cargo.toml", "")
    world.begin()
    world.put("target/debug/y", "")
    assert world.run("ls").stdout == "Cargo.toml\ndist\nfile.txt\n"
    world.put("dist/y", "")
    assert world.run("ls").refused == "dist changed since the session began"


@needs_namespace
def test_a_test_that_writes_into_an_ignored_folder_does_not_write_into_the_users(world):
    world.put(".gitignore", "data/\n.env\n")
    world.put("data/a", "a")
    world.put(".env", "e")
    world.begin()
    run = world.run("echo x > data/a; echo y > data/b; echo z > .env; cat data/a data/b .env")
    assert run.stdout == "x\ny\nz\n"
    assert (world.root / "data" / "a").read_text() == "a"
    assert os.listdir(world.root / "data") == ["a"]


# Paths that lead back.


def _workspace(world):
    world.put(".gitignore", "node_modules/\n")
    world.put("packages/pkg/value", "right")
    (world.root / "node_modules").mkdir()
    (world.root / "node_modules" / "pkg").symlink_to("../packages/pkg")


@needs_namespace
def test_links_between_packages_lead_to_the_snapshot(world):
    _workspace(world)
    world.begin()
    world.put("packages/pkg/value", "broken")
    assert world.run("cat node_modules/pkg/value").stdout == "right"


def test_links_between_packages_are_refused_elsewhere(world):
    _workspace(world)
    world.begin()
    run = world.run("cat node_modules/pkg/value", is_elsewhere=True)
    assert run.refused == "node_modules/pkg links to the files as they are now"


@needs_namespace
def test_absolute_paths_lead_to_the_snapshot(world):
    world.begin()
    world.put("file.txt", "changed")
    assert world.run(f"cat {world.root}/file.txt").stdout == "one\n"


def test_a_run_that_prints_paths_of_the_original_is_refused_elsewhere(world):
    world.begin()
    run = world.run(f"grep -Hc . {world.root}/file.txt", is_elsewhere=True)
    assert run.refused == f"the run used the files as they are now: {world.root}/file.txt:1"


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_an_editable_install_imports_the_snapshot(world, is_elsewhere):
    world.put("pyproject.toml", "")
    world.put("src/made/__init__.py", "value = 'right'\n")
    world.put(".gitignore", ".site/\n")
    world.put(".site/made.pth", f"{world.root}/src\n")
    world.begin()
    world.put("src/made/__init__.py", "value = 'broken'\n")
    code = "import site, sys; site.addsitedir('.site'); import made; print(made.value)"
    run = world.run(sys.executable, "-c", code, is_elsewhere=is_elsewhere)
    assert run.stdout == "right\n", run


# What a command may not do, and what it may not leave.


@needs_namespace
@pytest.mark.parametrize("is_linked", [False, True])
def test_a_test_can_ask_git_but_not_commit(world, is_linked):
    if is_linked:
        git(world.root, "worktree", "add", "-q", "../linked")
        world.root = world.folder / "linked"
    world.begin()
    line = "git log --format=%s; git -c user.name=a -c user.email=a@a commit --allow-empty -qm two"
    run = world.run(line)
    assert run.stdout == "one\n"
    assert run.code == 128
    assert "Read-only file system" in run.stderr


@pytest.mark.parametrize("is_elsewhere", BOTH)
@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
def test_background_processes_end_with_the_command(world, is_elsewhere):
    world.begin()
    left = world.folder / "pids"
    line = f"sleep 300 & echo $! >> {left}; setsid sleep 300 & echo $! >> {left}; sleep 0.3"
    world.run(line, is_elsewhere=is_elsewhere)
    wait_for(lambda: not any(_runs(int(pid)) for pid in left.read_text().split()))


def _runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


_KILLED = """
import os, sys
from notyet.gates.baseline import run_on
from notyet.git.snapshot import Snapshot
root, tree, at, objects, scratch, started = sys.argv[1:]
snapshot = Snapshot(root=root, tree=tree, at=float(at), objects=objects)
line = f"echo $$ > {started}.new; mv {started}.new {started}; sleep 300"
run_on(snapshot, ["sh", "-c", line], dir=root, environ=os.environ, timeout=300, scratch=scratch)
"""


@needs_namespace
def test_a_run_that_is_killed_leaves_no_process_and_its_folder_to_the_next(world):
    world.put(".gitignore", "data/\n")
    world.put("data/a", "a")
    world.begin()
    started, one = world.folder / "started", world.snapshot
    about = [one.root, one.tree, str(one.at), one.objects, str(world.scratch), str(started)]
    before = _around(world.root)
    runner = subprocess.Popen([sys.executable, "-c", _KILLED, *about])
    wait_for(started.exists)
    runner.kill()
    runner.wait()
    wait_for(lambda: not _runs(int(started.read_text())))
    assert _around(world.root) == before
    assert len(os.listdir(world.scratch)) == 1
    world.run("true")  # asserts that its folder is gone


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_folders_without_permissions_are_removed(world, is_elsewhere):
    world.begin()
    world.run("mkdir -p a/b; touch a/b/c; chmod 0 a", is_elsewhere=is_elsewhere)


@needs_namespace
def test_two_runs_at_once_do_not_meet(world):
    world.begin()
    one = world.snapshot
    about = [one.root, one.tree, str(one.at), one.objects, str(world.scratch)]
    started = world.folder / "started"
    runner = subprocess.Popen([sys.executable, "-c", _KILLED, *about, str(started)])
    wait_for(started.exists)
    given = {"dir": str(world.root), "environ": os.environ, "timeout": 60.0}
    run = run_on(one, ["cat", "file.txt"], scratch=str(world.scratch), **given)
    assert run.stdout == "one\n"
    assert len(os.listdir(world.scratch)) == 1
    assert runner.poll() is None
    runner.kill()
    runner.wait()
    wait_for(lambda: not _runs(int(started.read_text())))
    baseline.remove_leftovers(str(world.scratch))
    assert os.listdir(world.scratch) == []


def test_a_snapshot_without_its_objects_is_refused(world):
    world.put("new", "new")
    world.begin()
    shutil.rmtree(world.snapshot.objects)
    os.mkdir(world.snapshot.objects)
    assert "damaged" in world.run("ls").refused


@needs_namespace
def test_another_folder_is_used_where_namespaces_are_refused(world, monkeypatch):
    world.put(".gitignore", "data/\n")
    world.put("data/a", "a")
    world.begin()
    broken = world.folder / "enter.py"
    broken.write_text("import sys; open(sys.argv[1] + '/failed', 'w'); sys.exit(127)")
    monkeypatch.setattr(baseline.enter, "__file__", str(broken))
    run = world.run("cat file.txt data/a")
    assert (run.stdout, run.place) == ("one\na", ANOTHER_FOLDER)


# Repositories and places that are out of the ordinary.


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_too_many_ignored_files_are_refused_in_bounded_time(world, monkeypatch, is_elsewhere):
    monkeypatch.setattr(shared_files, "MOST_ENTRIES", 50)
    world.put(".gitignore", "node_modules/\n")
    for number in range(60):
        world.put(f"node_modules/{number}", "")
    world.begin()
    run = world.run("ls", is_elsewhere=is_elsewhere)
    assert run.refused == "node_modules has too many files to see whether it changed"


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_links_out_of_the_project_lead_where_they_did_and_nothing_there_is_removed(
    world, is_elsewhere
):
    outside = world.folder / "outside"
    (outside / "inner").mkdir(parents=True)
    (outside / "file").write_text("outside")
    world.put(".gitignore", "cached\n")
    (world.root / "cached").symlink_to(outside)
    (world.root / "tracked").symlink_to(outside)
    world.begin()
    line = f"cat cached/file tracked/file; ln -s {outside} made"
    run = world.run(line, is_elsewhere=is_elsewhere)
    assert (run.stdout, run.refused) == ("outsideoutside", "")
    assert sorted(os.listdir(outside)) == ["file", "inner"]


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_a_repository_without_commits_has_a_baseline(tmp_path, is_elsewhere):
    root = tmp_path / "new"
    root.mkdir()
    git(root, "init", "--quiet")
    world = World(root, tmp_path)
    world.put("a", "then")
    world.begin()
    world.put("a", "now")
    assert world.run("cat a", is_elsewhere=is_elsewhere).stdout == "then"


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_hostile_names_are_only_names(world, is_elsewhere):
    names = ["-rf", "$(touch ran)", "a\nb", "`touch ran`", ":(glob)*", os.fsdecode(b"\xff")]
    world.put(".gitignore", "ignored*\n")
    for name in names:
        world.put(name, "then")
        world.put(f"ignored{name}", "kept")
        world.put(f"ignored {name}/x,y=z:w", "kept")
    world.begin()
    for name in names:
        (world.root / name).unlink()
    count = "find -L . -path ./.git -prune -o -type f -print0 | tr -dc '\\0' | wc -c"
    run = world.run(f"{count}; ls ran", is_elsewhere=is_elsewhere)
    assert (run.stdout.strip(), run.refused) == (str(3 * len(names) + 2), "")


@pytest.mark.parametrize("is_elsewhere", BOTH)
def test_filters_that_the_agent_names_after_the_start_do_not_run(world, is_elsewhere):
    world.put(".gitattributes", "* filter=z\n")
    world.begin()
    git(world.root, "config", "filter.z.smudge", f"touch {world.folder}/ran; cat")
    run = world.run("ls", is_elsewhere=is_elsewhere)
    assert run.refused == "the repository names filters of its own"
    assert not (world.folder / "ran").exists()


def test_a_scratch_folder_that_cannot_be_made_is_an_error(world):
    world.begin()
    (world.folder / "state").write_text("in the way")
    with pytest.raises(OSError, match="state"):
        world.run("ls")


_ON_A_FULL_DISK = """
import ctypes, os, sys
from notyet.gates.baseline import run_on
from notyet.git.snapshot import Snapshot
libc = ctypes.CDLL(None, use_errno=True)
root, tree, at, objects, disk = sys.argv[1:]
if libc.unshare(0x20000) or libc.mount(None, b"/", None, 0x44000, None):
    sys.exit(77)
if libc.mount(b"tmpfs", disk.encode(), b"tmpfs", 0, b"size=256k"):
    sys.exit(77)
one = Snapshot(root=root, tree=tree, at=float(at), objects=objects)
run = run_on(one, ["true"], dir=root, environ=os.environ, timeout=60, scratch=disk)
print(run.refused, os.listdir(disk))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root on Linux can mount a disk"
)
@pytest.mark.parametrize("name", ["tracked", "ignored"])
def test_a_full_disk_is_refused_and_left_empty(world, name):
    world.put(".gitignore", "ignored\n")
    (world.root / name).write_bytes(os.urandom(1_000_000))
    world.begin()
    disk = world.folder / "disk"
    disk.mkdir()
    one = world.snapshot
    about = [one.root, one.tree, str(one.at), one.objects, str(disk)]
    ended = subprocess.run(
        [sys.executable, "-c", _ON_A_FULL_DISK, *about], capture_output=True, text=True, check=False
    )
    if ended.returncode == 77:
        pytest.skip("the kernel refuses to mount here")
    assert ended.stdout.strip() == "the disk is full []", ended.stderr
