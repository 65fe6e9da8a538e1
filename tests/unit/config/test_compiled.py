"""Records of trusted files: how they are kept, and that a stop reads only what it needs."""

import json
import os
from pathlib import Path

import pytest

from config_places import write, write_user_toml
from notyet.config.compiled import (
    Trusted,
    are_silent,
    read_record,
    remove_record,
    write_record,
)
from notyet.config.find import projects_files, state_folder
from notyet.config.load import load
from notyet.config.records import has_record, record_path
from notyet.core.event import StopEvent
from notyet.core.plan import missing_names, select

MAIN = '[gates.{}]\nrun = "x"\n'
CHILD = MAIN + 'for = "subagents"\n'
BOTH = MAIN + 'for = "all"\n'
MANY = "".join((MAIN.format("a"), CHILD.format("b"), CHILD.format("c"), MAIN.format("d")))


def record_of(path):
    return Path(record_path(state_folder(os.environ), str(path)))


def silent(cwd, scope):
    """Ask, and prove that a whole look comes to the same where the answer is yes."""
    paths = projects_files(str(cwd), "claude", os.environ)
    is_silent = paths is not None and are_silent(paths, scope, os.environ)
    if is_silent:
        setup = load(str(cwd), "claude", os.environ)
        assert not [gate for gate in setup.gates if scope in gate.match.events]
        assert (setup.observers, setup.notifications, setup.warnings) == ((), (), ())
        assert (setup.untrusted, setup.unreadable, setup.workspace) == ((), (), "")
    return is_silent


def names(cwd, scope=None):
    event = StopEvent(scope=scope) if scope else None
    setup = load(str(cwd), "notyet", os.environ, event=event)
    return [gate.name for gate in setup.gates], setup.warnings


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("agent", ["a", "d", "e"]), ("subagent", ["b", "c", "e"]), (None, ["a", "b", "c", "d", "e"])],
)
def test_only_the_gates_that_can_be_for_an_agent_are_read(tmp_path, scope, expected):
    write(tmp_path, "notyet.toml", MANY + BOTH.format("e"))
    assert names(tmp_path, scope) == (expected, ())


@pytest.mark.rule("D2")
def test_gates_whose_patterns_mean_other_subagents_are_left_out(tmp_path):
    kinds = {"a": '["coder"]', "b": '["impl-*", "x"]', "c": '["Explore"]', "d": '"all"'}
    text = "".join(MAIN.format(name) + f"for = {kind}\n" for name, kind in kinds.items())
    write(tmp_path, "notyet.toml", text)
    for fields, expected in (
        ({"agent_type": "coder"}, ["a", "d"]),
        ({"agent_type": "Plan", "agent_name": "impl-7"}, ["b", "d"]),
        ({"agent_id": "x"}, ["b", "d"]),
        ({"agent_id": ""}, ["a", "b", "c", "d"]),  # it is to be said that its id is missing
    ):
        event = StopEvent(scope="subagent", **{"agent_id": "a1"} | fields)
        setup = load(str(tmp_path), "notyet", os.environ, event=event)
        assert [gate.name for gate in setup.gates] == expected
        every = load(str(tmp_path), "notyet", os.environ).gates
        assert select(event, setup.gates) == select(event, every)
        assert missing_names(event, setup.gates) == missing_names(event, every)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MAIN.format("a"), (False, True)),
        (CHILD.format("a"), (True, False)),
        (BOTH.format("a"), (False, False)),
        (MANY, (False, False)),
        ("[limits]\nmax_blocks = 5\n", (True, True)),
        ('[observers.o]\nrun = "x"\n', (False, False)),
        ('workspace = "ssh://box/srv"\n', (False, False)),
        ('[read]\nhosts = ["mux"]\n', (False, False)),
        ('[ledger]\nlogs = "9MB"\n', (False, False)),
    ],
)
def test_a_trusted_file_is_silent_for_agents_that_it_says_nothing_for(tmp_path, text, expected):
    write(tmp_path, "notyet.toml", text)
    assert (silent(tmp_path, "agent"), silent(tmp_path, "subagent")) == expected


@pytest.mark.rule("N5")
def test_a_file_of_which_there_is_something_to_say_is_not_silent(tmp_path):
    path = write(tmp_path, "notyet.toml", MAIN.format("a"))
    assert silent(tmp_path, "subagent")
    path.write_text(MAIN.format("b"))
    assert not silent(tmp_path, "subagent")  # it changed
    path.unlink()
    assert not silent(tmp_path, "subagent")  # it was removed
    write(tmp_path, "notyet.toml", MAIN.format("a"))
    write(tmp_path / "below", "notyet.toml", MAIN.format("a"), trusted=False)
    assert not silent(tmp_path / "below", "subagent")  # nobody trusted one that is nearer
    write_user_toml("")
    assert not silent(tmp_path, "subagent")  # there is another file


def test_a_record_of_an_earlier_layout_is_read(tmp_path):
    path = write(tmp_path, "notyet.toml", MANY)
    old = json.loads(record_of(path).read_text()) | {"runs": [["agent"]]}
    record_of(path).write_text(json.dumps(old, indent=1))
    assert names(tmp_path) == (["a", "b", "c", "d"], ())


def test_silence_is_not_taken_from_a_damaged_record(tmp_path):
    path = write(tmp_path, "notyet.toml", MAIN.format("a"))
    good = record_of(path).read_text()
    for old, odd in (
        ('"format": 2', '"format": 0'),
        ('"format": 2, ', ""),
        ('"compiled": {', '"compiled": [{'),
    ):
        assert old in good
        record_of(path).write_text(good.replace(old, odd))
        assert not silent(tmp_path, "subagent")


def test_a_record_comes_back_as_it_was(tmp_path):
    for content in ("[gates]\n", "", "\0\n\r\n", "é😀", "\udc80\udcff"):
        record = Trusted(path="/p/notyet.toml", content=content, compiled={"a": [1]}, at=5.5)
        write_record(str(tmp_path), record)
        assert read_record(str(tmp_path), "/p/notyet.toml") == record
    assert os.listdir(tmp_path / "trust" / "p") == ["notyet.toml.json"]


@pytest.mark.rule("N5")
def test_without_a_home_there_are_no_records(tmp_path):
    record = Trusted(path="/p", content="", compiled={}, at=1.0)
    write_record(str(tmp_path), record)
    assert (has_record(str(tmp_path), "/p"), has_record("", "/p")) == (True, False)
    assert (read_record("", "/p"), remove_record("", "/p")) == (None, False)
    with pytest.raises(OSError, match="there is no home folder"):
        write_record("", record)
