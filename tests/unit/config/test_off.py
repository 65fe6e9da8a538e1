import os
import time
from pathlib import Path

import pytest

from notyet.config.find import state_folder
from notyet.config.off import switch_off, switch_on, switched_off, switches


def is_off(cwd):
    return bool(switched_off(str(cwd), os.environ))


def test_a_switch_is_for_a_folder_and_all_below(tmp_path):
    switch_off(str(tmp_path / "a"), 0.0, os.environ)
    assert is_off(tmp_path / "a")
    assert is_off(tmp_path / "a" / "b" / "c")
    assert not is_off(tmp_path)
    assert not is_off(tmp_path / "ab")


def test_without_a_folder_only_the_switch_for_everything_counts(tmp_path):
    switch_off("/", 0.0, os.environ)
    assert is_off(tmp_path)
    assert not is_off("")
    assert not is_off("a\0b")
    switch_off("", 0.0, os.environ)
    assert is_off("")
    assert is_off("a\0b")


def test_each_switch_is_lifted_where_it_was_set_and_names_the_command_that_lifts_it(tmp_path):
    inner = str(tmp_path / "a")
    for place in ("", str(tmp_path), inner):
        switch_off(place, 0.0, os.environ, by="ann")
    assert [off.place for off in switches(inner, os.environ)] == [inner, str(tmp_path), ""]
    assert {off.by for off in switches(inner, os.environ)} == {"ann"}
    for place, undo in ((inner, "notyet on"), (str(tmp_path), "notyet on"), ("", "on --global")):
        assert switched_off(inner, os.environ).endswith(undo)
        assert switch_on(place, os.environ)
        assert not switch_on(place, os.environ)
    assert not is_off(inner)


def test_an_expired_switch_is_none(tmp_path):
    switch_off(str(tmp_path), time.time() - 1, os.environ)
    assert not is_off(tmp_path)
    switch_off(str(tmp_path), time.time() + 100, os.environ)
    assert "for another 2 min" in switched_off(str(tmp_path), os.environ)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"until": null}',
        b'{"until": "x"}',
        b"\xff",
        b'{"until":1e999}',
        b'{"until": 0, "by": [1]}',
    ],
)
def test_a_damaged_switch_is_still_off(tmp_path, content):
    switch_off("", 0.0, os.environ)
    Path(state_folder(os.environ), "off", "everywhere.json").write_bytes(content)
    assert is_off(tmp_path)


@pytest.mark.parametrize(
    ("value", "off"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("no", False)]
)
def test_the_variable_speaks_for_itself(value, off):
    assert bool(switched_off("/", {"NOTYET_DISABLE": value})) == off
