import subprocess

import pytest


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's own files."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.delenv("NOTYET_LEDGER", raising=False)


@pytest.fixture
def git_project(tmp_path):
    """A git project with one commit."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "file.txt").write_text("one\n")
    git(project, "init", "--quiet")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "one")
    return str(project)


def git(project, *args):
    author = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *author, *args], cwd=project, check=True, capture_output=True)
