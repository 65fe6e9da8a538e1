"""Programs that cannot be had: known soon, told once, and a skip unless something is wrong."""

import os
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ASKING = "from clients.programs import CODEX, path_of; print(path_of(CODEX))"
TWICE = f"{ASKING}; print(path_of(CODEX))"
HANGS = "exec sleep 1000"
PACKS = 'while [ "$1" ]; do [ "$1" = --pack-destination ] && to=$2; shift; done'
OFFLINE = """\
echo 'npm error code ENOTFOUND
npm error errno ENOTFOUND
npm error network request to the registry failed, reason: getaddrinfo ENOTFOUND
npm error A complete log of this run can be found in: /x/y.log' >&2; exit 1"""
FULL = """\
echo 'npm error code ENOSPC
npm error nospc ENOSPC: no space left on device, write
npm error A complete log of this run can be found in: /x/y.log' >&2; exit 1"""


@pytest.fixture
def place(tmp_path):
    """An empty cache, and a folder for an npm of the test's own."""
    (tmp_path / "bin").mkdir()
    return tmp_path


def npm(place, script):
    path = place / "bin" / "npm"
    path.write_text(f'#!/bin/sh\necho "$1" >> {place}/asked\n{script}\n')
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


def asked(place):
    return (place / "asked").read_text().split()


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (OFFLINE, "getaddrinfo ENOTFOUND"),
        (FULL, "nospc ENOSPC: no space left on device, write"),
        ("exit 3", "no word why"),
        ("exit 0", "npm delivered no file"),
    ],
)
def test_what_cannot_be_fetched_is_told_with_its_cause(place, script, why):
    npm(place, script)
    done = ask(place)
    assert done.stdout.startswith("codex 0.166.0: "), done.stderr
    assert done.stdout.strip().endswith(why)


def test_nothing_is_tried_twice_in_one_process(place):
    npm(place, OFFLINE)
    assert len(ask(place, TWICE).stdout.splitlines()) == 2
    assert asked(place) == ["view"]


def test_a_process_that_waited_for_another_does_not_try_again(place):
    npm(place, f"sleep 1; {OFFLINE}")
    said = []
    both = [
        threading.Thread(
            target=lambda: said.append(ask(place, PYTEST_XDIST_TESTRUNUID="this run").stdout)
        )
        for _ in range(2)
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert len(said) == 2
    assert said[0] == said[1]
    assert asked(place) == ["view"]
    ask(place, PYTEST_XDIST_TESTRUNUID="another run")
    assert asked(place) == ["view"] * 2


def test_patience_has_an_end(place):
    npm(place, HANGS)
    done = ask(place, f"import clients.fetching as f; f._PATIENCE = 1.0; {ASKING}")
    assert "was not fetched into" in done.stdout, done.stderr


@pytest.mark.parametrize("run", ["", "this run"])
def test_another_file_than_the_pinned_one_is_no_skip(place, run):
    with tarfile.open(place / "it.tgz", "w:gz") as file:
        file.add(place / "bin", "package")
    npm(place, f'{PACKS}\n[ -z "$to" ] || cp {place}/it.tgz "$to"')
    done = ask(place, PYTEST_XDIST_TESTRUNUID=run)
    assert done.returncode == 1
    assert "it.tgz is not what was pinned" in done.stderr
    ask(place, PYTEST_XDIST_TESTRUNUID=run)
    assert len(asked(place)) == (2 if run else 4)  # view and pack


def test_a_cache_that_is_no_folder_is_named(place):
    (place / "file").touch()
    done = ask(place, XDG_CACHE_HOME=str(place / "file"))
    assert f"{place}/file/notyet-clients cannot be used" in done.stdout, done.stderr


def test_what_an_ended_attempt_left_is_removed(place):
    left = place / "notyet-clients" / "codex-0.166.0.part-old"
    left.mkdir(parents=True)
    npm(place, OFFLINE)
    ask(place)
    assert [path.name for path in left.parent.iterdir()] == ["codex-0.166.0.lock"]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("exit 1", "CODEX_BIN must name codex 0.166.0; "),
        ("echo codex-cli 0.1.0", "CODEX_BIN must name codex 0.166.0; "),
        (None, "CODEX_BIN names no program that runs: "),
    ],
)
def test_a_variable_that_names_another_program_is_told_once_and_no_test_begins(place, line, why):
    program = place / "codex"
    if line:
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    done = subprocess.run(
        [*run, str(Path(__file__).with_name("test_recorded.py"))],
        cwd=TESTS.parent,
        env=os.environ | {"CODEX_BIN": str(program)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert (done.stdout + done.stderr).count(why) == 1


def test_a_variable_that_names_the_program_is_believed(place):
    program = place / "codex"
    program.write_text("#!/bin/sh\necho codex-cli 0.166.0\n")
    program.chmod(0o755)
    assert ask(place, CODEX_BIN=str(program)).stdout == f"{program}\n"
