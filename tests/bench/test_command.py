"""`python -m bench`: what it prints, writes and returns."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def bench(*words):
    command = [sys.executable, "-m", "bench", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_tables_go_to_stdout_progress_to_stderr_and_figures_to_json(tmp_path):
    path = tmp_path / "new" / "run.json"
    done = bench("--quick", "--area", "imports", "--json", str(path))
    assert done.returncode == 0
    assert "import notyet" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Imports" in done.stderr
    run = json.loads(path.read_text())
    (table,) = run["tables"]
    assert (run["effort"], table["area"], table["failure"]) == ("quick", "imports", "")
    first = table["results"][0]
    assert (first["kind"], first["what"]) == ("row", "import notyet")
    assert len(first["ours_us"]["median"]) == 3
    assert f"written: {path}" in done.stdout


def test_an_area_that_is_not_there_is_refused_with_those_that_are():
    done = bench("--area", "kitchen")
    assert done.returncode == 2
    assert "invalid choice: 'kitchen'" in done.stderr
    assert "growth" in done.stderr
