"""Hosts that were never run here: what their sources and documentation demand."""

import json
import subprocess

import pytest

from hook_runs import FAILING, PASSING, ask, new_project
from notyet.hosts import all_hosts, host_named
from notyet.install.settings import read_settings, settings_of
from wire import VECTORS

DOCS = VECTORS.parents[1] / "docs" / "how-to"
BY_SOURCE = [host for host in all_hosts() if host.proof == "source"]


def recorded(name, **more):
    return json.loads((VECTORS / "payloads" / name).read_text()) | more


@pytest.mark.parametrize("host", BY_SOURCE, ids=lambda host: host.name)
def test_its_page_says_first_that_it_is_unproven_and_what_it_comes_from(host):
    page = (DOCS / f"{host.name}.md").read_text()
    first = page.split("\n## ")[0]
    assert "Unproven" in first
    assert host.derived_from.split()[0].split(",")[0].split("/")[0] in first


def test_an_agent_of_cursor_that_failed_or_was_interrupted_is_not_gated(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    environ = {"CURSOR_PROJECT_DIR": str(project)}
    held = ask(recorded("cursor/stop.completed.json"), environ=_environ(environ))
    assert "followup_message" in json.loads(held.stdout)
    for name in ("stop.aborted", "stop.error", "subagentStop.error"):
        reply = ask(recorded(f"cursor/{name}.json"), environ=_environ(environ))
        assert (reply.code, reply.stdout) == (0, "")


@pytest.mark.rule("B8")
def test_follow_ups_of_cursor_are_counted_though_each_is_a_new_generation(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    environ = _environ({"CURSOR_PROJECT_DIR": str(project)})
    replies = [
        ask(
            recorded("cursor/stop.second.json", generation_id=f"g{at}", loop_count=at),
            environ=environ,
        )
        for at in range(5)
    ]
    assert [bool(reply.stdout) for reply in replies] == [True, True, True, False, False]


def test_devin_names_its_folder_in_the_environment_alone(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    environ = _environ({"DEVIN_PROJECT_DIR": str(project)})
    reply = ask(recorded("devin/Stop.first.json"), environ=environ)
    assert json.loads(reply.stdout).keys() == {"decision", "reason"}


def test_vs_code_reads_a_block_in_both_places(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    said = json.loads(ask(recorded("vscode/Stop.first.json", cwd=str(project))).stdout)
    inner = said["hookSpecificOutput"]
    assert (inner["decision"], inner["hookEventName"]) == ("block", "Stop")
    assert inner["reason"] == said["reason"]


# As @cursor/sdk does it: the payload follows the command line as a here-document.
HERE = "{line} <<'CURSOR_HOOK_EOF'\n{payload}\nCURSOR_HOOK_EOF\n"


@pytest.mark.parametrize("start", ["guarded", "plain", ""])
def test_the_line_in_cursors_settings_gets_the_here_document(start, tmp_path):
    folder = tmp_path / "it's" / "notyet" / "0123456789ab"
    folder.mkdir(parents=True)
    launcher = folder / "launch.py"
    launcher.write_text("")
    program = tmp_path / "notyet"
    program.write_text("#!/bin/sh\ncat\n")
    program.chmod(0o755)
    from shlex import quote

    starts = {
        "guarded": f"test -r {quote(str(launcher))} && test -x {program} && exec "
        f"{program} -I -S {quote(str(launcher))}",
        "plain": str(program),
        "": "",
    }
    settings = settings_of("cursor")
    entry, *_ = settings.entries(starts[start], 60)
    payload = '{"conversation_id": "it\'s $HOME"}'
    done = subprocess.run(
        ["sh", "-c", HERE.format(line=entry.command, payload=payload)],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, payload, "")
    if start == "guarded":
        launcher.unlink()
        gone = subprocess.run(
            ["sh", "-c", HERE.format(line=entry.command, payload=payload)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert (gone.returncode, gone.stdout) == (1, "")  # which Cursor ignores


def test_cursors_entry_asks_for_no_limit_of_cursors_own(tmp_path):
    settings = settings_of("cursor")
    file = settings.target("user", str(tmp_path), {"HOME": str(tmp_path)})
    text = settings.text_with("", file, settings.entries("/x/notyet", 60))
    written = read_settings(text, file).value
    assert written["version"] == 1
    for event in host_named("cursor").stops:
        (entry,) = written["hooks"][event]
        assert entry == {
            "command": "/x/notyet hook --host cursor --timeout 60",
            "timeout": 60,
            "loop_limit": None,
        }


def _environ(more):
    import os

    return dict(os.environ) | more


def test_a_passing_project_is_allowed_in_silence(tmp_path):
    project = new_project(tmp_path / "p", PASSING)
    for name in ("cursor/stop.completed", "devin/Stop.first", "vscode/Stop.first"):
        environ = _environ({"CURSOR_PROJECT_DIR": str(project), "DEVIN_PROJECT_DIR": str(project)})
        assert ask(recorded(f"{name}.json", cwd=str(project)), environ=environ).stdout == ""
