"""Runs every check of the project and ends in a short summary: `checks.py all` or `lint`."""

from __future__ import annotations

import os
import subprocess
import sys
import time

BIN = os.path.dirname(sys.executable)
STRICT = "src/notyet/core/*,src/notyet/dialects/*"
LEAST = "95"  # percent of all code, branches counted

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
}
TEST = {
    "tests": ["pytest", "-q", "-n", "auto", "--cov", "--cov-report="],
    "coverage of core and dialects": [
        "coverage",
        "report",
        f"--include={STRICT}",
        "--fail-under=100",
    ],
    "coverage of everything": ["coverage", "report", f"--fail-under={LEAST}"],
}
SHOWN = {"tests"}  # whose output is worth reading also when it passes


def main(which: str) -> int:
    """Run the checks, quietly while they pass."""
    failed = []
    lines = []
    for name, command in (LINT if which == "lint" else LINT | TEST).items():
        started = time.monotonic()
        program, *args = command
        quiet = None if name in SHOWN else subprocess.PIPE
        done = subprocess.run(
            [os.path.join(BIN, program), *args],
            stdout=quiet,
            stderr=subprocess.STDOUT if quiet else None,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - started
        if done.returncode:
            failed.append(name)
            if quiet:
                print(f"--- {name}: {' '.join(command)}\n{done.stdout}", flush=True)
        lines.append(f"  {'FAILED' if done.returncode else 'ok':<7} {name:<30} {seconds:5.1f}s")
    print("\n".join(["", *lines]))
    print(f"\n{len(failed)} of {len(lines)} checks failed" if failed else "\nall checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "all"))
