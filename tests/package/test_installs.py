"""The three ways to install notyet that the README shows, each from this checkout in a new home."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "package-venv" / "bin"
SHOWN = "uv tool install .   # or: pipx install .    or: pip install ."


@pytest.fixture
def checkout(tmp_path):
    """A copy of what is installed, so that no build leaves files here."""
    folder = tmp_path / "notyet"
    shutil.copytree(ROOT / "src", folder / "src")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


def found(name):
    """Return a program of the tools or of this machine; skip the test without one."""
    path = shutil.which(name, path=f"{TOOLS}:{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.mark.parametrize("way", ["uv", "pipx", "pip"])
def test_the_ways_of_the_readme_install_a_program_that_gates(way, machine, checkout):
    assert SHOWN in (ROOT / "README.md").read_text()
    # uv reads no settings of pip.
    environ = {"SSL_CERT_FILE": os.environ["PIP_CERT"]} if "PIP_CERT" in os.environ else {}
    program = machine.home / ".local" / "bin" / "notyet"
    if way == "pip":
        machine.run(sys.executable, "-m", "venv", machine.home / "venv")
        machine.run(machine.home / "venv" / "bin" / "pip", "install", "--quiet", checkout)
        program = machine.home / "venv" / "bin" / "notyet"
    else:
        line = ("tool", "install") if way == "uv" else ("install",)
        machine.run(found(way), *line, checkout, environ=environ)
    (machine.project / "notyet.toml").unlink()
    (machine.project / "Makefile").write_text(".PHONY: test\ntest:\n\t@test ! -e broken\n")
    (machine.home / ".claude").mkdir()
    assert "Try it now: notyet check" in machine.run(program, "init", "--yes", "--install")
    assert "YES" in machine.run(program, "status")
    (machine.project / "broken").touch()
    settings = json.loads((machine.home / ".claude" / "settings.json").read_text())
    hook = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
    stop = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(machine.project)}
    (machine.project / "stop.json").write_text(json.dumps(stop))
    answer = json.loads(machine.run("sh", "-c", f"({hook}) < stop.json"))
    assert answer["decision"] == "block"
    assert "FAILED tests" in answer["reason"]
