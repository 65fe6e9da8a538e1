"""Runs areas, each in a process of its own: none leaves memory, threads or variables to the next."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.document import Table, result_from_json, result_to_json
from bench.progress import say

if TYPE_CHECKING:
    from bench.areas import Area
    from bench.measure import Effort

ROOT = Path(__file__).parents[1]
PATIENCE = 900.0  # seconds for one area; on a quiet machine it takes a minute or two


def run_apart(area: Area, effort: Effort) -> Table:
    """Measure an area in a process of its own; whatever goes wrong there is said in its table."""
    say(area.title)
    started = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="notyet-bench-", suffix=".json") as file:
        command = [sys.executable, "-m", "bench", "--within", area.module, effort.name, file.name]
        # Its output is no table: to standard error with it.
        environ = os.environ | {"PYTHONHASHSEED": "0"}
        child = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=2, process_group=0)
        failure = ""
        try:
            if code := child.wait(PATIENCE):
                failure = f"its process ended with {code}"
        except subprocess.TimeoutExpired:
            failure = f"it took longer than {PATIENCE:.0f} s"
        finally:
            if child.poll() is None:  # also when somebody pressed ^C here
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        written = Path(file.name).read_text(encoding="utf-8")
    said: dict[str, Any] = json.loads(written) if written else {"results": [], "failure": failure}
    results = tuple(result_from_json(each) for each in said["results"])
    seconds = round(time.monotonic() - started, 1)
    return Table(area.module, area.title, seconds, results, said["failure"] or failure)


def run_within(module: str, effort: Effort, path: str) -> int:
    """Measure an area in this process, and write its results to a file."""
    failure, results = "", []
    try:
        results = [
            result_to_json(each) for each in import_module(f"bench.{module}").measure(effort)
        ]
    except Exception as error:  # noqa: BLE001  # the other areas are still worth measuring
        traceback.print_exc()
        failure = f"{type(error).__name__}: {error}".splitlines()[0]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"results": results, "failure": failure}, file)
    return 0
