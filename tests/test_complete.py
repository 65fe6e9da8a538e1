"""What is promised on paper is proven by tests."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_every_rule_is_proven_by_a_test_and_the_index_is_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "rules_index.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_every_command_of_the_makefile_is_explained():
    makefile = (ROOT / "Makefile").read_text()
    targets = makefile.split(".PHONY: ", 1)[1].splitlines()[0].split()
    for target in set(targets) - {"help", "clean"}:
        assert f"make {target} " in makefile, target
