"""Where hooks of Claude Code and Mux run: in the root of their project, wherever the agent is."""

import asyncio
import json
import os
import shutil

import pytest

from conftest import git
from hook_runs import ask, payload, stops, trust
from notyet.adapters.mux import run_stop_hooks
from notyet.config.load import load
from notyet.core.event import StartEvent
from notyet.core.gate import Command, Gate, Source, Starter, project_of
from notyet.engine.engine import Engine

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

SCRIPT = (
    '[ "$PWD" = "$CLAUDE_PROJECT_DIR" ] && [ "$PWD" = "${MUX_PROJECT_DIR:-$PWD}" ] && ./ok.sh\n'
)


def settings(command, event="Stop"):
    return json.dumps({"hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]}})


@pytest.fixture
def project(tmp_path):
    """A project in git with a sub-folder, and a script that a hook runs by its relative path."""
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / ".mux").mkdir()
    (folder / ".claude").mkdir()
    (folder / "ok.sh").write_text("#!/bin/sh\npwd -P > ran\necho not yet >&2\nexit 2\n")
    (folder / "ok.sh").chmod(0o755)
    git(folder, "init", "--quiet")
    return folder


def placed(project, name, text):
    path = project / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.rule("E7", "H2")
@pytest.mark.parametrize("name", [".mux/settings.json", ".mux/stop"])
@pytest.mark.parametrize("how", ["asked", "given"])
def test_hooks_of_mux_run_in_the_root_of_their_project(project, name, how):
    kind = "mux" if name.endswith("json") else "mux-stop"
    path = placed(project, name, settings(SCRIPT) if kind == "mux" else SCRIPT)
    trust(path, kind)
    given = {"hook_event_name": "Stop", "cwd": str(project / "sub"), "session_id": "s"}
    result = asyncio.run(run_stop_hooks(str(project), given, trust=how))
    assert (result.continue_reason, result.warnings) == ("not yet", ())
    assert (project / "ran").read_text() == f"{project}\n"


@pytest.mark.rule("E7", "H2")
def test_a_users_own_hooks_of_mux_run_in_the_project_that_the_caller_names(
    project, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.mux").mkdir(parents=True)
    placed(tmp_path / "home", ".mux/settings.json", settings(SCRIPT))
    given = {"hook_event_name": "Stop", "cwd": str(project / "sub"), "session_id": "s"}
    assert asyncio.run(run_stop_hooks(str(project), given)).continue_reason == "not yet"


@pytest.mark.rule("E7", "H1", "H2")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (".claude/settings.json", "claude"),
        (".mux/settings.json", "mux"),
        (".mux/stop", "mux-stop"),
    ],
)
def test_a_stop_in_a_sub_folder_runs_them_in_the_root(project, name, kind):
    host = kind.split("-")[0]
    placed(project, "notyet.toml", f'[read]\nhosts = ["{host}"]\n')
    trust(project / "notyet.toml")
    trust(placed(project, name, SCRIPT if kind == "mux-stop" else settings(SCRIPT)), kind)
    ask(payload("codex", project / "sub"), "--host", "codex")
    assert [outcome for outcome, _ in stops()] == ["blocked"]
    assert (project / "ran").read_text() == f"{project}\n"


@pytest.mark.rule("E7")
def test_in_a_linked_work_tree_that_is_its_root(project, tmp_path):
    placed(project, "notyet.toml", '[read]\nhosts = ["mux"]\n')
    placed(project, ".mux/stop", SCRIPT)
    (project / "sub/file").write_text("")
    (project / ".gitignore").write_text("wt/\n")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "-m", "one")
    trust(project / "notyet.toml")
    trust(project / ".mux/stop", "mux-stop")
    tree = project / "wt/x"
    git(project, "worktree", "add", "--quiet", str(tree))
    ask(payload("codex", tree / "sub"), "--host", "codex")
    assert [outcome for outcome, _ in stops()] == ["blocked"]
    assert (tree / "ran").read_text() == f"{tree}\n"
    assert not (project / "ran").exists()


@pytest.mark.rule("E7")
def test_start_hooks_of_claude_code_run_there_too(project):
    said = settings('echo "$PWD $CLAUDE_PROJECT_DIR"', "SessionStart")
    trust(placed(project, ".claude/settings.json", said), "claude")
    setup = load(str(project / "sub"), "notyet", os.environ, agent="script")
    event = StartEvent(session_id="s", cwd=str(project / "sub"))
    engine = Engine(setup.gates, starters=setup.starters)
    assert f"{project} {project}" in asyncio.run(engine.start(event))


@pytest.mark.rule("E7", "H1")
def test_the_project_of_a_command_is_where_it_runs_or_where_its_file_is():
    def of(speaks, folder):
        check = Command(script="true", speaks=speaks, dir=folder)
        return project_of(Gate(name="g", check=check, source=Source("/p/.x/file")))

    assert [of("claude", "/p"), of("mux", "/p")] == ["/p", "/p"]
    assert [of("claude", ""), of("codex", "/p"), of("notyet", "/p/sub")] == ["", "/p/.x", "/p/.x"]
    assert project_of(Starter(name="s", check=Command(script="true", speaks="claude"))) == ""
