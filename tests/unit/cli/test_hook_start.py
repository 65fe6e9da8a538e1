"""What `notyet hook` says to users when a session begins: what keeps it from being checked."""

import json
import os

import pytest

from hook_runs import FAILING, PASSING, begin, new_project, stops, trust
from notyet.cli.main import main

HOSTS = ("claude", "codex")
both = pytest.mark.parametrize("host", HOSTS)


@both
@pytest.mark.rule("N5", "N3")
def test_an_untrusted_file_is_said_when_a_session_begins(tmp_path, host):
    project = new_project(tmp_path / "p", trusted=False)
    expected = f"notyet: {project}/notyet.toml is not trusted; run: notyet trust"
    assert begin(host, project) == (expected, "")
    assert stops() == []


@both
@pytest.mark.rule("N5", "N3")
@pytest.mark.parametrize("change", [FAILING, "[gates\n", None])
def test_a_changed_broken_or_removed_file_is_said_when_a_session_begins(tmp_path, host, change):
    project = new_project(tmp_path / "p", "[start]\ntell = true\n" + PASSING)
    assert begin(host, project)[0] == ""
    if change is None:
        (project / "notyet.toml").unlink()
    else:
        (project / "notyet.toml").write_text(change)
    told, context = begin(host, project)
    assert "since it was trusted" in told
    assert "- ok: echo ran >> ran" in context
    assert "trust" not in context  # which is not for the agent to fix


@both
@pytest.mark.rule("N3")
def test_off_is_said_when_a_session_begins(tmp_path, host, monkeypatch):
    project = new_project(tmp_path / "p")
    monkeypatch.setenv("NOTYET_DISABLE", "1")
    told, context = begin(host, project)
    assert ("NOTYET_DISABLE" in told, context) == (True, "")


@both
@pytest.mark.rule("N3")
def test_it_is_said_once_and_only_to_the_user_of_a_main_agent(tmp_path, host):
    project = new_project(tmp_path / "p", trusted=False)
    assert begin(host, project, source="compact") == ("", "")
    child = {"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "coder"}
    assert begin(host, project, **child) == ("", "")
    assert begin(host, project, source="resume")[0]


# Stops that are no longer registered.


class Registered:
    """A project with a gate, and a host that `notyet install` registered notyet with."""

    def __init__(self, folder, host, text=PASSING):
        self.host = host
        self.project = new_project(folder / "p", text)
        self.path = os.path.expanduser({"claude": "~/.claude/settings.json"}.get(host, ""))
        self.path = self.path or os.path.expanduser("~/.codex/hooks.json")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        assert main(["install", host, "--yes"]) == 0

    def edit(self, change):
        with open(self.path, encoding="utf-8") as file:
            value = json.load(file)
        change(value["hooks"])
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(value, file)

    def begin(self):
        return begin(self.host, self.project)[0]


@pytest.fixture(params=HOSTS)
def registered(request, tmp_path, monkeypatch):
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.delenv("CODEX_HOME", raising=False)
    return Registered(tmp_path, request.param)


def test_nothing_is_said_while_stops_are_registered(registered):
    assert registered.begin() == ""
    registered.edit(lambda hooks: hooks.pop("SubagentStop"))  # no gate is for subagents
    assert registered.begin() == ""


def asynchronous(hooks):
    hooks["Stop"][0]["hooks"][0]["async"] = True


def of_another(hooks):
    hooks["Stop"][0]["hooks"][0]["command"] = "true"


def renamed(hooks):
    hooks["Stopp"] = hooks.pop("Stop")


@pytest.mark.parametrize(
    "change", [renamed, asynchronous, of_another, lambda hooks: hooks["Stop"].clear()]
)
@pytest.mark.rule("N3")
def test_a_stop_that_is_not_registered_is_said_when_a_session_begins(registered, change):
    registered.edit(change)
    assert registered.begin() == (
        f"notyet: Stop is not registered in {registered.path}: agents are not checked; "
        f"run: notyet install {registered.host}"
    )


def test_where_only_subagents_have_gates_their_stop_counts(registered):
    toml = registered.project / "notyet.toml"
    toml.write_text(PASSING + 'for = "subagents"\n')
    trust(toml)
    registered.edit(lambda hooks: hooks.pop("Stop"))
    assert registered.begin() == ""
    registered.edit(lambda hooks: hooks.pop("SubagentStop"))
    assert "SubagentStop is not registered" in registered.begin()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hooks": 5}', '{"hooks": {"Stop": [5, {"hooks": 1}]}}']
)
def test_settings_that_cannot_be_read_say_nothing(registered, text):
    with open(registered.path, "w", encoding="utf-8") as file:
        file.write(text + " notyet")
    assert registered.begin() == ""


def test_a_stop_may_be_registered_in_another_file(registered):
    registered.edit(lambda hooks: hooks.pop("Stop"))
    inner = registered.project / os.path.basename(os.path.dirname(registered.path))
    inner.mkdir()
    handler = {"type": "command", "command": "notyet hook --host x"}
    hooks = {"hooks": {"Stop": [{"hooks": [handler]}]}}
    (inner / os.path.basename(registered.path)).write_text(json.dumps(hooks))
    assert registered.begin() == ""


def test_hooks_of_codex_may_be_in_its_toml(tmp_path):
    project = new_project(tmp_path / "p")
    folder = os.path.expanduser("~/.codex")
    os.makedirs(folder)
    text = '[[hooks.{}]]\nhooks = [{{ type = "command", command = "notyet hook" }}]\n'
    path = os.path.join(folder, "config.toml")
    for events, is_said in ((("SessionStart", "Stop"), False), (("SessionStart", "Stopp"), True)):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(text.format(event) for event in events))
        assert (f"Stop is not registered in {path}" in begin("codex", project)[0]) is is_said


def test_settings_of_the_administrator_count(tmp_path, monkeypatch):
    from notyet.core.record import replace
    from notyet.hosts import claude

    world = Registered(tmp_path, "claude")
    world.edit(lambda hooks: hooks.pop("Stop"))
    managed = tmp_path / "managed"
    (managed / "managed-settings.d").mkdir(parents=True)
    monkeypatch.setattr(claude, "HOST", replace(claude.HOST, managed=str(managed)))
    assert "Stop is not registered" in world.begin()
    handler = {"type": "command", "command": "notyet hook --host claude"}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}})
    (managed / "managed-settings.d" / "a.json").write_text(text)
    assert world.begin() == ""
