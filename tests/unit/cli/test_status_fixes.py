"""What `notyet status` tells people to do: it names the place, the time and the file meant."""

import shutil

import pytest

from status_world import GATES, World


@pytest.fixture
def world(tmp_path, monkeypatch, capsys):
    return World("claude", tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(("scope", "option"), [("user", ""), ("local", " --local")])
def test_the_fix_keeps_an_entry_s_place_and_time(world, scope, option):
    world.settings.unlink()
    world.register(scope, timeout=700)
    path = None if scope == "user" else world.project / ".claude" / "settings.local.json"

    def change(value):
        value["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 60

    world.change(change, path)
    fix = world.found()[1]["timeout-too-short"]["fix"]
    assert fix == f"make both the same; run: notyet install claude{option} --timeout 700"


def test_an_organisation_s_entry_is_corrected_by_whoever_manages_it(world):
    world.managed.mkdir()
    managed = world.managed / "managed-settings.json"
    world.each_entry(type="prompt")
    shutil.move(world.settings, managed)
    fix = world.found()[1]["entry-refused"]["fix"]
    assert fix == f"let whoever manages this machine correct {managed}"


def test_a_portable_line_without_notyet_is_mended_by_the_path(world):
    world.settings.unlink()
    world.register("project", start="")
    world.notyet.rename(world.folder / "notyet")
    found = world.found()[1]
    assert list(found) == ["program-missing"]
    fix = "put it on the PATH with which Claude Code is started"
    assert found["program-missing"]["fix"] == fix


def test_two_entries_in_one_file_become_one_by_installing_again(world):
    world.change(lambda value: value["hooks"]["Stop"].append(value["hooks"]["Stop"][0]))
    assert world.found()[1]["registered-twice"]["fix"] == "run: notyet install claude"


def test_of_entries_in_two_files_one_is_taken_out(world):
    world.register("local")
    fix = "remove all but one, as with: notyet uninstall claude --local"
    assert world.found()[1]["registered-twice"]["fix"] == fix


def test_what_also_runs_others_is_taken_out_by_hand(world):
    line = f"make lint && {world.notyet} hook --host claude --timeout 1800"
    mixed = {"hooks": [{"type": "command", "command": line, "timeout": 60}]}
    world.change(lambda value: value["hooks"]["Stop"].append(mixed))
    found = world.found()[1]
    place = found["timeout-too-short"]["where"]
    by_hand = f"take `notyet hook ...` out of {place} yourself"
    assert found["registered-twice"]["fix"] == by_hand
    install = "run: notyet install claude"
    assert found["timeout-too-short"]["fix"] == f"make both the same; {by_hand}, and {install}"


@pytest.mark.parametrize("name", ["XDG_STATE_HOME", "NOTYET_LEDGER"])
def test_a_variable_that_moves_our_files_is_what_should_be_removed(world, name):
    (world.folder / "file").touch()
    world.change(lambda value: value.update(env={name: str(world.folder / "file" / "x")}))
    code, found = world.found()
    assert code == 1
    for one in found.values():
        assert one["host"] == "claude"
        assert one["fix"] == f"remove {name} from the `env` of Claude Code's settings"


def test_a_file_of_its_own_that_nobody_trusted_is_trusted_by_its_name(world):
    (world.folder / "other.toml").write_text(GATES)
    line = f"{world.notyet} hook --host claude --timeout 1800 --config {world.folder}/other.toml"
    world.each_entry(command=line, timeout=1800)
    fix = world.found()[1]["config-untrusted"]["fix"]
    assert fix == f"run: notyet trust {world.folder}/other.toml"
