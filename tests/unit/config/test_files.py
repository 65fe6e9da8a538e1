import os

import pytest

from notyet.config.find import host_files, native_files, user_folder


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}, "/c/notyet"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/notyet"),
        ({"HOME": "/h"}, "/h/.config/notyet"),
        ({"HOME": "relative"}, ""),
        ({}, ""),
    ],
)
def test_where_the_users_own_configuration_lies(environ, folder):
    assert user_folder(environ) == folder


@pytest.mark.rule("J6", "N5")
def test_the_walk_up_ends_at_the_first_trusted_file(tmp_path):
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", deep):
        (folder / "notyet.toml").touch()
    trusted = str(tmp_path / "a" / "notyet.toml")
    found = native_files(str(deep), {}, lambda path: path == trusted)
    assert [file.path for file in found] == [str(deep / "notyet.toml"), trusted]


@pytest.mark.parametrize("host", ["claude", "codex", "mux", "conclaude"])
def test_without_a_home_only_the_projects_files_count(tmp_path, host):
    for name in (".claude/settings.json", ".codex/hooks.json", ".mux/stop", ".conclaude.yaml"):
        os.makedirs(os.path.dirname(tmp_path / name), exist_ok=True)
        (tmp_path / name).touch()
    (found,) = host_files(host, str(tmp_path), {})
    assert not found.own


@pytest.mark.parametrize(
    ("host", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
    ],
)
def test_a_hosts_own_variable_moves_the_users_settings(tmp_path, host, variable, file):
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / file).touch()
    (tmp_path / "p").mkdir()
    environ = {"HOME": str(tmp_path), variable: str(tmp_path / "moved")}
    (found,) = host_files(host, str(tmp_path / "p"), environ)
    assert (found.path, found.own) == (str(tmp_path / "moved" / file), True)
    assert host_files(host, str(tmp_path / "p"), environ | {variable: "moved"}) == []


@pytest.mark.rule("N5")
def test_a_project_cannot_pass_off_its_settings_as_the_users(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "settings.json").touch()
    environ = {"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    (found,) = host_files("claude", str(tmp_path), environ)
    assert not found.own
