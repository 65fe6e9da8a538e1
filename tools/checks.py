"""Run checks and print a short summary; `python tools/checks.py help` lists the groups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

BIN = os.path.dirname(sys.executable)
STRICT = "src/notyet/core/*,src/notyet/hosts/*"
# Installation meets the faults of disks and permissions, of which a test cannot make all.
INSTALLATION = ",".join(
    f"src/notyet/hosts/{name}.py" for name in ("faults", "*/faults", "*/settings", "*/trust")
)
MOST_AGAIN = 5  # tests that may have failed by chance; when more fail, something is broken
CORES = os.cpu_count() or 1
WORKERS = max(CORES, min(2 * CORES, 8))  # many tests only wait for a process

# The checks of a table run at the same time, the longest first; the tables one after the other.
Checks = dict[str, list[str]]
LINT: Checks = {
    "types": ["mypy", "--no-error-summary"],
    "rules": ["python", "tools/rules.py"],
    "layers": ["lint-imports", "--no-logo"],
    "command reference": ["python", "tools/cli_reference.py"],
    "index of hosts": ["python", "tools/host_index.py"],
    "API reference": ["python", "tools/api_reference.py"],
    "config reference": ["python", "tools/config_reference.py"],
    "error reference": ["python", "tools/error_reference.py"],
    "wire reference": ["python", "tools/wire_reference.py"],
    "plugins": ["python", "tools/plugins.py"],
    "tables of hosts": ["python", "tools/host_table.py"],
    "table of frameworks": ["python", "tools/framework_table.py"],
    "words of the documentation": ["python", "tools/docs_words.py"],
    "style": ["ruff", "check", "--quiet", "."],
    "format": ["ruff", "format", "--quiet", "--check", "."],
}
COLLECT: Checks = {
    # Compiles the tests, too: otherwise every worker does it, and coverage makes that three times
    # slower. With -E no variable keeps Python from saving the compiled files.
    "tests are found": ["python", "-E", "-m", "pytest", "-qq", "--collect-only"],
}
COVERED = ["--cov", "--cov-report="]
# The tests that must cover core and hosts alone; the others are quicker without coverage.
CORE = ["tests/unit/core", "tests/unit/hosts", "tests/unit/engine"]
# Without its cache pytest records the failures of this run only.
PYTEST = ["pytest", "-q", "-n", str(WORKERS), "--dist", "worksteal", "--cache-clear"]
CORE_TESTS: Checks = {"tests of core and hosts": [*PYTEST, *COVERED, *CORE]}
TESTS: Checks = {"tests": [*PYTEST, *(f"--ignore={folder}" for folder in CORE)]}
COVERAGE: Checks = {
    "coverage of core and hosts": [
        "coverage",
        "report",
        f"--include={STRICT}",
        f"--omit={INSTALLATION}",
        "--fail-under=100",
    ],
}
# A test waits while a program is fetched, maybe by another process (tests/clients/fetching.py).
FETCHING = ["--timeout", "600"]
CLIENTS: Checks = {
    "tests with real clients": [
        "pytest",
        "-q",
        "-n",
        "2",
        "--cache-clear",
        *FETCHING,
        "tests/clients",
    ]
}
BENCH: Checks = {
    "tests of the benchmark": ["pytest", "-q", "-n", "2", "--cache-clear", "tests/bench"]
}
# What a ledger promises, supervisors and the page on it, once more with PostgreSQL.
STORED = [
    *("tests/unit/ledger", "tests/unit/supervise", "tests/unit/web", "tests/crash"),
    "tests/unit/fleet/test_placements.py",
]
POSTGRES: Checks = {
    "tests on PostgreSQL": [*PYTEST, "--store", "postgresql", *STORED],
}
BROWSER: Checks = {
    "tests with a browser": ["pytest", "-q", "-n", "2", "--cache-clear", "tests/browser"]
}
AGAIN = ["pytest", "-q", "-n", "0", *FETCHING, *COVERED, "--cov-append"]
SHOWN = {
    *CORE_TESTS,
    *TESTS,
    *CLIENTS,
    *BENCH,
    *BROWSER,
    *POSTGRES,
}  # their output is shown also when they pass


class Result(NamedTuple):
    """How one check ended."""

    name: str
    is_ok: bool
    seconds: float
    unsteady: list[str]  # tests that failed among the others and passed alone


def main(which: str) -> int:
    """Run the checks; print the output of those that fail, and a summary."""
    started = time.monotonic()
    groups = {
        "all": [COLLECT | LINT, CORE_TESTS, TESTS, COVERAGE],
        "lint": [LINT],
        "clients": [CLIENTS],
        "bench": [BENCH],
        "browser": [BROWSER],
        "postgres": [POSTGRES],
    }
    if which not in groups:
        print(f"no such checks: {which}; there are:", *groups)
        return 2
    results: list[Result] = []
    for table in groups[which]:
        with ThreadPoolExecutor(CORES) as pool:
            results += pool.map(check, table, table.values())
    print()
    for result in results:
        word = "ok" if result.is_ok else "FAILED"
        print(f"  {word:<8} {result.name:<30} {result.seconds:5.1f}s")
    unsteady = [test for result in results for test in result.unsteady]
    for test in unsteady:
        print(f"  UNSTEADY tests  {test}")
    failed = sum(not result.is_ok for result in results)
    summary = f"{failed} of {len(results)} checks failed" if failed else "all checks passed"
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    print(f"\n{summary} in {minutes} min {seconds} s")
    if unsteady:
        print(f"{len(unsteady)} UNSTEADY: failed among the others and passed alone; fix it")
    return 1 if failed else 0


def check(name: str, command: list[str]) -> Result:
    """Run one check, and tests that failed a second time."""
    started = time.monotonic()
    code = run(name, command)
    unsteady = passing_alone(code) if code and name in SHOWN else []
    is_ok = not code or bool(unsteady)
    return Result(name, is_ok, time.monotonic() - started, unsteady)


def run(name: str, command: list[str]) -> int:
    """Run a command; return its exit code."""
    program, *args = command
    quiet = None if name in SHOWN else subprocess.PIPE
    done = subprocess.run(
        [os.path.join(BIN, program), *args],
        stdout=quiet,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode and quiet:
        print(f"--- {name}: {' '.join(command)}\n{done.stdout}", flush=True)
    return done.returncode


def passing_alone(code: int) -> list[str]:
    """Run the few tests that failed once more, alone; return them if all of them pass then."""
    tests = failed_tests() if code == 1 else []  # other codes are not about a test
    if not 0 < len(tests) <= MOST_AGAIN:
        return []
    print(f"\n--- running again, alone: {' '.join(tests)}", flush=True)
    return [] if run("tests", [*AGAIN, *tests]) else tests


def failed_tests() -> list[str]:
    """Return the tests that pytest recorded as failed."""
    try:
        with open(".pytest_cache/v/cache/lastfailed", encoding="utf-8") as file:
            return sorted(json.load(file))
    except (OSError, ValueError):
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
