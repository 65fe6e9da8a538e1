"""What installing and uninstalling would change."""

import json

import pytest

from notyet.install.change import keep_backup, to_install, to_uninstall
from notyet.install.settings import SettingsFile, settings_of

CLAUDE = settings_of("claude")

OURS = CLAUDE.entries("/x/notyet", 60)


@pytest.fixture
def place(tmp_path):
    return SettingsFile(scope="user", path=str(tmp_path / "settings.json"))


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


def write(place, text):
    with open(place.path, "w", encoding="utf-8") as file:
        file.write(text)


def test_copies_that_are_no_settings_are_passed_over(place, state):
    original = '{ "hooks" : { } }'
    keep_backup(state, place.path, original.encode())
    for content in (b"\xff", b"{", b"[]", b'{"hooks": 5}', None, b'{"other": 1}'):
        keep_backup(state, place.path, content)
    write(place, CLAUDE.text_with(original, place, OURS))
    assert to_uninstall(CLAUDE, place, state).after == original.encode()


@pytest.mark.parametrize("timeout", [None, 1.5, "9", True])
def test_entries_that_are_not_as_we_write_them_are_taken_out_one_by_one(place, state, timeout):
    handler = {"type": "command", "command": "/x/notyet hook", "timeout": timeout}
    keep_backup(state, place.path, None)
    write(place, json.dumps({"hooks": {"Stop": [{"hooks": [handler]}]}}))
    assert to_uninstall(CLAUDE, place, state).after == b"{}"


def test_what_is_not_ours_is_never_taken_for_ours(place, state):
    odd = [
        None,
        5,
        {"command": 5},
        {"command": "notyet", "args": "hook"},
        {"command": "notyet", "args": ["hook", 5]},
        {"type": "prompt", "prompt": "notyet hook"},
    ]
    text = json.dumps({"hooks": {"Stop": [{"hooks": odd}, {"hooks": 5}, 5], "x": 5}})
    write(place, text)
    assert to_uninstall(CLAUDE, place, state).is_empty
    after = json.loads(to_install(CLAUDE, place, OURS).after)
    assert after["hooks"]["Stop"][:3] == json.loads(text)["hooks"]["Stop"]
