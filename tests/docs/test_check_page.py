"""The page about `notyet check` shows what it really prints."""

import re
from pathlib import Path

import pages

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "check.md"


def timeless(lines):
    return [re.sub(r"\d+\.\d s", "N s", line) for line in lines]


def test_the_page_shows_what_is_printed(tmp_path):
    before = "touch work.txt; notyet trust --yes > /dev/null"
    assert pages.differing(PAGE, tmp_path, before, timeless) == []
