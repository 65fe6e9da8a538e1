"""HOSTS and FULL choose tests, and a run says which hosts it proved."""

import os
import subprocess
import sys
from pathlib import Path

from clients.conftest import known_hosts

CLIENTS = Path(__file__).parent
CONTRACT = "test_every_host.py"


def pytest_run(tmp_path, *args, **environ):
    """Run pytest here as `make test-clients` does, with a cache in which no program is."""
    (tmp_path / "npm").write_text("#!/bin/sh\necho no network >&2; exit 1\n")
    (tmp_path / "npm").chmod(0o755)
    known = {name: value for name, value in os.environ.items() if name not in ("HOSTS", "FULL")}
    known |= {"XDG_CACHE_HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    options = ("-q", "-n", "0", "-p", "no:cacheprovider", "--no-header")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *args],
        cwd=CLIENTS.parents[1],
        env=known | environ,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_hosts_chooses_the_tests_of_these_hosts_only(tmp_path):
    done = pytest_run(tmp_path, "--collect-only", str(CLIENTS), HOSTS="goose,codex")
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert any("[goose]" in line for line in found)
    assert any("[codex-" in line for line in found)
    assert not [line for line in found if "[claude-" in line or "[gemini]" in line]


def test_hosts_chooses_all_tests_of_a_host(tmp_path):
    every, chosen = (
        pytest_run(tmp_path, "--collect-only", str(CLIENTS), HOSTS=hosts, FULL="1").stdout
        for hosts in ("", "claude")
    )
    tests = [line for line in every.splitlines() if "[claude-" in line or "/claude_code/" in line]
    assert tests == [line for line in chosen.splitlines() if "::" in line]


def test_full_chooses_the_whole_contract(tmp_path):
    few, all_of_it = (
        pytest_run(tmp_path, "--collect-only", str(CLIENTS / CONTRACT), HOSTS="goose", FULL=full)
        for full in ("0", "1")
    )
    assert 3 < few.stdout.count("::") < all_of_it.stdout.count("::")
    assert "test_an_error_of_the_model" in all_of_it.stdout
    assert "test_an_error_of_the_model" not in few.stdout


def test_every_host_is_tried_without_full(tmp_path):
    done = pytest_run(tmp_path, "--collect-only", str(CLIENTS), FULL="0")
    assert [name for name in known_hosts() if f"[{name}" not in done.stdout] == []


def test_a_host_without_tests_is_a_mistake(tmp_path):
    done = pytest_run(tmp_path, "--collect-only", str(CLIENTS / CONTRACT), HOSTS="gose")
    assert done.returncode == 4
    assert "HOSTS: no tests for gose; there are: claude, codex, " in done.stderr


def test_the_last_lines_say_which_hosts_were_not_proven_and_why(tmp_path):
    done = pytest_run(tmp_path, str(CLIENTS / CONTRACT), HOSTS="goose")
    proven, missing = done.stdout.splitlines()[-2:]
    assert proven.startswith("proven 0 of 1 hosts:")
    assert missing.startswith("  not proven: goose: goose 1.52.0: it cannot be fetched into ")
    assert missing.endswith("no network")
