"""The plugins are what `tools/plugins.py` writes, and what they say is true."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from notyet.cli.main import main
from notyet.install.notyet_line import notyet_line

ROOT = Path(__file__).resolve().parents[2]
PLACES = (".claude-plugin", "plugins")
HOOKS = ("notyet", "gemini")


def generator(root, *argv):
    """Run the generator of a checkout; return its exit code and what it printed."""
    line = [sys.executable, str(root / "tools" / "plugins.py"), *argv]
    done = subprocess.run(line, capture_output=True, text=True)
    assert not done.stderr
    return done.returncode, done.stdout


def test_the_files_are_what_the_generator_writes(tmp_path):
    assert generator(ROOT) == (0, "")
    for name in PLACES:
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "plugins.py", tmp_path / "tools")
    changed = tmp_path / "plugins" / "notyet" / "commands" / "gates.md"
    changed.write_text("mine")
    (tmp_path / "plugins" / "more.md").write_text("more")
    code, said = generator(tmp_path)
    assert code == 1
    assert [line.split()[0] for line in said.splitlines()] == [
        "plugins/more.md",
        "plugins/notyet/commands/gates.md",
    ]
    assert generator(tmp_path, "--write") == (0, "")
    assert generator(tmp_path) == (0, "")
    assert changed.read_text() == (ROOT / "plugins/notyet/commands/gates.md").read_text()


@pytest.mark.parametrize("name", HOOKS)
def test_a_host_waits_as_long_as_the_hook_counts_on(name):
    """Qwen Code takes timeouts of 1000 and more for milliseconds, Gemini CLI all of them."""
    hooks = json.loads((ROOT / "plugins" / name / "hooks" / "hooks.json").read_text())["hooks"]
    entries = [entry for (group,) in hooks.values() for entry in group["hooks"]]
    for entry in entries:
        line = notyet_line(entry["command"])
        assert (line.via, line.host) == ("plugin", "")
        unit = 1000 if name == "gemini" else 1
        assert entry["timeout"] == line.timeout * unit
        assert name == "gemini" or entry["timeout"] < 1000


@pytest.mark.parametrize("name", HOOKS)
def test_the_configuration_that_the_skill_teaches_is_valid(name, tmp_path, monkeypatch, capsys):
    skill = (ROOT / "plugins" / name / "skills" / "notyet" / "SKILL.md").read_text()
    (toml,) = re.findall(r"```toml\n(.*?)```", skill, re.DOTALL)
    (tmp_path / "notyet.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)
    assert main(["validate"]) == 0
    said = re.findall(r"^notyet\.toml:\d+.*", capsys.readouterr().out, re.MULTILINE)
    assert [line for line in said if "there is no program" not in line] == []


def test_the_skill_names_commands_that_exist(capsys):
    skill = (ROOT / "plugins" / "notyet" / "skills" / "notyet" / "SKILL.md").read_text()
    names = set(re.findall(r"`notyet ([a-z]+)", skill))
    assert {"check", "status", "validate"} <= names
    for name in names:
        with pytest.raises(SystemExit) as leaving:
            main([name, "--help"])
        assert leaving.value.code == 0
        assert name in capsys.readouterr().out
