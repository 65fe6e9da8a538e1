"""The page about `notyet replay` shows what it really prints."""

import re
from pathlib import Path

import stories

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


def fenced(kind):
    return [part.split("```")[0] for part in PAGE.read_text().split(f"```{kind}\n")[1:]]


def shown():
    """Return the commands of the page, each with what it is said to print."""
    steps = []
    for line in "".join(fenced("console")).splitlines():
        if line.startswith("$ "):
            steps.append(stories.Step(0, [line[2:]]))
        else:
            steps[-1].expected.append(line)
    return steps


def timeless(lines):
    return [re.sub(r"\d\d:\d\d:\d\d", "HH:MM:SS", line) for line in lines]


def test_the_page_shows_what_is_printed(tmp_path):
    world = stories.World(tmp_path)
    (config,) = fenced("toml")
    (world.project / "notyet.toml").write_text(config)
    steps = [stories.Step(0, [STOPS]), *shown()]
    assert len(steps) > 5
    for step, lines in zip(steps, stories.told(steps, world), strict=True):
        assert timeless(lines) == timeless(step.expected), step.command
