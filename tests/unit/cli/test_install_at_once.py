"""`notyet install` with a person at a terminal, and with others who write the same file."""

import json
import os
import signal
import time

import pytest

from hook_runs import ask as ask_hook
from hook_runs import new_project, payload, stops
from installs import converse, start
from notyet.install.settings import settings_of

EVENTS = settings_of("claude").events

SETTINGS = ".claude/settings.json"


@pytest.fixture(autouse=True)
def _hosts_that_are_here(home):
    """Let Claude Code and Codex have been started once."""
    for folder in (".claude", ".codex"):
        (home / folder).mkdir()


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"maybe\n"])
def test_a_host_that_is_not_here_is_asked_about_first(place, home, answer):
    (home / ".claude").rmdir()
    code, seen = converse(place, ["install", "claude"], [answer])
    assert code == 1
    what = f"Claude Code was not found: no `claude` on your PATH, and no {home}/.claude"
    assert f"{what}. Register notyet anyway? [y/N]" in " ".join(seen.split())
    assert "nothing was changed" in seen
    assert not (home / ".claude").exists()


def test_a_host_that_is_not_here_is_registered_after_a_yes(place, home):
    (home / ".claude").rmdir()
    assert converse(place, ["install", "claude"], [b"y\n", b"y\n"])[0] == 0
    assert (home / SETTINGS).exists()


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"maybe\n"])
def test_a_person_who_does_not_say_yes_changes_nothing(place, home, answer):
    code, seen = converse(place, ["install", "claude"], [answer])
    assert code == 1
    assert '+    "Stop": [' in seen
    assert "Register notyet with Claude Code? [y/N]" in seen
    assert "nothing was changed" in seen
    assert not (home / SETTINGS).exists()


def test_a_person_is_asked_about_the_settings_and_then_about_the_gates(place, home):
    new_project(place, '[gates]\nlint = "exit 3"\n', trusted=False)
    code, seen = converse(place, ["install", "claude"], [b"y\n", b"y\n"])
    assert code == 0
    assert seen.index("installed for Claude Code") < seen.index("Trust this file")
    assert (home / SETTINGS).exists()
    ask_hook(payload("claude", place))
    assert stops()[-1][0] == "blocked"


def test_trust_is_asked_for_by_itself_and_goes_with_the_hooks(place, home):
    code, seen = converse(place, ["install", "codex", "--trust"], [b"y\n", b"n\n"])
    assert code == 1
    assert "Let Codex trust them? [y/N]" in seen
    assert os.listdir(home / ".codex") == ["hooks.json"]
    code, _ = converse(place, ["install", "codex", "--trust"], [b"y\n"])
    assert code == 0
    code, seen = converse(place, ["uninstall", "codex"], [b"y\n"])
    assert code == 0
    assert not (home / ".codex" / "hooks.json").exists()


def test_what_was_shown_is_what_is_written(place, home):
    def edit():
        (home / SETTINGS).write_text('{"theirs": 1}')

    code, seen = converse(place, ["install", "claude"], [b"y\n"], edit)
    assert code == 1
    assert "changed by another program just now; run the command again" in " ".join(seen.split())
    assert (home / SETTINGS).read_text() == '{"theirs": 1}'


def test_a_killed_installation_leaves_the_old_file_or_the_new(place, home):
    path = home / SETTINGS
    for moment in range(8):
        path.write_text('{"theirs": 1}')
        one = start(place, "install", "claude", "--yes")
        time.sleep(0.05 * moment)
        one.send_signal(signal.SIGKILL)
        one.communicate(timeout=60)
        value = json.loads(path.read_text())
        assert value["theirs"] == 1
        assert "hooks" not in value or list(value["hooks"]) == list(EVENTS)
    again = start(place, "install", "claude", "--yes")
    assert again.wait(60) == 0
    again.communicate()
