"""Runs every check of the project and ends in a short summary: `checks.py all` or `lint`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

BIN = os.path.dirname(sys.executable)
STRICT = "src/notyet/core/*,src/notyet/dialects/*"
LEAST = "95"  # percent of all code, branches counted
MOST_AGAIN = 5  # tests that may have failed by chance; when more fail, something is broken
CORES = os.cpu_count() or 1
WORKERS = max(CORES, min(2 * CORES, 8))  # many tests only wait for a process

LINT = {
    "style": ["ruff", "check", "--quiet", "."],
    "format": ["ruff", "format", "--quiet", "--check", "."],
    "types": ["mypy", "--no-error-summary"],
    "types of the API": ["mypy", "--no-error-summary", "tests/typing/api.py"],
    "layers": ["lint-imports", "--no-logo"],
    "rules index": ["python", "tools/rules_index.py"],
    "API reference": ["python", "tools/api_reference.py"],
    "config reference": ["python", "tools/config_reference.py"],
    "wire reference": ["python", "tools/wire_reference.py"],
    "command reference": ["python", "tools/cli_reference.py"],
}
COVERED = ["--cov", "--cov-report="]
TEST = {
    # Also compiles them: else every worker does it, and under coverage that takes thrice as long.
    # With -E no variable keeps Python from writing down what it compiled.
    "tests are found": ["python", "-E", "-m", "pytest", "-qq", "--collect-only"],
    # Without its cache pytest writes down what failed in this run, and nothing older.
    "tests": ["pytest", "-q", "-n", str(WORKERS), "--dist", "worksteal", "--cache-clear", *COVERED],
    "coverage of core and dialects": [
        "coverage",
        "report",
        f"--include={STRICT}",
        "--fail-under=100",
    ],
    "coverage of everything": ["coverage", "report", f"--fail-under={LEAST}"],
}
AGAIN = ["pytest", "-q", "-n", "0", *COVERED, "--cov-append"]
SHOWN = {"tests"}  # whose output is worth reading also when it passes


def main(which: str) -> int:
    """Run the checks, quietly while they pass."""
    failed = []
    lines = []
    unsteady: list[str] = []
    for name, command in (LINT if which == "lint" else LINT | TEST).items():
        started = time.monotonic()
        code = run(name, command)
        if code and name == "tests":
            unsteady = passing_alone(code)
        is_ok = not code or bool(unsteady and name == "tests")
        seconds = time.monotonic() - started
        lines.append(f"  {'ok' if is_ok else 'FAILED':<8} {name:<30} {seconds:5.1f}s")
        if not is_ok:
            failed.append(name)
    print("\n".join(["", *lines, *(f"  UNSTEADY tests  {test}" for test in unsteady)]))
    print(f"\n{len(failed)} of {len(lines)} checks failed" if failed else "\nall checks passed")
    if unsteady:
        print(f"{len(unsteady)} UNSTEADY: failed among the others and passed alone; mend it")
    return 1 if failed else 0


def run(name: str, command: list[str]) -> int:
    """Run one check; return its exit code."""
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
    tests = failed_tests() if code == 1 else []  # else it was not about a test
    if not 0 < len(tests) <= MOST_AGAIN:
        return []
    print(f"\n--- once more, alone: {' '.join(tests)}", flush=True)
    return [] if run("tests", [*AGAIN, *tests]) else tests


def failed_tests() -> list[str]:
    """Return what pytest wrote down as failed."""
    try:
        with open(".pytest_cache/v/cache/lastfailed", encoding="utf-8") as file:
            return sorted(json.load(file))
    except (OSError, ValueError):
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
