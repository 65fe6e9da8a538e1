"""`notyet log --stats --ledger`: what a team's gates and projects come to."""

import json
import time

import pytest

from conftest import git
from notyet import Allow, Block, Engine, Ledger
from notyet.cli.main import main
from notyet.ledger.past_stops import StopFilter
from notyet.ledger.stats import stats
from notyet.share.settings import Share
from notyet.share.ship import ship as copy
from notyet.share.team import Team
from notyet.share.team_stats import team_stats
from support import gate, stop


@pytest.fixture
def team(database):
    return Team(database.url)


@pytest.fixture
def share(database, ledger):
    """Copy the ledger, or another one, to the database."""

    def share(other=None, **fields):
        done = copy(other or ledger, Share(to=database.url, **fields))
        assert done.faults == ()

    return share


@pytest.fixture
def shown(database, capsys, monkeypatch):
    """Return what `notyet log --stats --ledger` prints; by default from the database."""
    monkeypatch.setenv("NOTYET_SHARE", database.url)

    def shown(*argv):
        capsys.readouterr()
        assert main(["log", "--stats", "--ledger", *argv]) == 0
        return capsys.readouterr().out

    return shown


def crash(*_):
    raise RuntimeError("broken")


@pytest.fixture
def mixed(ledger, fill):
    """A ledger with stops of every kind."""
    fill(4)
    fill(2, session_id="s2", host="codex")
    wait = lambda gates, **fields: Engine(gates, ledger=ledger, warn=lambda _: None).check_sync(
        stop(**fields)
    )
    for _ in range(5):
        wait([gate("never", Block("no"))], session_id="s3", turn_id="t")
    wait([gate("bad", crash, if_broken="allow")], session_id="s4")
    wait([gate("watch", Block("x"), observe=True)], session_id="s5")
    wait([gate("tests", Block("x"))], session_id="s6", turn_id="a")
    ledger.give_up(ledger.begin(stop(session_id="s6", turn_id="b")))
    return ledger


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"gate": "tests"},
        {"host": "codex"},
        {"session": "s"},
        {"session": "s3"},
        {"outcomes": ("blocked",)},
        {"outcomes": ("not_passed",)},
        {"outcomes": ("not_checked", "passed")},
        {"most": 5},
        {"since": 5.0},
        {"until": 5.0},
    ],
)
def test_the_figures_are_those_of_the_ledger(mixed, share, team, wish):
    share(mixed)
    wanted = StopFilter(**({"most": -1} | wish))
    found, here = team_stats(team, wanted).stats, stats(mixed, wanted)
    assert found.gates == here.gates
    assert (found.stops, found.is_all, found.outcomes) == (here.stops, here.is_all, here.outcomes)
    assert found.first_at == pytest.approx(here.first_at)
    assert [bucket.stops for bucket in found.over_time] == [one.stops for one in here.over_time]


def test_the_stops_of_two_machines_are_counted_together(fill, share, team, tmp_path):
    fill(2)
    share()
    other = Ledger(tmp_path / "other.db")
    answers = [Block("x"), Allow()]
    engine = Engine([gate("tests", lambda *_: answers.pop(0))], ledger=other, warn=lambda _: None)
    engine.check_sync(stop(turn_id="t0", last_message="a"))  # the same session and numbers
    share(other)
    found = team_stats(team, StopFilter(most=-1)).stats
    [tests] = [one for one in found.gates if one.gate == "tests"]
    assert (found.stops, tests.sent_back, tests.led_to_pass) == (5, 3, 2)


@pytest.fixture
def shop(git_project, monkeypatch):
    """A project with a remote, where we are."""
    monkeypatch.chdir(git_project)
    git(git_project, "remote", "add", "origin", "git@github.com:acme/shop.git")
    return str(git_project)


def test_projects_with_stops_that_did_not_pass_come_first(ledger, fill, share, shown, shop):
    fill(1, cwd="/calm")
    engine = Engine([gate("never", Block("no"))], ledger=ledger, warn=lambda _: None)
    for _ in range(5):
        engine.check_sync(stop(cwd=shop, session_id="s3", turn_id="t"))
    share()
    said = shown()
    head, first, second = said.split("PROJECT", 1)[1].splitlines()[:3]
    assert " ".join(head.split()) == "STOPS PASSED SENT BACK NOT PASSED NOT CHECKED LAST"
    assert first.split()[1:6] == ["(here)", "5", "0", "2", "3"]
    assert second.split()[1:5] == ["2", "1", "1", "0"]
    assert "7 stops: 3 blocked, 3 stuck, 1 passed" in said
    known = [json.loads(line) for line in shown("--json").splitlines()]
    assert [one["kind"] for one in known] == [*["gate"] * 3, "project", "project", "stops"]
    assert known[3]["kinds"]["not_passed"] == 3
    assert known[-1]["stops"] == 7


def test_with_words_projects_have_names(fill, share, shown, shop):
    fill(1, cwd=shop)
    share(words=True)
    assert "github.com/acme/shop" in shown()


def test_without_the_teams_tables_the_ledger_of_a_fleet_answers(database, shown):
    fleet = Ledger(database.url)
    engine = Engine([gate("tests", Allow())], ledger=fleet, warn=lambda _: None)
    engine.check_sync(stop(cwd="/somewhere"))
    fleet.close()
    said = shown(database.url)
    assert "1 stop: 1 passed" in said
    assert "PROJECT" not in said


def test_the_teams_tables_win_over_a_ledger_beside_them(fill, share, database, shown):
    fleet = Ledger(database.url)
    fleet.give_up(fleet.begin(stop()))
    fleet.close()
    fill(2)
    share()
    assert "4 stops: " in shown(database.url)


def test_a_database_with_neither_has_no_stops(shown):
    assert shown() == "no stops to count\n"


def test_a_role_that_only_ships_cannot_read_the_figures(fill, share, shown, database, capsys):
    fill(1)
    share()
    role = f"reader_{database.name}"
    database.run(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA team TO {role}")
    url = database.cluster.url(database=database.name, user=role)
    assert main(["log", "--stats", "--ledger", url]) == 1
    said = capsys.readouterr().err
    assert f"GRANT SELECT ON ALL TABLES IN SCHEMA team TO {role}" in said
    assert said.count("\n") == 1
    database.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA team TO {role}")
    assert "2 stops: " in shown(url)
    database.run(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_newer_tables_are_not_read(fill, share, database, capsys):
    fill(1)
    share()
    database.run("UPDATE team.version SET version = 99")
    assert main(["log", "--stats", "--ledger", database.url]) == 1
    assert "a newer notyet made its tables" in capsys.readouterr().err


def test_a_long_past_is_cut_and_that_is_said(fill, share, team, monkeypatch):
    fill(3)
    share()
    monkeypatch.setattr("notyet.share.team_stats.MOST_COUNTED", 4)
    found = team_stats(team, StopFilter(most=-1, since=time.time() - 3_600)).stats
    assert (found.stops, found.is_all) == (4, False)
