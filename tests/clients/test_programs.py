"""Programs that cannot be fetched: a skip with its cause, unless something is wrong."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ASKING = "from clients.programs import CODEX, path_of; print(path_of(CODEX))"


@pytest.fixture
def place(tmp_path):
    """An empty cache, and a folder for an npm of the test's own."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def npm(place, script):
    path = place / "bin" / "npm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def ask(place, code=ASKING, **environ):
    """Ask for Codex in a process of its own, as a test process would."""
    known = {
        "PATH": f"{place}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(TESTS),
        "HOME": str(place),
        "XDG_CACHE_HOME": str(place),
    }
    return subprocess.run(
        [sys.executable, "-c", code],
        env=known | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_cannot_be_fetched_is_skipped_with_its_cause(place):
    npm(place, "echo 'npm error network getaddrinfo ENOTFOUND' >&2; exit 1")
    done = ask(place)
    assert done.stdout.startswith("codex 0.166.0: "), done.stderr
    assert done.stdout.strip().endswith("npm error network getaddrinfo ENOTFOUND")


def test_another_file_than_the_pinned_one_is_no_skip(place):
    with tarfile.open(place / "it.tgz", "w:gz") as file:
        file.add(place / "bin", "package")
    to = 'while [ "$1" ]; do [ "$1" = --pack-destination ] && to=$2; shift; done'
    npm(place, f'{to}\n[ -z "$to" ] || cp {place}/it.tgz "$to"')
    done = ask(place)
    assert done.returncode == 1
    assert "it.tgz is not what was pinned" in done.stderr


@pytest.mark.parametrize("says", ["codex-cli 0.166.0", "codex-cli 0.1.0"])
def test_a_variable_must_name_the_version_that_the_tests_are_about(place, says):
    program = place / "codex"
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    done = ask(place, CODEX_BIN=str(program))
    if says.endswith("0.166.0"):
        assert done.stdout == f"{program}\n"
    else:
        assert "CODEX_BIN must name codex 0.166.0; " in done.stderr
