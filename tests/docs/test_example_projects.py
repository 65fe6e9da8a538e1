"""The projects below examples/: their gates work, and their scripted agents are sent back."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stories

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 240.0  # seconds; npm fetches the compiler
# What each project needs beside git, and the gates that send its agent back at the first stop.
PROJECTS = {
    "python-library": (["python3"], {"tests", "weakened"}),
    "typescript-monorepo": (["node", "npm", "npx"], {"types"}),
    "go-service": (["go", "gofmt", "gcc"], {"vet"}),
}


@pytest.fixture
def world(tmp_path):
    """A person's world with the tools of this machine."""
    world = stories.World(tmp_path)
    own = os.path.dirname(sys.executable)  # pytest and ruff
    world.environ["PATH"] = f"{world.bin}:{own}:{os.environ['PATH']}"
    return world


def run(world, *command, timeout=PATIENCE):
    return subprocess.run(
        command,
        cwd=world.project,
        env=world.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def prepare(world, name):
    """Copy a project and commit it; skip the test where its tools are missing."""
    tools, _ = PROJECTS[name]
    missing = [tool for tool in tools if not shutil.which(tool, path=world.environ["PATH"])]
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}")
    shutil.copytree(EXAMPLES / name, world.project, dirs_exist_ok=True)
    for command in (["add", "--all"], ["commit", "--quiet", "--message", "Begin"]):
        assert run(world, "git", *command).returncode == 0
    if (world.project / "package.json").exists():
        fetched = run(world, "npm", "install", "--no-audit", "--no-fund", "--no-package-lock")
        if fetched.returncode:
            pytest.skip(f"npm install: {fetched.stderr.strip().splitlines()[-1:]}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PROJECTS)
def test_the_agent_of_a_project_is_sent_back_and_then_passes(name, world):
    prepare(world, name)
    valid = run(world, "notyet", "validate")
    assert valid.returncode == 0, valid.stdout + valid.stderr
    trusted = run(world, "notyet", "trust", "--yes")
    assert trusted.returncode == 0, trusted.stdout + trusted.stderr
    done = run(world, "notyet", "with", "scripted:agent.toml", "Do it.")
    assert done.returncode == 0, done.stdout + done.stderr
    listed = run(world, "notyet", "log", "--json")
    stops = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [stop["outcome"] for stop in stops] == ["blocked", "passed"]
    failed = {one["gate"] for one in stops[0]["reports"] if one["status"] == "blocked"}
    _, expected = PROJECTS[name]
    assert expected <= failed


def test_each_of_three_agents_is_held_to_what_it_promised(world):
    shutil.copytree(EXAMPLES / "three-agents", world.project, dirs_exist_ok=True)
    done = run(world, sys.executable, "pipeline.py", "work")
    assert done.returncode == 0, done.stdout + done.stderr
    came = [line.partition(":")[0].split(", ") for line in done.stdout.splitlines()]
    assert came == [
        ["planner   passed", "send-backs 1"],
        ["coder     passed", "send-backs 0"],
        ["reviewer  passed", "send-backs 1"],
    ]
    assert (world.project / "work" / "PLAN.md").exists()


def test_every_example_is_listed_and_tested():
    folders = {entry.name for entry in EXAMPLES.iterdir() if entry.is_dir()}
    # test_tutorial, above, tests/frameworks/test_pydantic_ai, test_compose
    elsewhere = {"shop", "three-agents", "fastapi-service", "fleet"}
    assert folders == set(PROJECTS) | elsewhere
    index = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert not {name for name in folders if f"| `{name}` |" not in index}
