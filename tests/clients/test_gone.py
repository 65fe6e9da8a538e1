"""A host whose registered notyet is gone says so to its user."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import rich

import notyet
from clients.conftest import newest_claude
from clients.model.script import Say

GONE = "NOT CHECKED: notyet was removed or moved; install it, then run: notyet install"
# Our package, and the libraries of its commands.
PYTHONPATH = os.pathsep.join(str(Path(module.__file__).parents[1]) for module in (notyet, rich))
FAILING = '[gates.bad]\nrun = "exit 1"\n'


def remove(client, what, *options):
    """Install from an environment, and remove that, or the launcher."""
    client.gates(FAILING)
    bare = client.folder / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    done = subprocess.run(
        [str(bare / "bin" / "python"), "-m", "notyet", "install", client.HOST, "--yes", *options],
        cwd=client.project,
        env=client.environ | {"PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    shutil.rmtree(bare if what == "python" else client.home / ".local" / "share" / "notyet")


@pytest.mark.rule("N3")
@pytest.mark.parametrize("what", ["launcher", "python"])
@newest_claude
def test_claude_code_shows_that_notyet_is_gone(claude, what):
    remove(claude, what)
    claude.ungated = {"main"}
    ran = claude.run([Say("Done.")])
    assert (ran.code, ran.text) == (0, "Done.")
    assert claude.tells_user(ran, f"{GONE} claude")


@pytest.mark.rule("N3")
@pytest.mark.parametrize("what", ["launcher", "python"])
def test_codex_shows_that_notyet_is_gone(codex, what):
    remove(codex, what, "--trust")
    codex.ungated = {"main"}
    with codex.serving([Say("Done.")]) as (server, thread, _):
        server.ended(server.begin(thread, "do it"))
        ((_, status, entries),) = server.hook_runs("stop")
    assert status == "completed"
    assert entries == [("warning", f"notyet: {GONE} codex")]
