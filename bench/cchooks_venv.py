"""An interpreter that has `cchooks`, in an environment of its own: fetched once, pinned by its hash."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.progress import say

_NEEDS = Path(__file__).parents[1] / "requirements" / "peers.txt"
_PATIENCE = 60.0  # seconds


def python_with_cchooks() -> tuple[str, str]:
    """Return the path of the interpreter, or "" and why there is none."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = _cache() / "notyet-bench" / f"peers-{version}"
    python = folder / "bin" / "python"
    if _has_it(python):
        return str(python), ""
    say(f"fetching cchooks into {folder}")
    quiet = (
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--retries",
        "1",
        "--timeout",
        "10",
    )
    problem = _run([sys.executable, "-m", "venv", str(folder)]) or _run(
        [str(python), "-m", "pip", "install", *quiet, "--require-hashes", "-r", str(_NEEDS)]
    )
    if problem:
        return "", f"it cannot be fetched: {problem}"
    return (str(python), "") if _has_it(python) else ("", "it was fetched, but cannot be imported")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _has_it(python: Path) -> bool:
    return python.exists() and not _run([str(python), "-c", "import cchooks"])


def _run(command: list[str]) -> str:
    """Run a command; return the last line of what it complains about, or ""."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} took more than {_PATIENCE:.0f} s"
    if not done.returncode:
        return ""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
