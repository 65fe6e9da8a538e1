"""`notyet hosts`: one table, for people and for programs, and the same in the documentation."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from notyet.cli import hosts, terminal
from notyet.cli.main import main
from notyet.hosts import all_hosts
from notyet.hosts.acp_agents import ACP_AGENTS
from notyet.hosts.known_programs import OTHERS, headless
from notyet.install.settings import installable

ROOT = Path(__file__).parents[3]
ROWS = hosts.host_rows()
KEYS = """
name title proof tested tested_on derived_from main subagents cap cap_variable settings
installed_as cannot instead acp installed unreadable
"""

pytestmark = pytest.mark.usefixtures("place")


def test_every_host_that_can_be_installed_has_a_row_and_every_proven_one_its_day():
    held = [row for row in ROWS if not row.cannot]
    for row in held:
        assert row.proof in {"proven", "source"}
        assert row.main != "no"
        assert bool(row.derived_from) == (row.proof == "source"), row.name
        assert row.proof == "source" or (row.tested and row.tested_on), row.name
    assert [row.proof for row in ROWS] == sorted(
        (row.proof for row in ROWS), key=("proven", "source", "").index
    )
    assert {row.name for row in held} <= {host.name for host in all_hosts()}


def test_json_has_one_object_per_host_with_the_same_keys(capsys):
    assert main(["hosts", "--json"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["name"] for one in said] == [row.name for row in ROWS]
    assert {tuple(one) for one in said} == {tuple(KEYS.split())}


def test_every_agent_that_speaks_acp_is_listed_with_its_host(capsys):
    assert {row.name: row.acp["command"] for row in ROWS if row.acp} == {
        agent.host: agent.command for agent in ACP_AGENTS
    }
    assert main(["hosts"]) == 0
    shown = capsys.readouterr().out.partition("over ACP")[2].partition("cannot be sent back")[0]
    for agent in ACP_AGENTS:
        assert agent.tested in shown
        assert agent.command in shown


@pytest.mark.parametrize("columns", [64, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(columns, capsys, monkeypatch):
    monkeypatch.setattr(terminal, "terminal_size", lambda _stream: (columns, 50))
    monkeypatch.setattr(hosts, "width", lambda: columns)
    monkeypatch.setattr(terminal, "is_terminal", lambda _stream: True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["hosts"]) == 0
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= columns
    if columns > 64:
        assert "..." not in said
        for row in ROWS:
            assert f"  {row.name} " in said
    one_line = " ".join(said.split())
    for row in ROWS:
        assert columns == 64 or not row.cannot or row.cannot.split()[-1] in one_line


def test_what_is_not_a_terminal_gets_no_colours(capsys):
    assert main(["hosts"]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["install", "uninstall", "status"])
@pytest.mark.parametrize("row", [row for row in ROWS if row.cannot], ids=lambda row: row.name)
def test_a_host_that_cannot_be_held_is_refused_with_the_reason(command, row, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command, row.name])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert row.cannot in said
    assert f"`{row.instead}`" in said
    assert row.name not in installable()


def test_a_host_that_runs_anothers_hooks_names_that_one(capsys):
    (row,) = [row for row in ROWS if row.installed_as != row.name]
    with pytest.raises(SystemExit, match="2"):
        main(["install", row.name])
    said = capsys.readouterr().err
    assert f"{row.title} runs the hooks of " in said
    assert f"name {row.installed_as}, which is for both" in said
    assert row.settings


def test_install_says_what_is_unproven(capsys):
    assert main(["install", "cursor", "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "note: unproven: this follows the hook runner in @cursor/sdk 1.0.18; no test" in said
    assert main(["install", "claude", "--dry-run"]) == 0
    assert "unproven" not in capsys.readouterr().out


def test_with_is_named_where_a_host_has_a_command_line(monkeypatch):
    (runs,) = [host for host in all_hosts() if host.name == "claude"]
    assert hosts._instead(runs) == "notyet with claude"
    for host in OTHERS:
        assert not host.cannot or host.name not in headless() or "with" in hosts._instead(host)


def test_where_settings_are_is_said_shortly():
    def shown(**settings):
        made = hosts.HostRow(**vars(ROWS[0]) | {"settings": settings})
        return made.shown_settings

    assert shown(user=".x/a.json", project=".x/a.json", local=".x/b.json") == "~/.x/a.json"
    assert shown(user=".x/a.json", project=".y/a.json") == "~/.x/a.json; project: .y/a.json"
    assert shown(user=".x/a.json") == "~/.x/a.json only"
    assert shown(project=".y/a.json") == "project: .y/a.json"
    assert shown() == "see its page"


def test_the_tables_in_the_documentation_are_fresh():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "host_table.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
