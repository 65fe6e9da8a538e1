"""The page about a team's stops says what is so."""

import re
from pathlib import Path

import pytest

from notyet import Ledger
from notyet.cli.main import main, parsed
from notyet.config.compile import compile_text
from notyet.share import otel, team
from notyet.share.settings import Share
from notyet.share.ship import ship
from support import stop

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "share.md").read_text()


def blocks(kind):
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def users(monkeypatch, tmp_path):
    """The path of a user's own file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return str(tmp_path / "notyet" / "notyet.toml")


def test_the_files_are_right_in_a_users_own_place(users):
    for text in blocks("toml"):
        settings = compile_text(text, users)
        assert (settings.mistakes, settings.shares) == ((), True)


def test_the_commands_are_right():
    for line in re.findall(r"^\$ (?:\w+=\S+ )?notyet (.*)$", PAGE, re.MULTILINE):
        assert parsed(line.split()).command in {"ship", "log"}
    assert parsed(["ship", "--wait", "20s"]).wait == 20.0


def test_the_rights_are_those_that_the_command_prints(cluster, monkeypatch, capsys):
    cluster.psql("CREATE DATABASE share_page")
    monkeypatch.setenv("NOTYET_SHARE", cluster.url(database="share_page"))
    assert main(["ship", "--create"]) == 0
    assert capsys.readouterr().out in PAGE
    rights, questions = blocks("sql")
    assert team.grants("team", "shipper") in rights.replace(";\n", "; ")
    assert cluster.psql(rights, "share_page") == ""
    ledger = Ledger()
    ledger.give_up(ledger.begin(stop()))
    url = cluster.url(user="shipper", database="share_page")
    assert ship(ledger, Share(to=url)).counts == {"to": 1}
    ledger.close()
    assert cluster.psql(questions, "share_page") == ""
    cluster.psql("DROP DATABASE share_page; DROP ROLE shipper")


def columns(table):
    [row] = re.findall(rf"\| `team.{table}` \|.*\|(.*)\|", PAGE)
    return re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row))


def test_every_column_is_named():
    assert columns("stop") == ["origin", *team._STOP]
    assert columns("report") == ["origin", *team._REPORT]


def test_every_attribute_and_metric_is_named():
    source = Path(otel.__file__).read_text()
    names = set(re.findall(r'"((?:gen_ai|notyet)\.[a-z_.]+)"', source))
    shown = PAGE.replace("gen_ai.usage.*", "")
    assert {name for name in names if f"`{name}`" not in shown} == set()
