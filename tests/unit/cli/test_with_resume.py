"""Going on with a session, and what is said of one that has ended."""

import json
import os
import signal

import pytest

from notyet.cli.main import main
from with_runs import (
    ANSWERS,
    HANGS,
    LEARNS,
    agent_pid,
    listed,
    project,
    run_with,
    start_with,
    tasks,
)

PASSES = '[gates]\ng = "true"\n'
# It has no conversations, and begins one when it is asked to.
CLAUDE = """\
#!/bin/sh
cat > /dev/null
echo "$@" >> args
case "$*" in *--resume*) echo "No conversation found with session ID: x" >&2; exit 1;; esac
echo '{"type": "system", "subtype": "init", "session_id": "s-1", "model": "m"}'
echo '{"type": "result", "subtype": "success", "result": "Hello!", "session_id": "s-1"}'
"""


@pytest.fixture
def path(tmp_path):
    """A PATH with a claude."""
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(CLAUDE)
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def test_a_session_that_the_agent_does_not_have_is_no_new_one(run_here, tmp_path, path):
    folder = project(tmp_path / "p", ANSWERS, PASSES)
    done = run_here(folder, "--resume", "gone", agent="claude", PATH=path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("claude does not have the conversation gone") == 1
    assert "to go on" not in done.stderr
    assert "--session-id" not in (folder / "args").read_text()
    (task,) = listed(folder)
    assert "go on" not in tasks(folder, "show", task["id"]).stdout


def test_an_error_is_shown_with_its_end(run_here, tmp_path, path):
    program = tmp_path / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho {'noise ' * 200} the real cause >&2\nexit 1\n")
    done = run_here(project(tmp_path / "p", ANSWERS, PASSES), agent="claude", PATH=path)
    assert "the agent failed: claude ended without an answer (exit code 1)" in done.stderr
    assert done.stderr.count("the real cause") == 1


def test_a_session_that_a_task_is_at_work_on_is_refused(tmp_path):
    folder = project(tmp_path / "p", HANGS)
    with start_with(folder) as started:
        agent_pid(folder)
        (task,) = listed(folder)
        done = run_with(folder, "--resume", task["session_id"])
        assert done.returncode == 1
        assert f"task {task['id']} works in the session" in done.stderr
        started.send(signal.SIGTERM)
        assert started.wait() == 143
    assert [found["id"] for found in listed(folder)] == [task["id"]]
    (folder / "agent.toml").write_text(HANGS + LEARNS.replace('"Done!"', '"Again."'))
    again = run_with(folder, "--resume", task["session_id"])
    assert again.stdout == "Now it is.\n"


def test_an_interrupted_run_has_all_figures(tmp_path):
    folder = project(tmp_path / "p", HANGS)
    with start_with(folder, "--json") as started:
        agent_pid(folder)
        started.send(signal.SIGTERM)
        assert started.wait() == 143
        said = json.loads(started.out)
    assert set(said["usage"]) == {"input", "output", "cache_read", "cache_write", "total"}
    assert said["tool_calls"] >= 0


FAILS = '[[turn]]\nsteps = [{ say = "I begin." }, { fail = "overloaded" }]\n'


def test_what_an_agent_said_before_it_failed_is_no_answer(run_here, tmp_path):
    folder = project(tmp_path / "p", FAILS)
    done = run_here(folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("overloaded") == 1
    assert json.loads(run_here(folder, "--json").stdout)["text"] == "I begin."


UNASKED = [
    ({"NOTYET_DISABLE": "1"}, True, "off"),
    ({"NOTYET_INSIDE": "1"}, True, "inside"),
    ({}, False, "untrusted"),
]


@pytest.mark.parametrize(("environ", "trusted", "cause"), UNASKED)
def test_json_says_why_no_gate_was_asked(run_here, tmp_path, environ, trusted, cause):
    folder = project(tmp_path / "p", trusted=trusted)
    said = json.loads(run_here(folder, "--json", **environ).stdout)
    assert (said["outcome"], said["stop_reason"]) == ("skipped", cause)
    assert trusted or f"{folder}/notyet.toml is not trusted" in said["warnings"][0]


def shown(capsys, *argv):
    """Run `notyet tasks` in this process."""
    code = main(["tasks", *argv])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.rule("K8")
@pytest.mark.parametrize("verb", ["retry", "dismiss"])
def test_a_result_that_was_delivered_stays_delivered(run_here, capsys, tmp_path, verb):
    folder = project(tmp_path / "p", LEARNS)
    assert run_here(folder).returncode == 0
    (task,) = json.loads(shown(capsys, "--json")[1])
    code, out, err = shown(capsys, verb, task["id"])
    assert (code, out) == (1, "")
    assert f"its result was delivered; read it with: notyet tasks show {task['id']}" in err
    assert json.loads(shown(capsys, "--json")[1])[0]["delivery"] == "delivered"
    assert "Now it is." in shown(capsys, "show", task["id"])[1]
