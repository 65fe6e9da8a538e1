"""A stranger adds a host in one file, from the page alone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installs import _PERSON

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "add-a-host.md").read_text()
THEIRS = {"hooks": [{"type": "command", "command": "x"}]}
MINE = f'{{\n\t"theme": "dark",\n\t"hooks": {{"Stop": [{json.dumps(THEIRS)}]}}\n}}'


@pytest.fixture
def checkout(tmp_path):
    """Return a copy of the source in which only the page's file is new."""
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", copy / "src", ignore=ignored)
    shutil.copytree(ROOT / "tools", copy / "tools", ignore=ignored)
    (text,) = [part.split("```")[0] for part in PAGE.split("```python\n")[1:]]
    (copy / "src" / "notyet" / "hosts" / "acme.py").write_text(text)
    return copy


@pytest.fixture
def run(checkout, tmp_path):
    """Run something as a user would, in a project, with this checkout."""
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".acme").mkdir(parents=True)
    project.mkdir()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    environ = {"HOME": str(home), "PATH": path, "PYTHONPATH": str(checkout / "src")}

    def run(*words, content=b""):
        return subprocess.run(
            words, cwd=project, env=environ, input=content, capture_output=True, timeout=120
        )

    run.project, run.home = project, home
    run.notyet = lambda *words: run(sys.executable, "-c", _PERSON, *words)
    return run


def test_a_fictional_host_is_one_file(checkout, run):
    made = run(sys.executable, str(checkout / "tools" / "host_index.py"), "--write")
    assert made.returncode == 0, made.stdout + made.stderr

    (row,) = [line for line in run.notyet("hosts").stdout.decode().splitlines() if "acme" in line]
    words = row.split()
    assert words[:6] == ["acme", "1.2.3", "yes", "no", "ours", "no"]
    assert "by source" in row
    assert "~/.acme/settings.json" in row

    (run.project / "notyet.toml").write_text(
        '[gates.ready]\nrun = "test -e ready || { echo not ready; exit 1; }"\nwhen = "always"\n'
    )
    settings = run.home / ".acme" / "settings.json"
    settings.write_text(MINE)
    installed = run.notyet("install", "acme", "--yes")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert "user" in next(
        line for line in run.notyet("hosts").stdout.decode().splitlines() if "acme" in line
    )

    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks["Stop"][0] == THEIRS
    (ours,) = hooks["Stop"][1]["hooks"]
    stop = {"hook_event_name": "Stop", "session_id": "s", "cwd": str(run.project)}
    stop |= {"acme_version": "1.2.3", "stop_hook_active": False}
    called = run("/bin/sh", "-c", ours["command"], content=json.dumps(stop).encode())
    said = json.loads(called.stdout)
    assert (called.returncode, said["decision"]) == (0, "block")
    assert "not ready" in said["reason"]

    (run.project / "ready").touch()
    program = [sys.executable, "-c", _PERSON, "hook"]  # without --host: the payload tells
    stop["stop_hook_active"] = True
    called = run(*program, content=json.dumps(stop).encode())
    assert called.returncode == 0
    assert json.loads(called.stdout) == {"systemMessage": "notyet: passed after 1 send-back"}
    stops = run.notyet("log", "--json").stdout.decode().splitlines()
    assert {json.loads(line)["host"] for line in stops} == {"acme"}
    assert {json.loads(line)["outcome"] for line in stops} == {"blocked", "passed"}

    removed = run.notyet("uninstall", "acme", "--yes")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    assert settings.read_bytes() == MINE.encode()
    assert os.listdir(run.home / ".acme") == ["settings.json"]


def test_every_attribute_that_the_page_names_is_there():
    from notyet.hosts.host import Host

    rows = PAGE.split("| attribute | for |")[1].split("\n\n")[0].splitlines()[2:]
    names = [name.strip(" `") for row in rows for name in row.split("|")[1].split(",")]
    assert set(names) <= set(Host._fields), names
