"""Hosts lay out their settings in three ways; our entries come and go in all of them."""

import json
import tomllib

import pytest

from notyet.hosts.host import ClaudeLike
from notyet.install.change import to_install, to_uninstall
from notyet.install.settings import CannotInstall, Settings, read_settings

FLAT = {"type": "command", "bash": "{command}", "timeoutSec": "{timeout}"}
LIST = {"event": "{event}", "command": "{command}", "timeout": "{timeout}"}
LAYOUTS = {
    "groups": ("s.json", {}),
    "flat": ("s.json", {"handler": FLAT, "beside": {"version": 1}}),
    "list": ("s.toml", {"handler": LIST}),
}
OTHERS = {  # a file in which a person has a hook
    "groups": '{\n\t"a": 1,\r\n\t"hooks": {"Stop": [{"hooks": [{"type": "command", '
    '"command": "x"}]}]}\n}',
    "flat": '{"version": 1, "hooks": {"Stop": [{"type": "command", "bash": "x"}]}, "z": [1]}\n',
    "list": '# mine\r\nk = "v" # why\r\n\r\n[[hooks]]\r\nevent = "Stop"\r\ncommand = "x"\r\n'
    "\r\n[t]\r\na = 1\r\n",
}
EMPTY = {"groups": "", "flat": "{}\n", "list": '# mine\nk = "v"\n\n[t]\na = 1\n'}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.fixture
def place(tmp_path):
    """Return what makes settings of a host with a layout, and its file."""

    def make(layout, content=None, **more):
        name, data = LAYOUTS[layout]
        host = ClaudeLike(
            name="claude", title="X", settings={"user": f"x/{name}"}, layout=layout, **data | more
        )
        settings = Settings(host)
        file = settings.target("user", str(tmp_path), {"HOME": str(tmp_path)})
        if content is not None:
            (tmp_path / "x").mkdir()
            (tmp_path / "x" / name).write_bytes(content.encode())
        return settings, file

    return make


def value_of(text):
    return json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)


def commands(settings, value):
    """Return what stands in a file: event and command."""
    key = settings.layout.command_key
    return [(one.event, one.handler[key]) for one in settings.layout.places(value)]


@every_layout
@pytest.mark.parametrize("before", [None, EMPTY, OTHERS], ids=["new", "empty", "others"])
def test_entries_are_added_and_removed_byte_for_byte(place, tmp_path, layout, before):
    settings, file = place(layout, before and before[layout])
    state = str(tmp_path / "state")
    entries = settings.entries("/x/notyet", 600)
    change = to_install(settings, file, entries)
    value = value_of(change.after.decode())
    own = [(entry.event, entry.command) for entry in entries]
    theirs = [("Stop", "x")] if before is OTHERS else []
    assert sorted(commands(settings, value)) == sorted(own + theirs)
    assert value.items() >= settings.host.beside.items()
    change.write(state)
    assert to_install(settings, file, entries).is_empty
    back = to_uninstall(settings, file, state)
    assert back.after == (None if before is None else before[layout].encode())


@every_layout
def test_without_a_backup_only_our_entries_go(place, layout):
    settings, file = place(layout, OTHERS[layout])
    text = settings.text_with(OTHERS[layout], file, settings.entries("/x/notyet", 600))
    without = settings.text_without(text, file)
    assert value_of(without) == value_of(OTHERS[layout])


@every_layout
def test_what_stands_in_the_way_is_named_with_its_place(place, layout):
    settings, file = place(layout)
    wrong = {"groups": '{"hooks": []}', "flat": '{"hooks": {"Stop": {}}}'}
    text = wrong.get(layout, 'a = 1\nhooks = "x"\n')
    with pytest.raises(CannotInstall, match="so nothing can be added to it") as refused:
        settings.text_with(text, file, settings.entries("/x/notyet", 600))
    assert refused.value.mistake.line == (2 if layout == "list" else 1)


@every_layout
def test_our_own_entries_are_found_with_their_timeout_and_place(place, layout):
    settings, file = place(layout, timeout_unit=0.001, longest_timeout=60.0)
    text = settings.text_with(OTHERS[layout], file, settings.entries("/x/notyet", 600))
    change = to_install(settings, file, settings.entries("/x/notyet", 600))
    assert change.is_first
    found = settings.registrations(file, read_settings(text, file))
    assert {one.event for one in found} == {*settings.events}
    stops = [one for one in found if one.event == "Stop"]
    assert [(one.timeout, one.given_timeout) for one in stops] == [(60.0, 60_000)]
    assert all(one.line >= 1 and one.is_hook for one in found)


def test_an_entry_that_needs_a_matcher_has_it_and_is_not_restricted_by_it(place):
    settings, file = place("groups", matchers={"SubagentStop": "complete_task"})
    text = settings.text_with("", file, settings.entries("/x/notyet", 600))
    found = {one.event: one for one in settings.registrations(file, read_settings(text, file))}
    assert found["SubagentStop"].matcher == "complete_task"
    assert not found["SubagentStop"].is_restricted
    assert found["Stop"].matcher is None
    assert settings.text_without(text, file) == "{}\n"


@pytest.mark.parametrize("layout", ["groups", "flat"])
def test_hooks_that_are_written_twice_are_refused_with_their_place(place, layout):
    settings, file = place(layout)
    for text in ('{"hooks": {}, "x": 1,\n"hooks": {}}', '{"hooks": {"Stop": [],\n"Stop": []}}'):
        with pytest.raises(CannotInstall, match="is written twice") as refused:
            settings.text_with(text, file, settings.entries("/x/notyet", 600))
        assert refused.value.mistake.line == 2
    twice = '{"x": 1, "x": 2}'
    assert '"x": 1, "x": 2' in settings.text_with(twice, file, settings.entries("/x/notyet", 600))
