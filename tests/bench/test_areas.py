"""Every area of the benchmark runs, and measures what was promised of it; how fast is not asked."""

import json

import pytest
from bench.areas import AREAS
from bench.goals import GOALS
from bench.measure import TINY
from bench.running import run_apart, run_within
from bench.words import key_of, verdict_of

from bench import homes

ELSEWHERE = {"growth.tasks": "supervisor"}


def area_of(key):
    return ELSEWHERE.get(key, key.partition(".")[0])


def test_every_promise_belongs_to_an_area():
    assert {area_of(key) for key in GOALS} <= {area.module for area in AREAS}


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.module)
def test_an_area_runs_and_measures_what_was_promised(area):
    table = run_apart(area, TINY)
    assert table.failure == ""
    assert table.results
    keys = {key_of(result) for result in table.results}
    assert keys >= {key for key in GOALS if area_of(key) == area.module}
    assert all(verdict_of(result) in {"", "reached", "MISSED"} for result in table.results)


def test_an_area_that_fails_says_why(tmp_path, capfd):
    path = tmp_path / "results.json"
    assert run_within("no_such_area", TINY, str(path)) == 0
    assert "No module named 'bench.no_such_area'" in path.read_text()
    assert "Traceback" in capfd.readouterr().err


def test_the_hook_is_started_as_install_wrote_it(tmp_path):
    home = homes.Home(tmp_path)
    settings = (tmp_path / ".claude" / "settings.json").read_text()
    assert json.dumps(home.line) in settings
    assert home.command[-5:] == ["hook", "--host", "claude", "--timeout", "1800"]
    place = home.project("one", f"[gates.g]\n{homes.ALWAYS}")
    assert home.last_stop(place) == ("passed", "allowed")
    assert home.last_stop(home.project("bare", "")) == ()
