"""Which files hosts read, and where we write."""

import os
from pathlib import Path

import pytest

from notyet.hosts.registered import events_called_at
from notyet.install.settings import CannotInstall, settings_of

CLAUDE = settings_of("claude")
CODEX = settings_of("codex")


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "p" / "sub" / "deep"
    folder.mkdir(parents=True)
    (tmp_path / "p" / ".git").mkdir()
    return folder


def scopes(places, root):
    return [(place.scope, os.path.relpath(place.path, root)) for place in places]


def test_claude_code_reads_the_users_the_projects_and_managed_settings(
    project, tmp_path, monkeypatch
):
    monkeypatch.setattr("notyet.hosts.claude.settings.MANAGED", str(tmp_path / "managed"))
    more = tmp_path / "managed" / "managed-settings.d"
    more.mkdir(parents=True)
    for name in ("b.json", "a.json", ".hidden.json", "notes.txt"):
        (more / name).touch()
    found = CLAUDE.files(str(project), {"HOME": str(tmp_path / "home")})
    assert scopes(found, tmp_path) == [
        ("user", "home/.claude/settings.json"),
        ("project", "p/sub/deep/.claude/settings.json"),
        ("local", "p/sub/deep/.claude/settings.local.json"),
        ("local", "p/.claude/settings.local.json"),
        ("managed", "managed/managed-settings.json"),
        ("managed", "managed/managed-settings.d/a.json"),
        ("managed", "managed/managed-settings.d/b.json"),
    ]


def test_codex_reads_every_layer_and_all_folders_of_the_project(project, tmp_path, monkeypatch):
    monkeypatch.setattr("notyet.hosts.codex.settings.MANAGED", str(tmp_path / "etc"))
    found = CODEX.files(str(project), {"HOME": str(tmp_path / "home")})
    assert scopes(found, tmp_path) == [
        ("managed", "etc/requirements.toml"),
        ("managed", "etc/hooks.json"),
        ("managed", "etc/config.toml"),
        ("user", "home/.codex/hooks.json"),
        ("user", "home/.codex/config.toml"),
        ("project", "p/.codex/hooks.json"),
        ("project", "p/.codex/config.toml"),
        ("project", "p/sub/.codex/hooks.json"),
        ("project", "p/sub/.codex/config.toml"),
        ("project", "p/sub/deep/.codex/hooks.json"),
        ("project", "p/sub/deep/.codex/config.toml"),
    ]
    assert {place.form for place in found if place.path.endswith(".toml")} == {"toml"}


@pytest.mark.parametrize(
    ("host", "variable"), [(CLAUDE, "CLAUDE_CONFIG_DIR"), (CODEX, "CODEX_HOME")]
)
def test_the_hosts_own_variable_moves_the_users_settings(host, variable, tmp_path):
    environ = {"HOME": str(tmp_path), variable: str(tmp_path / "elsewhere")}
    assert os.path.dirname(host.target("user", "/", environ).path) == environ[variable]
    assert environ[variable] in " ".join(place.path for place in host.files("/", environ))


@pytest.mark.parametrize(
    ("name", "variable", "below"),
    [
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("droid", "FACTORY_HOME_OVERRIDE", ".factory/settings.json"),
    ],
)
def test_a_variable_may_stand_for_the_home_itself(name, variable, below, tmp_path):
    host = settings_of(name)
    environ = {"HOME": str(tmp_path), variable: str(tmp_path / "elsewhere")}
    file = host.target("user", "/", environ)
    assert file.path == str(tmp_path / "elsewhere" / below)
    assert host.target("user", "/", {"HOME": str(tmp_path)}).path == str(tmp_path / below)
    (tmp_path / "elsewhere" / below).parent.mkdir(parents=True)
    Path(file.path).write_text(host.text_with("", file, host.entries("", 60)))
    events = set(host.host.stops) | set(host.host.starts)
    assert events_called_at(host.host, str(tmp_path), environ) == dict.fromkeys(events, file.path)
    assert events_called_at(host.host, str(tmp_path), {"HOME": str(tmp_path)}) == {}


