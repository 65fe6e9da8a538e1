"""Hosts without hook commands get a plugin of ours, which is written and removed as a whole."""

import json
import shutil
import subprocess

import pytest

from notyet.hosts import all_hosts, host_named
from notyet.install.change import to_install, to_uninstall
from notyet.install.plugin_file import read_plugin
from notyet.install.settings import CannotInstall, settings_of, settings_text

START = "/usr/bin/notyet"
PLUGINS = [host.name for host in all_hosts() if host.layout == "file"]
every_plugin = pytest.mark.parametrize("name", PLUGINS)


@pytest.fixture
def place(tmp_path):
    """Return what gives the settings of a host, and the user's file."""
    (tmp_path / "state").mkdir()

    def make(name):
        settings = settings_of(name)
        return settings, settings.target("user", str(tmp_path), {"HOME": str(tmp_path)})

    return make


@pytest.fixture
def state(tmp_path):
    return str(tmp_path / "state")


@every_plugin
def test_a_plugin_is_written_found_renewed_and_removed(name, place, state, tmp_path):
    settings, file = place(name)
    to_install(settings, file, settings.entries(START, 600)).write(state)
    found, mistakes = settings.found_in([file])
    assert not mistakes
    host = host_named(name)
    assert [one.event for one in found] == [*host.stops, *host.starts]
    assert [one.timeout for one in found if one.event in host.stops] == [600] * len(host.stops)
    lines = settings_text(file).split("\n")
    for one in found:
        assert one.is_hook
        assert lines[one.line - 1][one.column - 1 :].startswith(json.dumps(one.event))
        assert one.command.startswith(f"{START} hook --host {name} --timeout ")
    again = to_install(settings, file, settings.entries(START, 600))
    assert again.is_empty
    to_install(settings, file, settings.entries("", 60)).write(state)
    assert {one.timeout for one in settings.found_in([file])[0]} == {60, 30}
    to_uninstall(settings, file, state).write(state)
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@every_plugin
def test_a_plugin_whose_backups_are_lost_is_removed_all_the_same(name, place, state, tmp_path):
    settings, file = place(name)
    to_install(settings, file, settings.entries(START, 600)).write(state)
    shutil.rmtree(tmp_path / "state" / "backups")
    assert to_uninstall(settings, file, state).after is None


@every_plugin
def test_a_plugin_that_somebody_edited_is_kept(name, place, state, tmp_path):
    settings, file = place(name)
    to_install(settings, file, settings.entries(START, 600)).write(state)
    with open(file.path, "a", encoding="utf-8") as plugin:
        plugin.write("// mine\n")
    assert settings.found_in([file])[0]  # it is registered, as it stands
    for change in (
        lambda: to_install(settings, file, settings.entries(START, 60)),
        lambda: to_uninstall(settings, file, state),
    ):
        with pytest.raises(CannotInstall, match="it was edited since notyet wrote it"):
            change()


@every_plugin
def test_a_file_of_the_same_name_that_is_not_ours_is_kept(name, place, state, tmp_path):
    settings, file = place(name)
    path = tmp_path / file.path
    path.parent.mkdir(parents=True)
    for text in ("export const Mine = 1\n", "// notyet plugin of mine\nconst HOOKS = {]\n"):
        path.write_text(text)
        assert settings.found_in([file]) == ([], [])
        assert to_uninstall(settings, file, state).is_empty
        with pytest.raises(CannotInstall, match="it was not written by notyet"):
            to_install(settings, file, settings.entries(START, 60))
    path.write_text("\n")
    assert not to_install(settings, file, settings.entries(START, 60)).is_empty


@every_plugin
def test_a_command_stands_in_the_plugin_whatever_characters_it_has(name, place):
    settings, file = place(name)
    odd = '/opt/it\'s \\ "odd"/é/notyet'
    entries = settings.entries(odd, 60)
    document = read_plugin(settings.text_with("", file, entries))
    for entry in entries:
        assert document.value["hooks"][entry.event][0]["command"] == entry.command


@pytest.mark.skipif(not shutil.which("node"), reason="node, which knows the syntax, is missing")
def test_the_plugin_of_opencode_is_javascript(place, tmp_path):
    settings, file = place("opencode")
    code = tmp_path / "plugin.mjs"
    code.write_text(settings.text_with("", file, settings.entries(START, 60)))
    done = subprocess.run(["node", "--check", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "environ", "path"),
    [
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/plugins/notyet.js"),
        ("pi", {"PI_CODING_AGENT_DIR": "/x"}, "/x/extensions/notyet.ts"),
    ],
)
def test_a_variable_names_the_folder_of_the_user(name, environ, path):
    assert settings_of(name).target("user", "/", environ).path == path
