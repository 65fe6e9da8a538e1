"""Records of what was trusted, as loading meets them: changed, damaged, removed, copied."""

import json
import os
import stat
from pathlib import Path

import pytest

from config_places import READS, commands, hooks, setup, write, write_own, write_user_toml
from notyet.config.compiled import read_record
from notyet.config.find import state_folder
from notyet.config.load import load
from notyet.config.records import record_path

# An earlier version kept `when` and `paths` with the command.
OLD = {
    "format": 2,
    "file": "f",
    "gates": [{"name": "a", "check": {"script": "y", "options": {"when": "always"}}}],
}


def test_gates_of_the_same_name_from_different_files_keep_different_names(tmp_path):
    write_own(".codex/hooks.json", hooks("x"))
    write(tmp_path, ".codex/hooks.json", hooks("x"))
    text = READS.format("codex") + '[gates]\n"codex Stop[0] x (2)" = "native"\n'
    write(tmp_path, "notyet.toml", text)
    names = [gate.name for gate in setup(tmp_path).gates]
    assert names == ["codex Stop[0] x (2)", "codex Stop[0] x", "codex Stop[0] x (3)"]


@pytest.mark.rule("N5")
@pytest.mark.parametrize("name", [".mux/settings.json", ".mux/settings.local.json"])
def test_a_removed_file_of_another_host_stays_in_force_too(tmp_path, name):
    write(tmp_path, name, hooks("x")).unlink()
    found = setup(tmp_path, "mux")
    assert [gate.check.line for gate in found.gates] == ["x"]
    assert "was removed since it was trusted" in found.warnings[0]


def test_a_removed_file_of_the_users_own_is_gone(tmp_path):
    path = write_own(".mux/settings.json", hooks("x"))
    assert commands(tmp_path, "mux") == ["x"]
    path.unlink()
    assert setup(tmp_path, "mux").gates == ()
    path = write_user_toml('[gates]\na = "x"\n')
    assert commands(tmp_path) == ["x"]
    path.unlink()
    assert setup(tmp_path) == load("", "notyet", os.environ)


@pytest.mark.rule("N5")
@pytest.mark.parametrize("spoil", ["compiled", "path", "content", "at"])
def test_a_damaged_record_is_no_trust(tmp_path, spoil):
    path = write(tmp_path, "notyet.toml", '[gates]\na = "x"\n')
    record = Path(record_path(state_folder(os.environ), str(path)))
    for odd in (None, 5, [], "x", [["a"]]):
        if not (odd == 5 and spoil == "at"):
            good = json.loads(record.read_text())
            record.write_text(json.dumps(good | {spoil: odd}))
            found = setup(tmp_path)
            if spoil == "content" and odd == "x":
                assert "changed since" in found.warnings[0]
            else:
                assert (found.gates, [file.path for file in found.untrusted]) == ((), [str(path)])
            record.write_text(json.dumps(good))
    for content in (b"", b"[]", b"5", b"\xff", b"{", b"[" * 100_000):
        record.write_bytes(content)
        assert [file.path for file in setup(tmp_path).untrusted] == [str(path)]


@pytest.mark.rule("N5")
def test_a_damaged_record_of_a_removed_file_is_told_of(tmp_path):
    path = write(tmp_path, "notyet.toml", '[gates]\na = "x"\n')
    Path(record_path(state_folder(os.environ), str(path))).write_text("{")
    path.unlink()
    found = setup(tmp_path)
    assert (found.gates, found.unreadable) == ((), (str(path),))
    assert found.warnings == (
        f"{path} was removed since it was trusted, and what was trusted of it cannot be read; "
        "run: notyet trust --revoke",
    )


@pytest.mark.rule("N5")
@pytest.mark.parametrize("compiled", [{}, {"format": 1}, {"format": 2, "gates": [{"x": 1}]}, OLD])
def test_a_record_of_another_version_is_compiled_anew_from_the_trusted_text(tmp_path, compiled):
    path = write(tmp_path, "notyet.toml", '[gates]\na = "x"\n')
    record = Path(record_path(state_folder(os.environ), str(path)))
    record.write_text(json.dumps(json.loads(record.read_text()) | {"compiled": compiled}))
    path.write_text('[gates]\na = "evil"\n')
    assert commands(tmp_path) == ["x"]


def test_the_users_own_file_is_compiled_anew_when_it_changes(tmp_path):
    path = write_user_toml('[gates]\na = "one"\n')
    assert commands(tmp_path) == ["one"]
    path.write_text('[gates]\na = "two"\n')
    assert commands(tmp_path) == ["two"]
    record = read_record(state_folder(os.environ), str(path))
    assert (record.content, record.at) == (path.read_text(), 0)


def test_the_users_own_file_counts_even_if_nothing_can_be_kept(tmp_path, monkeypatch):
    write_user_toml('[gates]\na = "one"\n')
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    found = setup(tmp_path)
    assert [gate.name for gate in found.gates] == ["a"]
    assert "cannot be written" in found.warnings[0]


def test_mistakes_of_the_users_own_file_are_said_at_every_stop(tmp_path):
    write_user_toml("[gates]\na = 5\n")
    assert len(setup(tmp_path).warnings) == len(setup(tmp_path).warnings) == 1


def test_records_are_for_their_user_only(tmp_path):
    path = write(tmp_path, "notyet.toml", '[gates]\na = "x"\n')
    state = Path(state_folder(os.environ))
    record = Path(record_path(str(state), str(path)))
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    for folder in record.parents:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        if folder == state:
            break
    assert [p.name for p in record.parent.iterdir()] == ["notyet.toml.json"]