@pytest.mark.parametrize("host", [CLAUDE, CODEX])
def test_without_a_home_there_is_no_place_for_the_user(host, tmp_path):
    with pytest.raises(CannotInstall, match="there is no home folder; set HOME"):
        host.target("user", str(tmp_path), {})
    assert "user" not in {place.scope for place in host.files(str(tmp_path), {})}


@pytest.mark.parametrize(
    ("host", "variable"), [(CLAUDE, "CLAUDE_CONFIG_DIR"), (CODEX, "CODEX_HOME")]
)
def test_a_relative_folder_of_the_user_is_refused(host, variable, tmp_path):
    with pytest.raises(CannotInstall, match=f"^{variable} is not an absolute path"):
        host.target("user", str(tmp_path), {"HOME": str(tmp_path), variable: "here"})


@pytest.mark.parametrize("host", [CLAUDE, CODEX])
def test_a_project_that_is_the_home_is_refused(host, tmp_path):
    environ = {"HOME": str(tmp_path)}
    with pytest.raises(CannotInstall, match="your own; use --user"):
        host.target("project", str(tmp_path), environ)
    paths = [place.path for place in host.files(str(tmp_path), environ)]
    assert len(paths) == len(set(paths))


def test_claude_code_has_local_settings_and_codex_has_none(project, tmp_path):
    environ = {"HOME": str(tmp_path)}
    place = CLAUDE.target("local", str(project), environ)
    assert place.path == str(tmp_path / "p" / ".claude" / "settings.local.json")
    with pytest.raises(CannotInstall, match="use --user or --project"):
        CODEX.target("local", str(project), environ)


OURS = "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = 'command'\ncommand = 'notyet hook'\n"
THEIRS = OURS.replace("notyet", "lint")


@pytest.mark.parametrize(
    ("json", "toml", "name"),
    [
        (None, None, "hooks.json"),
        (None, "model = 'x'\n", "hooks.json"),
        (None, "[hooks.state.x]\ntrusted_hash = 'y'\n", "hooks.json"),
        (None, THEIRS, "config.toml"),
        ("{}", THEIRS, "hooks.json"),
        ("{}", OURS, "config.toml"),
        ("", None, "hooks.json"),
    ],
)
def test_codex_keeps_its_hooks_in_one_file_and_ours_go_there(tmp_path, json, toml, name):
    folder = tmp_path / ".codex"
    folder.mkdir()
    for file, text in (("hooks.json", json), ("config.toml", toml)):
        if text is not None:
            (folder / file).write_text(text)
    place = CODEX.target("user", "/", {"HOME": str(tmp_path)})
    assert place.path == str(folder / name)
    assert place.form == name.rsplit(".", 1)[1]


def test_a_config_that_does_not_parse_is_told_of_before_anything_is_chosen(tmp_path):
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text("a = \n")
    with pytest.raises(CannotInstall, match=r"config\.toml:1:\d+: invalid TOML"):
        CODEX.target("user", "/", {"HOME": str(tmp_path)})
    _, (mistake,) = CODEX.found("/", {"HOME": str(tmp_path)})
    assert mistake.line == 1


def test_copilot_has_files_of_ours_alone_and_its_variable_names_their_parent(project, tmp_path):
    copilot = settings_of("copilot")
    home = {"HOME": str(tmp_path / "home")}
    assert scopes(copilot.files(str(project), home), tmp_path) == [
        ("user", "home/.copilot/hooks/notyet.json"),
        ("project", "p/.github/hooks/notyet.json"),
    ]
    moved = home | {"COPILOT_HOME": str(tmp_path / "moved")}
    assert copilot.user_folder(moved) == str(tmp_path / "moved" / "hooks")
    assert copilot.user_folder(home | {"COPILOT_HOME": "moved"}) == ""
