"""The made-up stop: which lines it is sent through, and how; none that its host would not run."""

import json
import pwd
import sys

import pytest

from hook_runs import ENTRY
from status_world import World


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


@pytest.fixture
def codex(tmp_path, monkeypatch, capsys):
    return World("codex", tmp_path, monkeypatch, capsys)


def in_project(world, line):
    """Let a project's settings call us by this line only."""
    world.settings.unlink()
    world.register("project")

    def change(value):
        for event in ("Stop", "SubagentStop"):
            value["hooks"][event][0]["hooks"][0]["command"] = line

    world.change(change, world.project / ".claude" / "settings.json")


def spying(world, path):
    """Put a program that leaves a trace where a line looks for us."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ntouch {world.folder}/ran\nexec {world.notyet} "$@"\n')
    path.chmod(0o755)


@pytest.mark.parametrize(
    "start",
    [
        "./bin/notyet",
        "$CLAUDE_PROJECT_DIR/bin/notyet",
        "{project}/bin/notyet",
        "{project}/../project/bin/notyet",
        "{folder}/link/notyet",
        "PATH=./bin notyet",
        "env ./bin/notyet",
    ],
)
def test_a_strange_project_s_program_is_not_run(world, start):
    spying(world, world.project / "bin" / "notyet")
    (world.folder / "link").symlink_to(world.project / "bin")
    start = start.format(project=world.project, folder=world.folder)
    in_project(world, f"{start} hook --host claude --timeout 1800")
    found = world.found()[1]
    assert "not-probed" in found
    assert found["not-probed"]["level"] == "warning"
    assert not (world.folder / "ran").exists()


def test_an_accepted_project_s_program_is_run(world):
    spying(world, world.project / "bin" / "notyet")
    world.accept(world.project)
    in_project(world, "./bin/notyet hook --host claude --timeout 1800")
    assert world.found() == (0, {})
    assert (world.folder / "ran").exists()


def test_other_commands_are_not_run_even_where_the_folder_is_accepted(world):
    world.accept(world.project)
    line = f"touch {world.folder}/ran && {world.notyet} hook --host claude --timeout 1800"
    in_project(world, line)
    code, found = world.found()
    assert (code, list(found)) == (1, ["not-probed"])  # it may never come to ours
    assert "it also runs other commands" in found["not-probed"]["what"]
    assert not (world.folder / "ran").exists()


@pytest.mark.parametrize("start", ["", None, "notyet"])
def test_a_project_s_line_that_names_the_user_s_notyet_is_run(world, start):
    world.settings.unlink()
    world.register("project", start=start)
    code, said = world.status()
    assert code == 0
    assert said["hosts"][0]["faults"] == []
    assert said["hosts"][0]["probe"]["foretold"].endswith("lint, tests")


def test_a_strange_project_s_variables_are_not_given_to_the_user_s_line(world):
    spying(world, world.project / "bin" / "notyet")
    world.settings.unlink()
    world.register(start="notyet")
    path = world.project / ".claude" / "settings.json"
    world.change(
        lambda value: value.update(env={"PATH": f"{world.project}/bin:/usr/bin:/bin"}), path
    )
    found = world.found()[1]
    assert "sets PATH" in found["not-probed"]["what"]
    assert not (world.folder / "ran").exists()


def test_what_codex_would_skip_is_not_run(codex):
    spying(codex, codex.project / "notyet")
    codex.each_entry(command=f"{codex.project}/notyet hook --host codex --timeout 1800")
    config = codex.home / ".codex" / "config.toml"
    codex.config(config.read_text().replace("sha256:", "sha256:0"))
    code, said = codex.status()
    assert code == 1
    assert said["hosts"][0]["probe"] is None
    assert not (codex.folder / "ran").exists()


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_a_line_that_leaves_the_host_to_the_payload_is_answered(
    tmp_path, monkeypatch, capsys, host
):
    world = World(host, tmp_path, monkeypatch, capsys)
    world.each_entry(command=f"{world.notyet} hook --timeout 1800", timeout=1800)
    assert world.found() == (0, {})


SHOW = f'cat > payload; env > variables; exec {sys.executable} -I -S {ENTRY} "$@" < payload'


def seen(world):
    """Return what the command found: its payload, and its environment."""
    world.program("notyet", SHOW)
    assert world.found() == (0, {})
    lines = (world.project / "variables").read_text().splitlines()
    variables = dict(line.split("=", 1) for line in lines if "=" in line)
    return json.loads((world.project / "payload").read_text()), variables


def test_claude_code_is_imitated(world):
    world.change(lambda value: value.update(env={"FROM": "settings", "NUMBER": 5, "ODD": []}))
    payload, variables = seen(world)
    assert payload["hook_event_name"] == "Stop"
    assert payload["cwd"] == variables["PWD"] == str(world.project)
    assert payload["session_id"] == variables["NOTYET_PROBE"]
    assert variables["CLAUDE_PROJECT_DIR"] == str(world.project)
    assert (variables["FROM"], variables["NUMBER"]) == ("settings", "5")
    assert "ODD" not in variables
    assert seen(world)[0]["session_id"] != payload["session_id"]


@pytest.mark.parametrize("shell", ["myshell", ""])
def test_codex_is_imitated_with_its_user_s_shell(codex, monkeypatch, shell):
    path = codex.program("myshell", 'echo "$@" > how; exec /bin/sh "$@"')
    entry = pwd.struct_passwd(("me", "x", 0, 0, "", "/", str(path) if shell else ""))
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: entry)
    payload, variables = seen(codex)
    assert {"turn_id", "model", "permission_mode"} <= payload.keys()
    assert payload["session_id"] == variables["NOTYET_PROBE"]
    assert (codex.project / "how").exists() == bool(shell)


def test_a_line_with_arguments_is_run_without_a_shell(world):
    args = ["hook", "--timeout", "700"]
    world.each_entry(args=args, command=str(world.notyet), timeout=700)
    assert world.found() == (0, {})
    world.program("notyet", "kill -9 $$")
    assert "it ended with signal 9." in world.found()[1]["no-reply"]["what"]
