"""What is promised on paper is proven by tests."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from notyet.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent


def test_every_rule_is_proven_by_a_test():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "rules.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_command_of_the_makefile_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = makefile.split(".PHONY: ", 1)[1].splitlines()[0].split()
    for target in set(targets) - {"help", "clean"}:
        assert f"make {target} " in makefile, target


def test_the_reference_of_the_command_line_is_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "cli_reference.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained_shown_and_told(name):
    command = import_module(COMMANDS[name])
    assert command.SUMMARY.strip()
    assert command.SUMMARY[0].islower(), "it goes on after the name"
    assert command.EXAMPLES
    for line, what in command.EXAMPLES:
        assert f"notyet {name}" in line
        assert what.strip()
    stories = ROOT / "tests" / "scripts"
    assert f"notyet {name}" in (stories / f"{name}.txt").read_text()
    assert f"notyet {name}" in (stories / f"{name}-errors.txt").read_text()
    reference = ROOT / "docs" / "reference"
    assert f"`notyet {name}`" in (reference / "exit-codes.md").read_text()
    assert f"\n### notyet {name}\n" in (reference / "cli.md").read_text()
