"""Which files count at a place, and whether there is any: without reading one."""

import os

import pytest

from config_places import write, write_user_toml
from notyet.config.files import host_files, toml_files
from notyet.config.find import projects_files, starts, user_folder
from notyet.config.load import Setup, load
from notyet.config.off import switch_off, switch_on

GATES = '[gates]\na = "x"\n'


def bare(cwd, host="claude", environ=os.environ, **given):
    """Ask, and prove that `load` finds nothing where the answer is yes."""
    found = projects_files(str(cwd), host, environ, **given) == []
    if found:
        assert load(str(cwd), host, environ, **given) == Setup()
    return found


def test_a_place_with_no_file_at_all_is_bare(tmp_path):
    assert bare(tmp_path)
    assert bare(tmp_path, "codex", project=str(tmp_path))
    assert bare(tmp_path / "gone")
    assert bare(tmp_path, environ={})


@pytest.mark.parametrize("trusted", [True, False])
def test_a_place_below_a_file_is_not_bare_trusted_or_not(tmp_path, trusted):
    write(tmp_path, "notyet.toml", GATES, trusted=trusted)
    (tmp_path / "a/b").mkdir(parents=True)
    assert not bare(tmp_path)
    assert not bare(tmp_path / "a/b")


@pytest.mark.rule("N5")
def test_a_place_whose_file_was_trusted_and_removed_is_not_bare(tmp_path):
    write(tmp_path, "notyet.toml", GATES).unlink()
    assert not bare(tmp_path)


@pytest.mark.rule("N5")
def test_a_folder_that_was_replaced_by_a_link_is_not_bare(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    write(tmp_path / "a", "notyet.toml", GATES).unlink()
    (tmp_path / "a").rmdir()
    (tmp_path / "a").symlink_to("elsewhere")
    assert not bare(tmp_path / "a")
    assert bare(tmp_path / "elsewhere")
    assert list(starts(str(tmp_path / "a"), "")) == [
        str(tmp_path / "elsewhere"),
        str(tmp_path / "a"),
        "",
    ]


def test_a_project_that_the_host_names_counts(tmp_path):
    write(tmp_path / "project", "notyet.toml", GATES)
    (tmp_path / "other").mkdir()
    assert not bare(tmp_path / "other", project=str(tmp_path / "project"))
    assert bare(tmp_path / "other", project=str(tmp_path / "other"))


def test_the_users_own_file_counts_everywhere(tmp_path):
    path = write_user_toml(GATES)
    assert not bare(tmp_path)
    path.unlink()
    assert bare(tmp_path)


def test_a_named_file_or_workspace_is_not_bare(tmp_path):
    assert not bare(tmp_path, only="other.toml")
    assert not bare(tmp_path, workspace="ssh://box/srv")
    assert not bare(tmp_path, workspace="local")
    assert not bare("")


@pytest.mark.rule("J8")
@pytest.mark.parametrize("host", ["mux", "conclaude"])
def test_a_host_whose_files_we_read_for_it_is_told_no(tmp_path, host):
    assert not bare(tmp_path, host)


def test_what_is_switched_off_is_to_be_said(tmp_path):
    assert not bare(tmp_path, environ=dict(os.environ) | {"NOTYET_DISABLE": "1"})
    assert bare(tmp_path, environ=dict(os.environ) | {"NOTYET_DISABLE": "0"})
    switch_off("", 0.0, os.environ)
    assert not bare(tmp_path)
    switch_on("", os.environ)
    assert not bare(tmp_path)  # the folder is there still, so there is more to look at


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
    found = toml_files(str(deep), {}, lambda path: path == trusted)
    assert [file.path for file in found] == [str(deep / "notyet.toml"), trusted]


@pytest.mark.parametrize("host", ["claude", "codex", "mux", "conclaude"])
def test_without_a_home_only_the_projects_files_count(tmp_path, host):
    for name in (".claude/settings.json", ".codex/hooks.json", ".mux/stop", ".conclaude.yaml"):
        os.makedirs(os.path.dirname(tmp_path / name), exist_ok=True)
        (tmp_path / name).touch()
    (found,) = host_files(host, str(tmp_path), {})
    assert not found.is_users


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
    assert (found.path, found.is_users) == (str(tmp_path / "moved" / file), True)
    assert host_files(host, str(tmp_path / "p"), environ | {variable: "moved"}) == []


@pytest.mark.rule("N5")
def test_a_project_cannot_pass_off_its_settings_as_the_users(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "settings.json").touch()
    environ = {"HOME": "/nowhere", "CLAUDE_CONFIG_DIR": str(tmp_path)}
    (found,) = host_files("claude", str(tmp_path), environ)
    assert not found.is_users
