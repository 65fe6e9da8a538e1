"""The stop that `notyet status` makes up: the hook says what it would ask, and does nothing."""

import json
import os

import pytest

from hook_runs import FAILING, ask, clean_environ, new_project, payload, run_hook, stops
from notyet.config.off import switch_off

MARK = "notyet-status-1"
PROBE = {"NOTYET_PROBE": MARK}
BOTH = '[gates.lint]\nrun = "touch asked"\n[gates.review]\nrun = "touch asked"\nfor = "subagents"\n'


def said(host, folder, **fields):
    content = payload(host, folder, session_id=MARK, **fields)
    done = run_hook(content, "--host", host, environ=clean_environ(**PROBE))
    assert done.returncode == 0
    return json.loads(done.stdout)["systemMessage"]


@pytest.mark.parametrize("host", ["claude", "codex"])
def test_it_names_the_gates_and_asks_none(tmp_path, host):
    project = new_project(tmp_path / "p", BOTH)
    assert said(host, project) == "notyet 0.1.0: would run lint; for subagents review"
    assert not (project / "asked").exists()
    assert stops() == []


def test_it_says_why_nothing_would_be_asked(tmp_path):
    project = new_project(tmp_path / "p", BOTH, trusted=False)
    assert said("claude", project) == (
        f"notyet 0.1.0: would run nothing; {project}/notyet.toml is not trusted; run: notyet trust"
    )
    assert said("claude", tmp_path) == "notyet 0.1.0: would run nothing"
    switch_off("", 0, os.environ)
    off = "notyet: NOT CHECKED: off everywhere until you run: notyet on --global"
    assert said("claude", project) == off
    assert stops() == []


def test_the_variable_alone_means_nothing(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    reply = ask(payload("claude", project), environ=clean_environ(**PROBE))
    assert json.loads(reply.stdout)["decision"] == "block"
    assert stops() == [("blocked", "bad")]


def test_an_agent_that_names_its_own_session_is_gated(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    session = "2c1f9a4e-0b7d-4c55-9a53-6f1f0f9f3d11"
    own = clean_environ(NOTYET_PROBE=session)
    reply = ask(payload("claude", project, session_id=session), environ=own)
    assert json.loads(reply.stdout)["decision"] == "block"
    assert stops() == [("blocked", "bad")]


def test_a_subagent_s_stop_names_its_own_gates(tmp_path):
    project = new_project(tmp_path / "p", BOTH)
    fields = {"hook_event_name": "SubagentStop", "agent_id": "a", "agent_type": "x"}
    assert said("claude", project, **fields) == "notyet 0.1.0: would run review"


def test_a_probe_of_a_stranger_is_not_written_down(tmp_path):
    content = payload("claude", tmp_path, session_id=MARK)
    content.pop("transcript_path", None)
    run_hook(content, environ=clean_environ(**PROBE))
    assert stops() == []
