"""`notyet with`: an agent, its gates, and what the caller learns."""

import io
import json
import os
import re
import subprocess

import pytest

from conftest import git
from hook_runs import clean_environ
from with_runs import (
    ANSWERS,
    GATED,
    LEARNS,
    command_line,
    listed,
    project,
)


def script(*steps):
    return f"[[turn]]\nsteps = [{', '.join(steps)}]\n"


def test_json_is_one_object_with_the_figures_of_all_runs(run_here, tmp_path):
    done = run_here(project(tmp_path / "p", LEARNS), "--json", "--label", "first")
    said = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert (said["outcome"], said["ending"], said["exit_code"]) == ("passed", "done", 0)
    assert (said["steers"], said["generation"], said["text"]) == (1, 2, "Now it is.")
    assert said["usage"]["total"] == 330
    assert said["tool_calls"] == 1
    assert said["label"] == "first"
    assert said["session"]
    assert [task["id"] for task in listed(tmp_path / "p")] == [said["task"]]
    assert "passed after 1 send-back" in done.stderr


ALWAYS = '[gates.ready]\nrun = "test -e ready"\nwhen = "always"\n'
BROKEN = ALWAYS.replace("test", "notyet-no-such-program")
WAYS_TO_END = [
    (ALWAYS.replace("test", "test !"), ANSWERS, (), 0, "passed"),
    (f"{ALWAYS}observe = true\n", ANSWERS, (), 0, "observed"),
    (ALWAYS, ANSWERS, ("--max-blocks", "1"), 3, "capped"),
    (ALWAYS, ANSWERS, (), 4, "stuck"),
    (ALWAYS, ANSWERS + '[[turn]]\nsay = "BLOCKED: no idea"\n', (), 5, "handed_back"),
    (f'{BROKEN}if_broken = "allow"\n', ANSWERS, (), 1, "failed_open"),
    (BROKEN, ANSWERS, (), 4, "stuck"),
    ("", ANSWERS, (), 0, "skipped"),  # no gate
    (GATED, script('{ fail = "overloaded" }'), (), 1, "skipped"),
    (GATED, script("{ hang = true }"), ("--timeout", "1s"), 1, "skipped"),
]


@pytest.mark.parametrize("way", WAYS_TO_END, ids=lambda way: f"{way[-1]} {way[-2]} {way[0][:30]!r}")
def test_the_exit_code_tells_how_it_ended(run_here, tmp_path, way):
    gates, agent, options, code, outcome = way
    folder = project(tmp_path / "p", agent, gates)
    git(folder, "init", "--quiet")
    (folder / ".gitignore").write_text("*\n")
    done = run_here(folder, *options, "--json")
    said = json.loads(done.stdout)
    assert (done.returncode, said["exit_code"], said["outcome"]) == (code, code, outcome)


def test_without_gates_the_agent_runs_and_that_is_said_in_a_line(run_here, tmp_path):
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "agent.toml").write_text(ANSWERS)
    done = run_here(folder)
    assert (done.returncode, done.stdout) == (0, "Done!\n")
    assert "no gates are in force here, so nothing will be checked" in done.stderr
    assert "done; nothing was checked" in done.stderr


@pytest.mark.rule("N3")
def test_an_untrusted_file_is_named_with_the_command_to_run(run_here, tmp_path):
    folder = project(tmp_path / "p", trusted=False)
    done = run_here(folder)
    assert done.returncode == 0
    assert f"{folder}/notyet.toml is not trusted; run: notyet trust" in done.stderr
    assert "nothing will be checked" in done.stderr


@pytest.mark.rule("E11")
def test_the_agent_of_a_gate_is_not_gated(run_here, tmp_path):
    done = run_here(project(tmp_path / "p"), NOTYET_INSIDE="1")
    assert done.returncode == 0
    assert "a gate's own agent is not gated" in done.stderr


def test_a_prompt_may_come_from_stdin(run_here, tmp_path, monkeypatch):
    typed = io.TextIOWrapper(io.BytesIO("Please\nmake it — ready.".encode()))
    monkeypatch.setattr("sys.stdin", typed)
    done = run_here(project(tmp_path / "p", LEARNS), prompt="-")
    assert done.returncode == 0
    assert [task["prompt"] for task in listed(tmp_path / "p")] == ["Please\nmake it — ready."]


def test_a_session_goes_on_where_it_was(run_here, tmp_path):
    folder = project(tmp_path / "p", LEARNS, '[gates]\ng = "true"\n')
    first = json.loads(run_here(folder, "--json").stdout)
    again = json.loads(run_here(folder, "--json", "--resume", first["session"]).stdout)
    assert (first["text"], again["text"]) == ("Done!", "Now it is.")
    assert again["session"] == first["session"]


CLAUDE = """\
#!/bin/sh
cat > prompt
echo "$@" > args
env | grep NOTYET_SUPERVISED > marks
[ -e ready ] || { [ -e tried ] && touch ready; }
touch tried
echo '{"type": "system", "subtype": "init", "session_id": "s-1", "model": "m"}'
echo '{"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}}'
echo '{"type": "result", "subtype": "success", "result": "Done.", "session_id": "s-1"}'
"""


def test_what_follows_two_dashes_goes_to_the_agents_own_program(run_here, tmp_path):
    folder = project(tmp_path / "p")
    program = tmp_path / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run_here(folder, "--json", "--", "--model", "x", agent="claude", PATH=path)
    said = json.loads(done.stdout)
    assert (done.returncode, said["outcome"], said["steers"]) == (0, "passed", 1)
    assert "--model x" in (folder / "args").read_text()
    assert "ready (exit 1" in (folder / "prompt").read_text()
    mark = (folder / "marks").read_text()
    assert re.fullmatch(r"NOTYET_SUPERVISED=\d+:s-1\n", mark)  # as it calls itself


CODEX = """\
#!/bin/sh
cat > prompt
echo '{"type": "thread.started", "thread_id": "t-1"}'
echo '{"type": "error", "message": "Reconnecting... waiting for network"}'
echo '{"type": "error", "message": "Reconnecting... waiting for network"}'
exec sleep 1000
"""


def test_errors_that_the_agent_reports_while_it_waits_are_shown_and_name_the_cause(
    run_here, tmp_path
):
    folder = project(tmp_path / "p")
    program = tmp_path / "codex"
    program.write_text(CODEX)
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = run_here(folder, "--timeout", "2s", agent="codex", PATH=path)
    shown, *more = [line for line in done.stderr.splitlines() if "Reconnecting" in line]
    assert re.search(r"codex +Reconnecting\.\.\. waiting for network$", shown)
    (ended,) = more  # once, and then as the cause
    assert "no end after 2 s; its last error: Reconnecting... waiting for network" in ended
    assert done.returncode == 1


def test_all_of_a_long_answer_reaches_a_slow_reader(tmp_path):
    folder = project(
        tmp_path / "p", f'[[turn]]\nsay = "{"x" * 300_000}"\n', '[gates]\ng = "true"\n'
    )
    done = subprocess.run(
        f"{' '.join(command_line('with', 'scripted:agent.toml', 'Go.'))} 2>/dev/null"
        " | (sleep 1; cat) | wc -c",
        shell=True,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        env=clean_environ(),
    )
    assert done.stdout.strip() == "300001"
