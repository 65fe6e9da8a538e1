"""The tutorial goes as it is printed: five commands in a clone, and what they show."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stories

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
# The clone's own `bin/notyet` is run. Whoever runs the tests may be an agent, who may not trust.
PYTHON = """\
#!{python} -I
import sys
if sys.argv[1] == "-c":
    exec(sys.argv[2])
sys.path.insert(0, {source!r})
from notyet.config import caller
caller._ancestors = lambda _pid: ()
del sys.argv[1:2]
assert sys.argv.pop(1) == {main!r}
from notyet.cli.main import main
sys.exit(main())
"""
# What differs from run to run: times, ids and dates.
VARIES = (
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|m|h)\b(?: ago)?"), "TIME"),
    (re.compile(r"\bt[0-9a-z]{10}\b"), "TASK"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "SESSION"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d(?::\d\d)?\b"), "DATE"),
    (re.compile(r" {2,}"), "  "),
)


def steps():
    """Return the commands of the page, each with what it must show."""
    found = []
    for part in PAGE.read_text(encoding="utf-8").split("```console\n")[1:]:
        for line in part.split("```")[0].splitlines():
            if line.startswith("$ "):
                found.append(stories.Step(0, [line[2:]]))
            else:
                found[-1].expected.append(line)
    return found


def steady(line):
    """Return a line without what differs from run to run."""
    for pattern, name in VARIES:
        line = pattern.sub(name, line)
    return line.strip()


@pytest.fixture
def clone(tmp_path):
    """A world whose person stands in the clone, with the programs that the page asks for."""
    world = stories.World(tmp_path)
    world.project = ROOT
    (world.bin / "notyet").unlink()
    for name in ("make", "python3"):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"the tutorial needs {name}")
        (world.bin / name).symlink_to(found)
    main = ROOT / "src" / "notyet" / "__main__.py"
    fake = world.bin / "as-a-person"
    text = PYTHON.format(python=sys.executable, source=str(ROOT / "src"), main=str(main))
    fake.write_text(text)
    fake.chmod(0o755)
    world.environ["PYTHON"] = str(fake)
    return world


def test_a_newcomer_needs_five_commands():
    assert len(steps()) == 5


def test_the_tutorial_goes_as_it_is_printed_and_installs_nothing(clone):
    wanted = steps()
    hosts = {clone.home / ".claude" / "settings.json": "{}", clone.home / ".codex" / "x": ""}
    for file, text in hosts.items():
        file.parent.mkdir()
        file.write_text(text)
    for step, lines in zip(wanted, stories.told(wanted, clone), strict=True):
        shown = [steady(line.replace("$HOME", "/home/you")) for line in lines]
        assert shown == [steady(line) for line in step.expected], step.command
    assert {file: file.read_text() for file in hosts} == hosts
    folders = [file.parent for file in hosts]
    assert {file for folder in folders for file in folder.iterdir()} == set(hosts)


@pytest.mark.parametrize("links", [0, 1, 2])
def test_the_clone_runs_without_being_installed(tmp_path, links):
    program = ROOT / "bin" / "notyet"
    for number in range(links):
        link = tmp_path / f"folder {number}" / "notyet"
        link.parent.mkdir()
        link.symlink_to(program if number == 0 else Path("..") / "folder 0" / "notyet")
        program = link
    done = subprocess.run(
        [program, "--version"],
        cwd=tmp_path,
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("notyet ")


def test_an_old_python_is_named(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        [ROOT / "bin" / "notyet", "status"],
        env=os.environ | {"PYTHON": str(old)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert f"notyet needs Python 3.11 or newer, and {old} is none" in done.stderr
