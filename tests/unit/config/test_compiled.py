"""Records of trusted files: how they are kept, and that a stop reads only what it needs."""

import json
import os
from pathlib import Path

import pytest

from config_places import write, write_user_toml
from notyet.config.compiled import (
    Trusted,
    are_silent,
    read_lazily,
    read_record,
    remove_record,
    write_record,
)
from notyet.config.find import has_record, projects_files, record_path, state_folder
from notyet.config.load import load
from notyet.core.event import StopEvent
from notyet.core.plan import missing_names, select

MAIN = '[gates.{}]\nrun = "x"\n'
CHILD = MAIN + 'for = "subagents"\n'
BOTH = MAIN + 'for = "all"\n'
MANY = "".join((MAIN.format("a"), CHILD.format("b"), CHILD.format("c"), MAIN.format("d")))
LINES = 4


def record_of(path):
    return Path(record_path(state_folder(os.environ), str(path)))


def found(path, **fields):
    return read_lazily(state_folder(os.environ), str(path), path.read_text(), **fields)


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


@pytest.mark.rule("N5")
def test_a_file_of_the_users_own_once_is_not_trusted_by_that(tmp_path):
    path = write_user_toml(MANY)
    assert names(tmp_path)[0] == ["a", "b", "c", "d"]
    assert found(path) is None
    assert found(path, own=True).settings["file"] == str(path)


@pytest.mark.rule("N5")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (0, '{"path": 5, "at": 1, "runs": [], "content": '),
        (0, "{"),
        (1, '"x"'),
        (2, ', "compiled": {'),
        (2, ', "compiled": {"format": 0'),
        (3, ', "gates": [{"name": "a", "check": {"script": 1}}'),
        (3, ', "gates": [{'),
    ],
)
def test_a_damaged_line_is_found_out_and_nothing_of_it_is_run(tmp_path, line, said):
    path = write(tmp_path, "notyet.toml", MANY)
    lines = record_of(path).read_text().split("\n")
    lines[line] = said
    record_of(path).write_text("\n".join(lines))
    setup = load(str(tmp_path), "notyet", os.environ, event=StopEvent())
    told = [file.path for file in setup.untrusted]
    if read_record(state_folder(os.environ), str(path)) is None:
        assert (setup.gates, told) == ((), [str(path)])
    elif line == 1:  # the file is not what was trusted
        assert "changed since it was trusted" in setup.warnings[0]
    else:  # its text was trusted, and is compiled anew
        assert [gate.check.line for gate in setup.gates] == ["x"] * 4


def test_a_record_on_one_line_is_read_as_before(tmp_path):
    path = write(tmp_path, "notyet.toml", MANY)
    record_of(path).write_text(json.dumps(json.loads(record_of(path).read_text())))
    assert names(tmp_path, "agent") == (["a", "b", "c", "d"], ())


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


def test_silence_is_not_taken_from_a_damaged_record(tmp_path):
    path = write(tmp_path, "notyet.toml", MAIN.format("a"))
    good = record_of(path).read_text()
    for old, odd in (
        ('"runs": [["agent"]]', '"runs": [5]'),
        ('"runs": [["agent"]]', '"runs": 5'),
        ('"runs": [["agent"]]', '"runs": []'),
        ('"format": 1', '"format": 0'),
        ('"format": 1, ', ""),
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
