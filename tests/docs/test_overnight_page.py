"""The page about agents that run overnight says what is so."""

import re
from pathlib import Path

import pytest

from hook_runs import ask, new_project, payload, trust
from notyet.cli.main import main, parsed
from notyet.config.compile import compile_text
from notyet.core.verdict import GROUPS, OUTCOMES, group_of

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "overnight.md").read_text()
(OBSERVER,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
FAILING = '[limits]\nmax_blocks = 0\n[gates.g]\nrun = "exit 1"\nwhen = "always"\n'


@pytest.fixture
def posted(tmp_path, monkeypatch):
    """The user's own file as on the page, with a curl that keeps what it is to post."""
    programs, config = tmp_path / "bin", tmp_path / "config" / "notyet"
    for folder in (programs, config):
        folder.mkdir(parents=True)
    (programs / "curl").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/posted\n')
    (programs / "curl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("NTFY_TOPIC", "t")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (config / "notyet.toml").write_text(OBSERVER)
    trust(config / "notyet.toml")
    return tmp_path / "posted"


@pytest.mark.rule("N3")
def test_the_observer_posts_the_line_about_what_did_not_pass_and_nothing_else(tmp_path, posted):
    folder = new_project(tmp_path / "p", FAILING)
    ask(payload("claude", folder))
    (line,) = posted.read_text().splitlines()
    assert "-d notyet: NOT PASSED: g still failing; " in line
    assert line.endswith("(notyet log 1) https://ntfy.sh/t")
    new_project(tmp_path / "q")
    ask(payload("claude", tmp_path / "q"))
    assert len(posted.read_text().splitlines()) == 1


@pytest.mark.rule("N3")
def test_the_observer_posts_that_a_project_is_not_trusted(tmp_path, posted):
    folder = new_project(tmp_path / "p", FAILING, trusted=False)
    ask(payload("claude", folder))
    assert f"NOT CHECKED: {folder}/notyet.toml is not trusted" in posted.read_text()


def test_the_groups_are_those_on_the_page():
    assert compile_text(OBSERVER, "/notyet.toml").mistakes == ()
    named = re.search(r"`not_passed` stands for (.*?); `not_checked` for (.*?)\.", PAGE, re.DOTALL)
    for at, group in enumerate(GROUPS):
        members = {name for name in OUTCOMES if group_of(name, "unchanged") == group}
        assert set(re.findall(r"`(\w+)`", named[at + 1])) == members


def test_every_command_about_the_log_runs(capsys, tmp_path):
    folder = new_project(tmp_path / "p", FAILING)
    ask(payload("claude", folder))
    lines = re.findall(r"^(notyet log.*)$", PAGE, re.MULTILINE)
    assert len(lines) == 3
    for line in lines[:2]:
        assert main(line.split()[1:]) == 0
    assert "capped" in capsys.readouterr().out
    assert parsed(lines[2].split()[1:]).id == 41
