"""What is written where an encoding has not all letters: never a traceback, nor another code."""

import subprocess
import sys

import pytest

from hook_runs import ENTRY, clean_environ, new_project, payload, run_hook

GATES = '[gates."tëst😀"]\nrun = "echo 😀ö"\n[gates."bäd"]\nrun = "echo 測試; exit 1"\n'
RUNS = {("check",): 1, ("check", "--json"): 1, ("check", "tëst😁"): 2, ("log",): 0, ("größe",): 2}


@pytest.fixture
def folder(tmp_path):
    folder = new_project(tmp_path / "pröject", GATES)
    run_hook(payload("claude", folder), "--host", "claude")
    return folder


def run(folder, argv, encoding):
    return subprocess.run(
        [sys.executable, str(ENTRY), *argv],
        cwd=folder,
        env=clean_environ(PYTHONIOENCODING=encoding, LC_ALL="C.UTF-8"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
@pytest.mark.parametrize("argv", RUNS, ids=" ".join)
def test_a_letter_that_a_stream_lacks_is_shown_by_its_number(folder, argv, encoding):
    ended = run(folder, argv, encoding)
    assert b"Traceback" not in ended.stderr
    assert ended.returncode == RUNS[argv]
    assert ended.stdout or ended.stderr
    (ended.stdout + ended.stderr).decode(encoding)


def test_our_own_signs_have_a_likeness_in_ascii(folder):
    assert "tëst😀 ✓ " in run(folder, ["log"], "utf-8").stdout.decode()
    assert "t\\xebst\\U0001f600 + " in run(folder, ["log"], "ascii").stdout.decode()
