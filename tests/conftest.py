import os
import subprocess

import pytest

CLIENTS = os.path.join(os.path.dirname(__file__), "clients")


def pytest_addoption(parser):
    parser.addoption("--write-golden", action="store_true", help="write golden files anew")


def pytest_ignore_collect(collection_path, config):
    """Leave out the real programs, which are fetched first, unless they are asked for by name."""
    asked = [os.path.abspath(arg) for arg in config.args]
    is_asked = any(path.startswith(CLIENTS) for path in asked)
    return True if str(collection_path) == CLIENTS and not is_asked else None


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's own files."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr("notyet.config.files.real_home", lambda: str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("LEDGER", "DISABLE", "INSIDE", "SUPERVISED"):
        monkeypatch.delenv(f"NOTYET_{name}", raising=False)
    for name in ("PROJECT_DIR", "CODE_STOP_HOOK_BLOCK_CAP", "CONFIG_DIR"):
        monkeypatch.delenv(f"CLAUDE_{name}", raising=False)
    for name in ("CODEX_HOME", "AI_AGENT"):
        monkeypatch.delenv(name, raising=False)


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
