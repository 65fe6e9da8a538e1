import os

import pytest

from notyet.config.files import ConfigFile
from notyet.config.find import state_folder
from notyet.config.records import read_record
from notyet.config.settings import thaw
from notyet.config.trust import candidate, grant

pytestmark = pytest.mark.rule("N5")


@pytest.fixture
def file(tmp_path):
    (tmp_path / "notyet.toml").write_text('[gates]\na = "x"\n')
    return ConfigFile(path=str(tmp_path / "notyet.toml"), kind="notyet")


def test_a_file_that_was_never_trusted_has_nothing_before_it(file):
    found = candidate(file, os.environ)
    assert (found.before, found.is_trusted) == (None, False)
    assert [gate.name for gate in found.settings.gates] == ["a"]


def test_what_is_granted_is_what_was_read_and_not_what_the_file_says_by_now(file):
    found = candidate(file, os.environ)
    with open(file.path, "w") as opened:
        opened.write("[gates]\n")
    grant(found, os.environ)
    record = read_record(state_folder(os.environ), file.path)
    assert record.content == '[gates]\na = "x"\n'
    assert record.at > 0
    assert thaw(dict(record.compiled)).gates == found.settings.gates
    assert not candidate(file, os.environ).is_trusted


def test_the_same_text_is_trusted_and_another_is_not(file):
    grant(candidate(file, os.environ), os.environ)
    assert candidate(file, os.environ).is_trusted
    with open(file.path, "a") as opened:
        opened.write(" ")
    changed = candidate(file, os.environ)
    assert not changed.is_trusted
    assert changed.before.content + " " == changed.text


def test_a_file_that_cannot_be_read_is_an_error(file):
    os.unlink(file.path)
    with pytest.raises(FileNotFoundError):
        candidate(file, os.environ)
