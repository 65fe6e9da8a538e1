"""A law: two fingerprints are equal exactly when the files, the index and HEAD are."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conftest import git
from notyet.git.fingerprint import FileSet, fingerprints

pytestmark = pytest.mark.rule("N1")

# Each step starts several processes: what is found is not made smaller.
BRIEFLY = settings(deadline=None, phases=(Phase.generate,))
NAMES = ("a.txt", "in/ö b", "in/deep/\n-c")  # few, so that the same one is met again
TEXTS = ("one\n", "two\n")

names = st.sampled_from(NAMES)
writes = st.tuples(st.just("write"), names, st.sampled_from(TEXTS))
steps = st.one_of(
    writes,
    writes,
    writes,
    st.tuples(st.just("delete"), names, st.none()),
    st.tuples(st.just("link"), names, st.sampled_from(("here", "there"))),
    st.tuples(st.just("mode"), names, st.sampled_from((0o644, 0o755))),
    st.tuples(st.just("touch"), names, st.none()),
    st.tuples(st.sampled_from(("stage", "unstage")), names, st.none()),
    st.tuples(st.just("overlook"), names, st.sampled_from(("assume-unchanged", "skip-worktree"))),
    st.tuples(st.sampled_from(("commit", "refresh")), st.none(), st.none()),
)


def take(project, step):
    """Do one thing to the project, if it can be done."""
    kind, name, value = step
    path = project / (name or "")
    if kind == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(value)
    elif kind == "link":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(value)
    elif kind == "delete":
        path.unlink(missing_ok=True)
    elif kind == "mode" and path.is_file():
        path.chmod(value)
    elif kind == "touch" and path.is_file():
        os.utime(path, (1, 1))
    else:
        words = {
            "stage": ("add", "--", name),
            "unstage": ("rm", "--quiet", "--force", "--cached", "--", name),
            "overlook": ("update-index", f"--{value}", "--", name),
            "commit": ("commit", "--quiet", "-m", "x"),
            "refresh": ("status",),
        }.get(kind)
        if words is not None:
            subprocess.run(
                ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words],
                cwd=project,
                capture_output=True,
                check=False,
            )


def printed(project, *args):
    return subprocess.run(["git", *args], cwd=project, capture_output=True, check=False).stdout


def state(project, below=""):
    """Return what the law is about, found out in another way."""
    files = {}
    for folder, folders, inside in os.walk(project / below):
        if ".git" in folders:
            folders.remove(".git")
        for name in inside:
            path = Path(folder, name)
            if path.is_symlink():
                files[path] = os.readlink(path)
            else:
                files[path] = (path.read_bytes(), path.stat().st_mode & 0o100)
    index = printed(project, "ls-files", "-v", "--stage", "-z", "--", below or ".")
    head = printed(
        project, *(("ls-tree", "-r", "-z", "HEAD", below) if below else ("rev-parse", "HEAD"))
    )
    return files, index, head


def names_any(project, below):
    """Tell whether there is any file, for git or for us."""
    return not below or bool(printed(project, "ls-files", "--cached", "--others", "--", below))


def check_law(look, taken):
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        project.mkdir()
        (project / "a.txt").write_text("one\n")
        git(project, "init", "--quiet")
        git(project, "add", ".")
        git(project, "commit", "--quiet", "-m", "one")
        scopes = [FileSet(str(project)), FileSet(str(project), ("in",))]
        seen = []
        for step in (None, *taken):
            if step is not None:
                take(project, step)
            for below, tree in zip(("", "in"), look(scopes), strict=True):
                assert (len(tree) > 20) is names_any(project, below), "known"
                if len(tree) > 20:
                    seen.append((below, tree, state(project, below)))
        for below, tree, found in seen:
            for other_below, other_tree, other in seen:
                if below == other_below:
                    assert (tree == other_tree) is (found == other), (below, found, other)


@settings(BRIEFLY, max_examples=8)
@given(st.lists(steps, min_size=8, max_size=14))
def test_equal_fingerprints_are_equal_files(taken):
    check_law(fingerprints, taken)
