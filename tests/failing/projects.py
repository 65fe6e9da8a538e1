"""Small projects with known failures, for the real tools whose output notyet reads.

`tools/record_failures.py` runs each with the real tool and records its output; the tests read the
recordings everywhere, and run the real tools again where they are installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

RECORDED = Path(__file__).parent.parent / "vectors" / "gates" / "failures"
_TOO_LONG = 300  # seconds


@dataclass(frozen=True)
class Case:
    """One project and one command; what must be found in its output stands beside the recording."""

    tool: str
    name: str
    run: tuple[str, ...]
    files: dict[str, str]
    exit_code: int = 1
    report: str = ""  # that the command writes; recorded instead of what it prints

    @property
    def recorded(self) -> Path:
        return RECORDED / f"{self.tool}-{self.name}.txt"

    @property
    def expected(self) -> Path:
        return RECORDED / f"{self.tool}-{self.name}.json"


def write(case: Case, folder: Path) -> None:
    """Write the files of a project."""
    for name, text in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(case: Case, folder: Path, bin_folder: Path | None = None) -> tuple[int, str]:
    """Run the real tool in its project, and return its exit code and its output."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "COV_", "NODE_", "VITEST", "CI", "GITHUB_"))
    }
    environ |= {"NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1", "PY_COLORS": "0"}
    environ |= {"GOFLAGS": "-count=1", "GOCACHE": str(folder.parent / "go-cache")}
    environ |= {"CARGO_TERM_COLOR": "never", "CARGO_NET_OFFLINE": "true"}
    environ.pop("FORCE_COLOR", None)
    if bin_folder is not None:
        environ["PATH"] = f"{bin_folder}{os.pathsep}{environ['PATH']}"
    words = [sys.executable if word == "PYTHON" else word for word in case.run]
    done = subprocess.run(
        words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=_TOO_LONG,
        check=False,
    )
    return done.returncode, done.stdout.decode("utf-8", "replace")


def anonymous(text: str, folder: Path, home: Path | None = None) -> str:
    """Replace the paths of this machine, so that a recording is the same everywhere."""
    for place in {folder, folder.resolve()}:
        text = text.replace(str(place), "/project")
        text = text.replace(str(place).lstrip("/"), "project")
    for place in {home, home.resolve()} if home else set():
        text = text.replace(str(place), "/modules")
    text = text.replace(sys.executable, "/usr/bin/python3")
    return re.sub(r"(?:/[\w.-]+)+/lib/python3", "/usr/lib/python3", text)
