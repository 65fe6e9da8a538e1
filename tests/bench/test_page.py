"""The page on performance is rendered from the run beside it, and that run measured everything."""

import json

import pytest
from bench.document import from_json
from bench.goals import GOALS
from bench.tables import results_of

from bench import page, words


@pytest.fixture
def run():
    return from_json(json.loads(page.RUN.read_text()))


def test_the_page_is_what_its_run_renders(run):
    files = page.rendered(run)
    assert {path: path.read_text() for path in files} == files, "python -m bench --render"
    assert set(page.CHARTS.glob("*.svg")) == set(files) - {page.PAGE}


def test_the_run_measured_every_promise(run):
    assert {words.key_of(result) for result in results_of(run)} >= set(GOALS)
    assert [table.area for table in run.tables if table.failure] == []
