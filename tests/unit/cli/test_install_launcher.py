"""The launcher and its pack with `install` and `uninstall`: written, renewed, and removed."""

import json
import os
import subprocess
import sys

import pytest

from hook_runs import FAILING, clean_environ, new_project, payload
from notyet.cli.main import main
from notyet.install.launcher import is_laid, own_folder, own_root
from notyet.install.notyet_line import notyet_line


@pytest.fixture
def data(place):
    return own_folder(os.environ, own_root())


def line_of(path, event="Stop"):
    return json.loads(path.read_text())["hooks"][event][0]["hooks"][0]["command"]


def test_installing_lays_the_launcher_that_it_registers(place, home, data):
    assert main(["install", "claude", "--yes"]) == 0
    line = line_of(home / ".claude/settings.json")
    assert notyet_line(line).launcher == f"{data}/launch.py"
    assert notyet_line(line).program == sys.executable
    assert is_laid(data, own_root())
    project = new_project(place / "p", FAILING)
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        input=json.dumps(payload("claude", project)).encode(),
        capture_output=True,
        env=clean_environ(),
        timeout=60,
    )
    assert json.loads(done.stdout)["decision"] == "block"


def test_the_next_host_uses_the_launcher_that_is_there(place, home, data, capsys):
    def written():
        return {name: os.stat(os.path.join(data, name)).st_ino for name in os.listdir(data)}

    assert main(["install", "claude", "--yes"]) == 0
    before = written()
    assert main(["install", "qwen", "--yes"]) == 0
    assert (home / ".qwen" / "settings.json").exists()
    assert written() == before
    os.unlink(os.path.join(data, "launch.py"))
    assert main(["install", "gemini", "--yes"]) == 0
    assert is_laid(data, own_root())


def test_what_everybody_shares_names_no_launcher(place, data):
    assert main(["install", "claude", "--project", "--yes"]) == 0
    assert "launch.py" not in (place / ".claude/settings.json").read_text()
    assert not os.path.exists(data)


def test_a_second_installation_renews_what_is_out_of_date_and_says_so(place, data, capsys):
    main(["install", "claude", "--yes"])
    capsys.readouterr()
    for name in os.listdir(data):
        os.unlink(os.path.join(data, name))
        assert main(["install", "claude", "--dry-run"]) == 0
        assert not is_laid(data, own_root())
        assert "renewed" not in capsys.readouterr().out
        assert main(["install", "claude", "--yes"]) == 0
        assert is_laid(data, own_root())
        said = capsys.readouterr().out
        assert "already installed" in said
        assert "renewed the launcher" in said
    main(["install", "claude", "--yes"])
    assert "renewed" not in capsys.readouterr().out


def test_a_folder_that_cannot_be_written_leaves_the_settings_as_they_were(
    place, home, data, monkeypatch, capsys
):
    os.makedirs(os.path.dirname(data), exist_ok=True)

    def refuse(path, *_):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("notyet.install.launcher.write_private_bytes", refuse)
    assert main(["install", "claude", "--yes"]) == 1
    assert "Permission denied; nothing was changed there" in capsys.readouterr().err
    assert not (home / ".claude/settings.json").exists()


def test_the_launcher_goes_with_the_last_registration_only(place, data, monkeypatch):
    main(["install", "claude", "--yes"])
    main(["install", "codex", "--yes"])
    other = place.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    main(["install", "claude", "--local", "--yes"])
    monkeypatch.chdir(place)
    for host in ("claude", "codex"):
        assert main(["uninstall", host, "--yes"]) == 0
        assert os.path.exists(f"{data}/launch.py")
    monkeypatch.chdir(other)
    assert main(["uninstall", "claude", "--dry-run"]) == 0
    assert os.path.exists(f"{data}/launch.py")
    assert main(["uninstall", "claude", "--yes"]) == 0
    assert not os.path.exists(os.path.dirname(data))
