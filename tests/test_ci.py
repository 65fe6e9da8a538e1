"""`.ci/run`: parts with a budget, and programs hidden from the bare tests."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from process_table import is_gone

ROOT = Path(__file__).parent.parent
CODE = """
import sys
sys.path.insert(0, {tools!r})
import ci
ci.PARTS = [ci.Part(name, minutes, ["sh", "-c", text]) for name, minutes, text in {parts!r}]
sys.exit(ci.main({names!r}))
"""


def run(parts, *names):
    """Run parts in a process of their own; return its exit code and its lines."""
    code = CODE.format(tools=str(ROOT / "tools"), parts=parts, names=list(names))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, [" ".join(line.split()) for line in done.stdout.splitlines()]


def test_a_part_over_its_budget_is_reported_and_one_that_fails_ends_the_run():
    code, lines = run([("a", 1, ":"), ("b", 0, ":"), ("c", 1, "exit 3"), ("d", 1, ":")])
    assert code == 1
    assert lines[-4:] == [
        "ok a 0.0 of 1 min",
        "ok b 0.0 of 0 min OVER BUDGET",
        "FAILED c 0.0 of 1 min",
        "not run d",
    ]


def test_parts_are_chosen_by_name():
    parts = [("a", 1, "exit 1"), ("b", 1, ":")]
    assert run(parts, "b") == (0, ["=== b: sh -c :", "", "ok b 0.0 of 1 min"])
    assert run(parts, "c") == (2, ["no such part: c; there are: a b"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can adopt orphans")
def test_processes_that_a_part_leaves_behind_are_ended_and_named():
    code, lines = run([("a", 1, "setsid sleep 600 >&- 2>&- & echo pid $!")])
    assert code == 0
    # It may still be called by what becomes `sleep`.
    assert re.fullmatch(r"ok a 0.\d of 1 min \(ended processes left behind: \w+\)", lines[-1])
    (pid,) = re.findall(r"^pid (\d+)$", "\n".join(lines), re.MULTILINE)
    assert is_gone(lambda: Path(f"/proc/{pid}").exists())


def test_bare_hides_programs_and_keeps_the_others(tmp_path, monkeypatch):
    for name in ("ssh", "zsh", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHON", sys.executable)
    script = "command -v ssh; command -v zsh; command -v other; command -v git; exit 7"
    done = subprocess.run(
        [ROOT / ".ci" / "bare", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = [Path(line).name for line in done.stdout.splitlines()]
    assert (done.returncode, found, done.stderr) == (7, ["other", "git"], "")
    assert not Path(done.stdout.splitlines()[0]).exists()  # the folder of links is gone
