"""The tables on a terminal, the JSON of a run, the page and its charts."""

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from bench.document import from_json, to_json
from bench.goals import GOALS
from bench.tables import results_of, shown, summary

from bench import page, words
from notyet.cli.terminal import Style

ROOT = Path(__file__).parents[2]


def test_a_table_has_floor_figure_ratio_spread_goal_and_verdict(small_run):
    text = shown(small_run.tables[0], Style(io.StringIO()))
    (line,) = [line for line in text.splitlines() if line.startswith("  one gate ")]
    cells = re.split(r"\s{2,}", line.strip())
    assert cells == ["one gate", "bare", "8 ms", "15 ms", "1.88x", "13%", "<= 2x", "reached"]


def test_a_curve_says_its_shape_and_what_its_floor_does(small_run):
    text = shown(small_run.tables[0], Style(io.StringIO()))
    assert "linear: 2.25x at 100 gates, 101 us for each" in text
    assert "spawned bare itself grows by 85.4 us for each, 10.00x in all" in text
    assert "goal: linear or better; reached" in text


def test_what_was_not_measured_is_said(small_run):
    assert "hk: not measured, HK_BIN is not set" in shown(small_run.tables[0], Style(io.StringIO()))
    assert "not measured: oh no" in shown(small_run.tables[1], Style(io.StringIO()))
    said = summary(small_run, Style(io.StringIO()))
    assert said.splitlines() == [
        "3 of 4 promised goals reached",
        "missed: hook.nothing",
        "not measured: Looking back",
    ]


def test_a_run_survives_its_json(small_run):
    text = json.dumps(to_json(small_run))
    assert from_json(json.loads(text)) == small_run
    again = results_of(from_json(json.loads(text)))[0]
    assert words.spread_words(again.ours_us) == "13%"


def test_the_page_shows_every_promise_and_what_came_of_it(small_run):
    text = page.rendered(small_run)[page.PAGE]
    assert all(f"| {goal.words} |" in text for goal in GOALS.values())
    assert f"| {GOALS['hook.one'].words} | <= 2x | 1.88x | reached |" in text
    assert f"| {GOALS['hook.nothing'].words} | <= 1.1x | 1.50x | **MISSED** |" in text
    assert f"**Missed: {GOALS['hook.nothing'].words}** (1.50x; goal <= 1.1x)" in text
    assert f"Of {len(GOALS)} promises this run reached 3 and missed 1" in text
    assert "{{" not in text


def test_charts_are_pictures_that_can_be_read(small_run):
    files = page.rendered(small_run)
    drawn = {path.name: text for path, text in files.items() if path.suffix == ".svg"}
    assert set(drawn) == {"hook.svg", "growth-gates.svg"}
    for text in drawn.values():
        root = ET.fromstring(text)  # noqa: S314  # our own
        assert root.find("{*}title").text
        width, height = float(root.get("width")), float(root.get("height"))
        for element in root.iter("{*}text"):
            assert 0 <= float(element.get("x")) <= width
            assert 0 <= float(element.get("y")) <= height
        assert "prefers-color-scheme: dark" in text
    assert drawn["growth-gates.svg"].count("<circle") == 6
    assert drawn["hook.svg"].count('class="ours"') == 2
