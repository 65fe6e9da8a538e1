"""At which events a host's settings call us, as far as a hook can find out."""

import json

import pytest

from notyet.hosts import host_named
from notyet.hosts.host import ClaudeLike
from notyet.hosts.registered import events_called_at, events_in

OURS = {"type": "command", "command": "notyet hook --host x"}
NESTED = ClaudeLike(
    name="claude",
    title="X",
    settings={"user": ".x/deep/hooks.json", "project": ".x/hooks.json"},
    home_variable="X_HOME",
)
FLAT = ClaudeLike(name="claude", title="X", layout="flat", settings={"user": ".x/s.json"})


def groups(*handlers):
    return [{"hooks": [*handlers]}]


def write(path, hooks):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(hooks if isinstance(hooks, str) else json.dumps({"hooks": hooks}))


def test_files_of_the_user_the_project_and_the_machine_are_looked_at(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "below").mkdir()
    write(home / ".x" / "deep" / "hooks.json", {"Stop": groups(OURS)})
    write(project / ".x" / "hooks.json", {"Stop": groups(OURS), "SubagentStop": groups(OURS)})
    write(project / ".x" / "config.toml", '[hooks]\nSessionStart = "notyet hook"\n')
    called = events_called_at(NESTED, str(project / "below"), {"HOME": str(home)})
    assert called == {
        "Stop": str(home / ".x" / "deep" / "hooks.json"),
        "SubagentStop": str(project / ".x" / "hooks.json"),
        "SessionStart": str(project / ".x" / "config.toml"),
    }
    moved = {"HOME": str(home), "X_HOME": str(tmp_path / "moved")}
    write(tmp_path / "moved" / "deep" / "hooks.json", {"SubagentStart": groups(OURS)})
    assert "SubagentStart" in events_called_at(NESTED, str(tmp_path), moved)
    managed = ClaudeLike(name="claude", title="X", managed=str(tmp_path / "managed"))
    write(tmp_path / "managed" / "all.json", {"Stop": groups(OURS)})
    assert [*events_called_at(managed, str(project), {"HOME": str(home)})] == ["Stop"]


@pytest.mark.parametrize(
    ("host", "hooks", "events"),
    [
        (NESTED, {"Stop": groups(OURS, {"type": "command", "command": "x"})}, ["Stop"]),
        (NESTED, {"Stop": groups({"type": "command", "command": "notyet status"})}, []),
        (NESTED, {"Stop": groups(OURS | {"async": True}, OURS | {"if": "x"}, 7, "notyet")}, []),
        (NESTED, {"Stop": groups(OURS | {"type": "prompt"})}, []),
        (NESTED, {"Stop": groups({"type": "command", "command": "notyet", "args": [" hook"]})},
         ["Stop"]),
        (NESTED, {"Stop": [OURS]}, []),
        (NESTED, {"Stop": ["notyet"]}, []),
        (NESTED, "{notyet", []),
        (NESTED, '["notyet"]', []),
        (NESTED, "{}", []),
        (FLAT, {"Stop": [{"bash": "notyet hook"}], "SubagentStop": [{"bash": "./notyet.sh"}]},
         ["Stop"]),
    ],
)  # fmt: skip
def test_only_an_entry_that_is_our_hook_and_waited_for_counts(tmp_path, host, hooks, events):
    write(tmp_path / "s.json", hooks)
    assert events_in(str(tmp_path / "s.json"), host) == events
    assert events_in(str(tmp_path / "gone.json"), host) == []


def test_files_that_are_not_json_are_read_word_by_word(tmp_path):
    file = tmp_path / "notyet.js"
    file.write_text('const HOOKS = {"Stop": {"command": "notyet hook"}}\n')
    assert events_in(str(file), host_named("opencode")) == ["Stop"]
