"""`notyet hook` where the files are in a workspace elsewhere (M)."""

import json
import os

import pytest

from commands import until
from config_places import hooks
from hook_runs import (
    FAILING,
    ask,
    clean_environ,
    new_project,
    payload,
    query,
    run_hook,
    stops,
    trust,
)
from workspaces import trust_there, unreachable, write_there


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
def test_an_untrusted_file_opens_no_connection(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app), trusted=False)
    assert until(lambda: not box.connections())  # of whoever looked whether it listens
    said, _ = hook(box, payload("claude", here))
    assert "is not trusted" in said["systemMessage"]
    assert stops() == [("skipped", "untrusted")]
    assert box.connections() == []


@pytest.mark.rule("M3", "N3")
def test_an_unreachable_machine_is_reported_to_the_user_and_does_not_block(
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


@pytest.mark.rule("M5", "N3")
@pytest.mark.parametrize(
    ("workspace", "why"),
    [("ssh://-x/y", "names a host"), ("box:/srv", "begins with ssh://"), (["x"], "it is a list")],
)
def test_an_agent_whose_files_cannot_be_found_is_not_checked_here(tmp_path, workspace, why):
    here = new_project(tmp_path / "here", FAILING)
    reply = ask(payload("notyet", here, workspace=workspace), "--host", "notyet")
    said = json.loads(reply.stdout)
    assert said["decision"] == "allow"
    assert "cannot be used, so nothing was checked" in said["systemMessage"]
    assert why in said["systemMessage"]
    assert stops() == [("skipped", "unreadable")]


@pytest.mark.parametrize("workspace", ["local", "", None])
def test_an_agent_whose_files_are_here_is_checked_here(tmp_path, workspace):
    here = new_project(tmp_path / "here", FAILING)
    reply = ask(payload("notyet", here, workspace=workspace), "--host", "notyet")
    assert json.loads(reply.stdout)["decision"] == "block"
    assert "workspace" not in reply.stderr


def test_where_the_host_is_here_does_not_matter_to_an_agent_elsewhere(warm_box, app):
    event = payload("notyet", "/nowhere", workspace=warm_box.url(app))
    for event["cwd"] in ("/nowhere", ""):
        said, err = hook(warm_box, event, "--host", "notyet")
        assert (said.get("systemMessage", ""), err) == ("", "")


@pytest.fixture
def silent(tmp_path):
    """Return a configuration of ssh for a machine that says nothing, and who tried it."""
    tries = tmp_path / "tries"
    tries.write_text("")
    config = tmp_path / "silent"
    config.write_text(f"Host box\n  ProxyCommand sh -c 'echo >> {tries}; exec sleep 100'\n")
    return {"NOTYET_SSH_CONFIG": str(config)}, tries


@pytest.mark.rule("M2", "M3")
def test_a_dead_machine_is_waited_for_once_in_a_stop_and_its_gates_are_broken(
    box, app, tmp_path, silent
):
    gates = "".join(
        f'[gates.g{number}]\nrun = "true"\npriority = {number}\nif_broken = "block"\n'
        for number in (1, 2, 3)
    )
    here = new_project(tmp_path / "here", f'workspace = "{box.url(app)}"\n{gates}')
    environ, tries = silent
    said, _ = hook(box, payload("mux", here), "--host", "mux", **environ)
    assert said["decision"] == "block"
    assert "connection to box" in said["reason"]
    assert tries.read_text() == "\n"


@pytest.mark.rule("C4")
def test_a_silent_start_opens_no_connection(box, app, tmp_path, silent):
    here = new_project(tmp_path / "here", names(box, app, 'when = "always"\n'))
    environ, tries = silent
    event = payload("claude", here, hook_event_name="SessionStart", source="startup")
    said, _ = hook(box, event, **environ)
    assert "additionalContext" not in json.dumps(said)
    assert tries.read_text() == ""


@pytest.mark.rule("M2")
def test_a_machine_that_says_nothing_does_not_cost_the_host_its_answer(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app))
    silent = tmp_path / "silent"
    silent.write_text("Host box\n  ProxyCommand sleep 100\n")
    environ = {"NOTYET_SSH_CONFIG": str(silent)}
    said, _ = hook(box, payload("claude", here), "--timeout", "3", **environ)
    assert "decision" not in said
    assert box.url(app) in said["systemMessage"]


def test_a_probe_opens_no_connection_and_names_what_was_trusted(box, app, tmp_path):
    here = new_project(tmp_path / "here", names(box, app))
    write_there(app, "notyet.toml", '[gates]\nmore = "x"\n')
    trust_there(box, app)
    probe = {"NOTYET_PROBE": "notyet-status-1", "NOTYET_SSH_CONFIG": "/nowhere"}
    said, _ = hook(box, payload("claude", here, session_id="notyet-status-1"), **probe)
    assert said["systemMessage"] == "notyet 0.1.0: would run g, more"
    assert stops() == []


@pytest.mark.rule("C4")
def test_an_agent_that_starts_is_told_of_gates_there(warm_box, app, tmp_path):
    here = new_project(tmp_path / "here", names(warm_box, app, "[start]\ntell = true\n"))
    write_there(app, "notyet.toml", '[gates]\nmore = "x"\n')
    trust_there(warm_box, app)
    event = payload("claude", here, hook_event_name="SessionStart", source="startup")
    said, _ = hook(warm_box, event)
    assert "more" in said["hookSpecificOutput"]["additionalContext"]


@pytest.mark.rule("M3", "M5", "W5")
def test_gates_and_the_ledger_know_of_a_workspace_that_a_file_names(warm_box, app, tmp_path):
    url, see = warm_box.url(app), "cat > seen.json"
    text = f'workspace = "{url}"\n[gates]\nthere = "{see}"\n'
    here = new_project(
        tmp_path / "here", f'{text}[gates.here]\nrun = "{see}"\nworkspace = "local"\n'
    )
    write_there(here, ".mux/settings.json", hooks("pwd > pwd_of_hook"))
    trust(here / ".mux/settings.json", "mux")
    hook(warm_box, payload("mux", here), "--host", "mux")
    (event,) = query("SELECT event FROM stops")
    assert json.loads(event[0])["workspace"] == url
    ran = query("SELECT gate, workspace FROM reports ORDER BY position")
    assert [place for _, place in ran] == [url, "", ""]
    assert ran[:2] == [("there", url), ("here", "")]
    for folder in (app, here):
        seen = json.loads((folder / "seen.json").read_text())
        assert (seen["cwd"], seen["workspace"]) == (str(folder), url)
    assert (here / "pwd_of_hook").read_text() == f"{here}\n"  # as before, and not there
