"""Some hosts silently skip the hooks of folders that their user did not tell them to trust."""

import json

import pytest

from notyet.hosts import host_named
from notyet.hosts.faults import Checks, is_trusted
from notyet.hosts.host import ClaudeLike, FolderTrust
from notyet.install.settings import Settings, SettingsFile
from notyet.status.facts import HostFacts

TABLE = FolderTrust(
    file=".x/folders.json", values=("TRUST",), variable="X_TRUSTS", how="start x there"
)
LIST = FolderTrust(file=".x/config.toml", keys=("a", "folders"), how="start x there")


@pytest.fixture
def home(tmp_path, monkeypatch):
    (tmp_path / ".x").mkdir()
    (tmp_path / "project" / "below").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def host_with(trust, **more):
    return ClaudeLike(name="claude", title="X", folder_trust=trust, **more)


def trusts(home, trust, content, folder="project", **environ):
    (home / trust.file).write_text(content)
    return is_trusted(host_with(trust), str(home / folder), {"HOME": str(home)} | environ)


def test_a_table_and_a_list_of_folders_are_read(home):
    folder = str(home / "project")
    assert trusts(home, TABLE, json.dumps({folder: "TRUST"}))
    assert trusts(home, TABLE, json.dumps({folder: "TRUST"}), "project/below")
    assert not trusts(home, TABLE, json.dumps({folder: "DO_NOT_TRUST"}))
    assert not trusts(home, TABLE, json.dumps({f"{folder}/below": "TRUST"}))
    assert trusts(home, TABLE, "{}", X_TRUSTS="true")
    assert not trusts(home, TABLE, "{}", X_TRUSTS="false")
    assert not trusts(home, TABLE, "{}", X_TRUSTS="1")
    assert trusts(home, TABLE, f'// mine\n  // "x"\n{{"{folder}": "TRUST"}}')
    assert trusts(home, LIST, f'[a]\nfolders = [1, "{folder}"]\n')


def test_the_nearest_folder_counts_and_a_value_may_mean_the_one_around(home):
    folder = str(home / "project")
    trust = FolderTrust(
        file=".x/folders.json", values=("T",), parents=("P",), refused=("N",), how="start x there"
    )
    assert trusts(home, trust, json.dumps({folder: "T"}), "project/below")
    assert not trusts(
        home, trust, json.dumps({folder: "T", f"{folder}/below": "N"}), "project/below"
    )
    assert trusts(home, trust, json.dumps({folder: "N", f"{folder}/below": "T"}), "project/below")
    assert trusts(home, trust, json.dumps({f"{folder}/other": "P"}))
    assert not trusts(home, trust, json.dumps({folder: "?"}))


def test_pi_refuses_a_folder_within_a_trusted_one(home):
    folder = str(home / "project")
    trust = host_named("pi").folder_trust
    (home / trust.file).parent.mkdir(parents=True)
    assert trusts(home, trust, json.dumps({folder: True}), "project/below")
    refused = {folder: True, f"{folder}/below": False}
    assert not trusts(home, trust, json.dumps(refused), "project/below")
    assert trusts(home, trust, json.dumps(refused))


def test_vibe_keeps_a_list_of_each_and_its_variable_moves_the_file(home):
    trust, folder = host_named("vibe").folder_trust, str(home / "project")
    (home / ".vibe").mkdir()
    below = f"{folder}/below"
    for trusted, refused, expected in [
        ([folder], [below], False),
        ([below], [folder], True),
        ([folder], [folder], True),  # it looks there first
        ([], [folder], False),
    ]:
        content = f"trusted = {json.dumps(trusted)}\nuntrusted = {json.dumps(refused)}\n"
        assert trusts(home, trust, content, "project/below") == expected
    (home / ".vibe").rename(home / "moved")
    (home / "moved" / "trusted_folders.toml").write_text(f"trusted = {json.dumps([folder])}\n")
    environ = {"HOME": str(home)}
    vibe = host_named("vibe")
    assert not is_trusted(vibe, folder, environ)
    assert is_trusted(vibe, folder, environ | {"VIBE_HOME": str(home / "moved")})


