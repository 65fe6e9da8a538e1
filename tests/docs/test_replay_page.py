"""The page about `notyet replay` shows what it really prints."""

import re
from pathlib import Path

import pages

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "replay.md"
STOPS = """\
notyet trust --yes > /dev/null
stop() {
  printf '{"hook_event_name": "Stop", "session_id": "%s", "cwd": "%s", "stop_hook_active": %s}' \
    "$1" "$PWD" "$2" | notyet hook --host claude > /dev/null 2>&1
}
touch lint-fails; stop s1 false; stop s1 true; stop s1 true
rm lint-fails; touch tests-fail; stop s2 false
rm tests-fail; stop s2 true"""


def timeless(lines):
    return [re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", line) for line in lines]


def test_the_page_shows_what_is_printed(tmp_path):
    assert pages.differing(PAGE, tmp_path, STOPS, timeless) == []
