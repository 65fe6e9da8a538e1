"""Record what the real test runners and linters print about projects with known failures.

    python tools/record_failures.py                # every tool that is installed
    python tools/record_failures.py --modules DIR go jest

`DIR/node_modules/.bin` holds jest, vitest, eslint and typescript (`npm install` them there). The
recordings are data of tests/unit/gates. Beside each stands what must be found in it, as JSON; a
person checks that against the project, and this program leaves it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from failing import (
    javascript,
    native,
    python,
    reports,
)  # the tests are no package that is installed
from failing.projects import Case, anonymous, run, write

_VERSION = {
    "pytest": ("PYTHON", "-m", "pytest", "--version"),
    "unittest": ("PYTHON", "--version"),
    "mypy": ("PYTHON", "-m", "mypy", "--version"),
    "tap": ("node", "--version"),
    "go": ("go", "version"),
}


def main() -> int:
    """Record the named tools, or all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--modules", type=Path, help="folder with a node_modules")
    parser.add_argument("tools", nargs="*")
    given = parser.parse_args()
    cases = [*python.CASES, *javascript.CASES, *native.CASES, *reports.CASES]
    chosen = [case for case in cases if not given.tools or case.tool in given.tools]
    with tempfile.TemporaryDirectory(dir=given.modules) as folder:
        for case in chosen:
            record(case, Path(folder), given.modules)
    return 0


def record(case: Case, folder: Path, modules: Path | None) -> None:
    """Run one project and write what its tool printed."""
    bins = modules / "node_modules" / ".bin" if modules else None
    project = folder / case.tool / case.name
    project.mkdir(parents=True)
    words = _VERSION.get(case.tool.rpartition("_")[2], (case.run[0], "--version"))
    if words[0] != "PYTHON" and not shutil.which(words[0], path=_path(bins)):
        print(f"{case.tool} is not installed: {case.name} is not recorded")
        return
    version = run(Case(case.tool, "version", words, {}), folder, bins)[1].strip()
    write(case, project)
    code, text = run(case, project, bins)
    if case.report:
        text = (project / case.report).read_text(encoding="utf-8")
    if code != case.exit_code:
        print(f"{case.tool} {case.name}: exit {code}, not {case.exit_code}")
    head = json.dumps({"version": version, "run": list(case.run), "exit": code})
    case.recorded.parent.mkdir(parents=True, exist_ok=True)
    case.recorded.write_text(f"{head}\n{anonymous(text, project, modules)}", encoding="utf-8")
    print(f"recorded: {case.recorded.name}")


def _path(bins: Path | None) -> str | None:
    return f"{bins}{os.pathsep}{os.environ['PATH']}" if bins else None


if __name__ == "__main__":
    sys.exit(main())
