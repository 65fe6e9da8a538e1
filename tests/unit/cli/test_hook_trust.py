"""A hook obeys what a person trusted, and tells of all else (N5)."""

import json
import os
import shutil

import pytest

from hook_runs import (
    FAILING,
    HOSTS,
    PASSING,
    ask,
    assert_allows,
    gate,
    new_project,
    payload,
    stops,
    told,
    trust,
)

every_host = pytest.mark.parametrize("host", HOSTS)


@every_host
@pytest.mark.rule("N5", "N3", "A10")
def test_nothing_of_an_untrusted_file_runs_and_the_user_is_told(tmp_path, host):
    project = new_project(tmp_path / "p", trusted=False)
    reply = ask(payload(host, project), "--host", host)
    assert_allows(host, reply.code, reply.stdout)
    assert f"{project}/notyet.toml is not trusted" in told(reply)
    assert not (project / "ran").exists()
    assert stops() == [("skipped", "untrusted")]


@pytest.mark.rule("N5")
@pytest.mark.parametrize("change", ["[gates]\n", "[gates\n", FAILING, "", None])
def test_the_last_trusted_version_stays_in_force_and_the_user_is_told(tmp_path, change):
    project = new_project(tmp_path / "p", gate("echo trusted; exit 1"))
    if change is None:
        (project / "notyet.toml").unlink()
    else:
        (project / "notyet.toml").write_text(change)
    reply = ask(payload("claude", project))
    assert "trusted" in json.loads(reply.stdout)["reason"]
    assert "since it was trusted" in told(reply)
    assert stops() == [("blocked", "g")]


@pytest.mark.rule("N5")
def test_a_nearer_untrusted_file_does_not_hide_the_gates_in_force(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    inner = new_project(project / "inner", "", trusted=False)
    reply = ask(payload("claude", inner))
    assert json.loads(reply.stdout)["decision"] == "block"
    assert f"{inner}/notyet.toml is not trusted" in told(reply)


@pytest.mark.rule("N5")
def test_a_copied_or_moved_project_is_not_trusted(tmp_path):
    project = new_project(tmp_path / "p")
    shutil.copytree(project, tmp_path / "copy")
    ask(payload("claude", tmp_path / "copy"))
    os.rename(project, tmp_path / "moved")
    ask(payload("claude", tmp_path / "moved"))
    assert stops() == [("skipped", "untrusted")] * 2


@pytest.mark.rule("N5")
def test_a_named_file_needs_trust_too_and_is_used_alone(tmp_path):
    project = new_project(tmp_path / "p", FAILING)
    other = tmp_path / "other.toml"
    other.write_text(PASSING)
    ask(payload("claude", project), "--config", str(other))
    trust(other)
    ask(payload("claude", project), f"--config={other}")
    assert stops() == [("skipped", "untrusted"), ("passed", "")]


@pytest.mark.rule("A8", "N3")
def test_no_stop_passes_if_a_trusted_file_cannot_be_loaded(tmp_path):
    project = new_project(tmp_path / "p")
    config = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(os.path.join(config, "notyet.toml"))  # a folder cannot be read
    reply = ask(payload("claude", project))
    said = f"{config}/notyet.toml cannot be read: it is not a regular file"
    assert told(reply).count("NOT CHECKED") == 1
    assert f"notyet: NOT CHECKED: {said}" in json.loads(reply.stdout)["systemMessage"]
    assert stops() == [("failed_open", said)]


@pytest.mark.rule("A8", "J7")
def test_no_stop_passes_if_the_users_own_file_cannot_be_parsed(tmp_path):
    project = new_project(tmp_path / "p")
    config = os.path.join(os.environ["XDG_CONFIG_HOME"], "notyet")
    os.makedirs(config)
    with open(os.path.join(config, "notyet.toml"), "w") as file:
        file.write("[gates\n")
    reply = ask(payload("claude", project))
    assert f"notyet: NOT CHECKED: {config}/notyet.toml:1:" in told(reply)
    assert [outcome for outcome, _ in stops()] == ["failed_open"]
