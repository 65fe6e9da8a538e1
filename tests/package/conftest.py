"""How notyet reaches its users: the package, the action and the hooks, with their real tools."""

import os
import subprocess
from pathlib import Path

import pytest

from notyet.config.caller import inside_agent

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "package-venv" / "bin"
COPIED = ("PIP_", "SSL_", "REQUESTS_", "LANG", "LC_")  # how this machine reaches packages
FAILING = """\
[gates.tests]
run = "echo 1 failed; exit 1"
[gates.lint]
run = "true"
"""


def pytest_collection_modifyitems(items):
    """An agent may run the tests, and it cannot trust a file, as people and builds do."""
    if who := inside_agent({}):
        for item in items:
            item.add_marker(pytest.mark.skip(reason=f"an agent may not trust a file: {who}"))


class Machine:
    """A new machine with an empty home and a git project with a failing gate."""

    def __init__(self, folder):
        self.home, self.project = folder / "home", folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environ = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": os.devnull,
            **{name: value for name, value in os.environ.items() if name.startswith(COPIED)},
        }
        # Its home has no settings of pip.
        settings = Path.home() / ".config" / "pip" / "pip.conf"
        if settings.exists():
            self.environ.setdefault("PIP_CONFIG_FILE", str(settings))
        self.write("notyet.toml", FAILING)
        self.run("git", "init", "--quiet")
        self.run("git", "add", ".")

    def write(self, name, text):
        """Write a file of the project."""
        (self.project / name).write_text(text)

    def run(self, *line, environ=(), code=0):
        """Run a program in the project; return what it printed."""
        done = subprocess.run(
            [*map(str, line)],
            cwd=self.project,
            env=self.environ | dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, done.stdout
        return done.stdout


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)
