import json
import subprocess

import pytest

from acp_editor import Editor
from hook_runs import trust
from notyet.ledger.ledger import Ledger
from notyet.ledger.past_stops import StopFilter
from notyet.ledger.past_stops import stops as past_stops


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def version(request):
    return request.param


class Project:
    """A repository with gates."""

    def __init__(self, folder):
        folder.mkdir()
        subprocess.run(["git", "init", "-q", folder], check=True)
        self.folder = folder

    def gates(self, text, *, trusted=True):
        """Write a notyet.toml, and trust it."""
        path = self.folder / "notyet.toml"
        path.write_text(text)
        if trusted:
            trust(path)
        return self

    def gate(self, script, *, limit=3, trusted=True, **more):
        """One gate that runs at every stop."""
        lines = [f"{name} = {json.dumps(value)}" for name, value in more.items()]
        limits = f"[limits]\nmax_blocks = {limit}\nstuck_after = 0\n"
        lines = [limits, "[gates.tests]", f"run = {json.dumps(script)}", 'when = "always"', *lines]
        return self.gates("\n".join(lines), trusted=trusted)

    def once(self, words="go on"):
        """A gate that fails once, with these words for the agent."""
        seen = self.folder.parent / "seen"
        return self.gate(f"test -e {seen} || {{ touch {seen}; echo '{words}'; exit 1; }}")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


@pytest.fixture
def edit(version):
    """Start an editor with an agent; it is closed at the end of the test."""
    opened = []

    def start(*options, **more):
        opened.append(Editor(*options, **{"version": version} | more))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def stops():
    """Return outcome and cause of every recorded stop."""

    def read():
        ledger = Ledger()
        return [(one.outcome, one.why) for one in reversed(past_stops(ledger, StopFilter()))]

    return read
