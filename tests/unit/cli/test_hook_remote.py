"""`notyet hook` where the files are in a workspace elsewhere (M)."""

import json
import os

import pytest

from commands import until
from config_places import hooks
from hook_runs import clean_environ, new_project, payload, run_hook, stops
from workspaces import trust_there, unreachable, write_there


@pytest.fixture
def app(tmp_path):
    folder = tmp_path / "there" / "app"
    (folder / ".git").mkdir(parents=True)
    return folder


def names(box, app, rest=""):
    return f'workspace = "{box.url(app)}"\n[gates.g]\nrun = "pwd; exit 1"\n{rest}'


def hook(box, content, *argv, **environ):
    done = run_hook(content, *argv, environ=clean_environ(**box.environ | environ))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else {}, done.stderr.decode()


@pytest.mark.rule("M1", "M5")
def test_gates_run_where_a_trusted_file_says_and_the_files_there_count(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app))
    write_there(app, "notyet.toml", '[gates]\nmore = "pwd; exit 1"\n')
    trust_there(box, app)
    said, _ = hook(box, payload("claude", here))
    assert said["decision"] == "block"
    assert "FAILED g" in said["reason"]
    assert "FAILED more" in said["reason"]
    assert said["reason"].count(f"  {app}\n") == 2


@pytest.mark.rule("N5", "M5")
def test_a_file_that_nobody_trusted_connects_to_nobody(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app), trusted=False)
    assert until(lambda: not box.connections())  # of whoever looked whether it listens
    said, _ = hook(box, payload("claude", here))
    assert "is not trusted" in said["systemMessage"]
    assert stops() == [("skipped", "untrusted")]
    assert box.connections() == []


@pytest.mark.rule("M3", "N3")
def test_a_machine_that_cannot_be_reached_is_told_to_the_user_and_holds_nobody(
    warm_box, app, tmp_path, monkeypatch
):
    here = new_project(tmp_path / "here", names(warm_box, app))
    unreachable(monkeypatch, warm_box, tmp_path)
    environ = {"NOTYET_SSH_CONFIG": os.environ["NOTYET_SSH_CONFIG"]}
    said, err = hook(warm_box, payload("claude", here), **environ)
    assert "decision" not in said
    assert f"the files of {warm_box.url(app)} cannot be read: " in said["systemMessage"]
    assert "refused" in err
    assert [outcome for outcome, _ in stops()] == ["failed_open"]


@pytest.mark.rule("M5", "J2")
def test_mux_meets_its_hooks_of_the_workspace(warm_box, app, tmp_path):
    here = new_project(tmp_path / "here", f'workspace = "{warm_box.url(app)}"\n')
    said = 'printf \'{"decision": "block", "reason": "%s"}\' "$MUX_PROJECT_DIR"'
    write_there(app, ".mux/settings.json", hooks(said))
    _, err = hook(warm_box, payload("mux", here), "--host", "mux")
    assert "--read mux" in err
    trust_there(warm_box, app, ".mux/settings.json")
    answer, _ = hook(warm_box, payload("mux", here, session_id="2"), "--host", "mux")
    assert answer["decision"] == "block"
    assert str(app) in answer["reason"]


@pytest.mark.rule("M5", "W5")
def test_a_program_that_speaks_as_we_do_can_name_the_workspace(warm_box, app):
    write_there(app, "notyet.toml", '[gates]\na = "pwd; exit 1"\n')
    trust_there(warm_box, app)
    event = payload("notyet", "/", workspace=warm_box.url(app))
    said, _ = hook(warm_box, event, "--host", "notyet")
    assert said["decision"] == "block"
    assert str(app) in said["prompt"]
    event = payload("notyet", "/", workspace="box:/srv", session_id="2")
    _, err = hook(warm_box, event, "--host", "notyet")
    assert "the event's workspace is no address like ssh://host/path; not used" in err


@pytest.mark.rule("M2")
def test_a_machine_that_says_nothing_does_not_cost_the_host_its_answer(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app))
    silent = tmp_path / "silent"
    silent.write_text("Host box\n  ProxyCommand sleep 100\n")
    environ = {"NOTYET_SSH_CONFIG": str(silent)}
    said, _ = hook(box, payload("claude", here), "--timeout", "3", **environ)
    assert "decision" not in said
    assert box.url(app) in said["systemMessage"]


def test_a_probe_connects_to_nobody_and_names_what_was_trusted(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app))
    write_there(app, "notyet.toml", '[gates]\nmore = "x"\n')
    trust_there(box, app)
    probe = {"NOTYET_PROBE": "notyet-status-1", "NOTYET_SSH_CONFIG": "/nowhere"}
    said, _ = hook(box, payload("claude", here, session_id="notyet-status-1"), **probe)
    assert said["systemMessage"] == "notyet 0.1.0: would ask g, more"
    assert stops() == []


@pytest.mark.rule("C4")
def test_an_agent_that_starts_is_told_of_gates_there(warm_box, app, tmp_path):
    here = new_project(tmp_path / "here", names(warm_box, app, "[start]\ntell = true\n"))
    write_there(app, "notyet.toml", '[gates]\nmore = "x"\n')
    trust_there(warm_box, app)
    event = payload("claude", here, hook_event_name="SessionStart", source="startup")
    said, _ = hook(warm_box, event)
    assert "more" in said["hookSpecificOutput"]["additionalContext"]
