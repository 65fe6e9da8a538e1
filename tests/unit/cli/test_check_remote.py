"""`notyet check` where the agent's files are on another machine (M)."""

import json
import os
import subprocess
import sys

import pytest

from hook_runs import ENTRY, clean_environ, new_project, payload, run_hook
from workspaces import trust_there, unreachable, write_there


def check(box, folder, *argv, **environ):
    return subprocess.run(
        [sys.executable, "-I", str(ENTRY), "check", *argv],
        cwd=folder,
        env=clean_environ(**box.environ | environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.rule("M1", "M5")
def test_gates_of_a_named_workspace_are_asked_there(warm_box, app, tmp_path):
    write_there(app, "notyet.toml", '[gates]\nthere = "pwd; exit 1"\n')
    trust_there(warm_box, app)
    done = check(warm_box, tmp_path, "--workspace", warm_box.url(app), "--json")
    assert done.returncode == 1, done.stderr
    said = json.loads(done.stdout)
    (report,) = said["reports"]
    assert (report["output"], report["workspace"]) == (str(app), warm_box.url(app))
    assert report["file"] == f"{warm_box.url(app)}/notyet.toml"
    shown = check(warm_box, tmp_path, "--workspace", warm_box.url(app))
    assert "exit 1 · on box" in shown.stdout


@pytest.mark.rule("M1")
def test_a_workspace_that_a_file_names_is_where_the_gates_are_asked(warm_box, app, tmp_path):
    text = f'workspace = "{warm_box.url(app)}"\n[gates.g]\nrun = "pwd; exit 1"\nwhen = "always"\n'
    here = new_project(tmp_path / "here", text)
    file = tmp_path / "sent.json"
    file.write_text(json.dumps(payload("conclaude", here)))
    done = check(warm_box, here, "--as", "conclaude", "--payload", str(file), "--json")
    reply = json.loads(done.stdout)["reply"]
    assert f"  {app}\n" in reply["stderr"]
    hook = run_hook(
        file.read_bytes(), "--host", "conclaude", environ=clean_environ(**warm_box.environ)
    )
    assert reply["code"] == hook.returncode
    assert reply["stderr"].splitlines()[3:] == hook.stderr.decode().splitlines()[3:]


@pytest.mark.rule("M3")
def test_a_machine_that_cannot_be_reached_is_said(warm_box, app, tmp_path, monkeypatch):
    text = f'workspace = "{warm_box.url(app)}"\n[gates]\ng = "true"\n'
    here = new_project(tmp_path / "here", text)
    unreachable(monkeypatch, warm_box, tmp_path)
    config = os.environ["NOTYET_SSH_CONFIG"]
    done = check(warm_box, here, NOTYET_SSH_CONFIG=config)
    assert done.returncode == 2
    assert "NOT CHECKED: g gave no answer" in done.stdout
    assert "refused" in done.stdout