@pytest.mark.parametrize("is_on", [True, False])
def test_a_switch_makes_trust_needless(home, is_on):
    switch = (".x/settings.json", "trust", "enabled")
    trust = FolderTrust(file=".x/folders.json", switch=switch, is_on=is_on, how="start x there")
    assert trusts(home, trust, "{}") != is_on
    for said in (True, False):
        (home / ".x/settings.json").write_text(json.dumps({"trust": {"enabled": said}}))
        assert trusts(home, trust, "{}") != said


@pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"a": {"b": 1}}', "[[[[", '"x"', "a = 1"])
@pytest.mark.parametrize("trust", [TABLE, LIST])
def test_a_file_that_says_nothing_of_folders_trusts_none(home, trust, content):
    assert not trusts(home, trust, content)
    (home / trust.file).unlink()
    assert not is_trusted(host_with(trust), str(home), {"HOME": str(home)})
    assert is_trusted(host_with(None), str(home), {"HOME": str(home)})


def test_install_names_the_step_and_status_finds_it_missing(home):
    trust = FolderTrust(file=".x/t.json", values=(True,), how="start x there")
    host = host_with(trust, settings={"user": ".x/s.json", "project": ".x/s.json"})
    here, environ = str(home / "project"), {"HOME": str(home)}
    made = Settings(host)
    file = made.target("project", here, environ)
    step = "start x there; until then X silently skips hooks here"
    assert step in made.advice(file, here)
    assert step not in made.advice(SettingsFile(scope="user", path=file.path), here)
    made_text = made.text_with("", file, made.entries("/x/notyet", 60))
    (home / file.path).parent.mkdir(exist_ok=True, parents=True)
    (home / file.path).write_text(made_text)
    entries, _ = made.found_in([file])
    facts = HostFacts(host=host, cwd=here, environ=environ, entries=tuple(entries))
    found = [*Checks().faults(facts)]
    assert {fault.code for fault in found} == {"folder-not-trusted"}
    assert {fault.fix for fault in found} == {"start x there"}
    assert not Checks().is_accepted(facts)
    (home / ".x" / "t.json").write_text(json.dumps({here: True}))
    assert not [*Checks().faults(facts)]
    assert Checks().is_accepted(facts)
    assert step not in made.advice(file, here)


def test_from_a_folder_below_the_step_names_the_root_of_the_project(home):
    trust = FolderTrust(file=".x/t.json", values=(True,), how="start x here")
    made = Settings(host_with(trust, settings={"user": ".x/s.json", "project": ".x/s.json"}))
    root, below = home / "project", str(home / "project" / "below")
    (root / ".git").mkdir()
    file = made.target("project", below, {"HOME": str(home)})
    step = f"in {root}: start x here; until then X silently skips hooks here"
    assert step in made.advice(file, below)
    (home / trust.file).write_text(json.dumps({below: True}))
    assert step in made.advice(file, below)
    (home / trust.file).write_text(json.dumps({str(root): True}))
    assert step not in made.advice(file, below)


@pytest.mark.parametrize(
    ("depth", "moved"), [(0, ".x/sub/t.json"), (1, "sub/t.json"), (2, "t.json")]
)
def test_a_variable_moves_the_file_with_its_folder(home, depth, moved):
    trust = FolderTrust(file=".x/sub/t.json", values=(1,), how="start x")
    host = host_with(trust, home_variable="X_HOME", home_depth=depth)
    (home / "moved" / moved).parent.mkdir(parents=True)
    (home / "moved" / moved).write_text(json.dumps({str(home): 1}))
    environ = {"HOME": str(home)}
    assert not is_trusted(host, str(home), environ)
    assert is_trusted(host, str(home), environ | {"X_HOME": str(home / "moved")})
