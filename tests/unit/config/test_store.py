import os
from pathlib import Path

import pytest

from notyet.config.find import has_record, record_path, state_folder, text_of
from notyet.config.records import Trusted, read_record, remove_record, write_record


def test_a_record_comes_back_as_it_was(tmp_path):
    for content in ("[gates]\n", "", "\0\n\r\n", "é😀", "\udc80\udcff"):
        record = Trusted(path="/p/notyet.toml", content=content, compiled={"a": [1]}, at=5.5)
        write_record(str(tmp_path), record)
        assert read_record(str(tmp_path), "/p/notyet.toml") == record
    assert os.listdir(tmp_path / "trust" / "p") == ["notyet.toml.json"]


def test_what_is_not_there_is_not_known(tmp_path):
    assert read_record(str(tmp_path), "/p/notyet.toml") is None
    assert read_record(str(tmp_path), "/p/a\0b") is None
    assert remove_record(str(tmp_path), "/p/notyet.toml") is False


@pytest.mark.rule("N5")
def test_without_a_home_there_are_no_records_not_even_those_that_lie_here(tmp_path, monkeypatch):
    record = Trusted(path="/p", content="", compiled={}, at=1.0)
    write_record(str(tmp_path), record)
    monkeypatch.chdir(tmp_path)
    assert os.path.exists(record_path("", "/p"))
    assert (has_record(str(tmp_path), "/p"), has_record("", "/p")) == (True, False)
    assert (read_record("", "/p"), remove_record("", "/p")) == (None, False)
    with pytest.raises(OSError, match="there is no home folder"):
        write_record("", record)


def test_a_record_can_be_removed(tmp_path):
    write_record(str(tmp_path), Trusted(path="/p", content="", compiled={}))
    assert remove_record(str(tmp_path), "/p") is True
    assert read_record(str(tmp_path), "/p") is None


def test_a_record_that_cannot_be_put_in_its_place_leaves_nothing_behind(tmp_path):
    place = Path(record_path(str(tmp_path), "/p/x"))
    place.mkdir(parents=True)
    with pytest.raises(OSError, match="irectory"):
        write_record(str(tmp_path), Trusted(path="/p/x", content="", compiled={}))
    assert os.listdir(place.parent) == ["x.json"]


def test_a_text_is_read_whatever_its_bytes(tmp_path):
    (tmp_path / "f").write_bytes(b"a\r\n\xff\0")
    assert text_of(str(tmp_path / "f")) == "a\r\n\udcff\0"


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_not_read(tmp_path, make):
    make(tmp_path / "f")
    with pytest.raises(OSError, match="not a regular file"):
        text_of(str(tmp_path / "f"))


def test_a_huge_file_is_not_read(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    with pytest.raises(OSError, match="larger than 4 MB"):
        text_of(str(tmp_path / "f"))


def test_records_lie_in_the_state_folder(monkeypatch):
    assert state_folder({"XDG_STATE_HOME": "/s"}) == "/s/notyet"
    monkeypatch.setenv("HOME", "nowhere")
    assert state_folder({}) == ""
