"""The page about `notyet page` says what is so."""

import re
import shlex
from pathlib import Path

from notyet.cli.main import parsed
from notyet.web.app import SCREENS
from notyet.web.saved import MOST_SAVED, SPAN

FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (FOLDER / "page.md").read_text()


def test_every_command_on_the_page_parses():
    found = re.findall(r"`(notyet page[^`]*)`", PAGE) + re.findall(
        r"(?:^\$ |run: |box )(notyet page.*)$", PAGE, re.MULTILINE
    )
    assert len(found) >= 4
    for line in found:
        assert parsed(shlex.split(line)[1:]).command == "page"
    for option in re.findall(r"`(--[a-z-]+)[^`]*`", PAGE):
        assert option in Path(FOLDER / "../reference/cli.md").read_text()


def test_every_screen_is_on_the_page():
    rows = re.findall(r"^\| ([A-Z]\w+) \|", PAGE, re.MULTILINE)
    assert {screen.name for screen in SCREENS if screen.name} <= set(rows)


def test_every_address_on_the_page_leads_to_a_screen():
    known = {path for screen in SCREENS for path in (screen.path, screen.as_json)}
    found = re.findall(r"`(/[a-z.]+)(?:\?[^`]*)?`", PAGE)
    assert len(found) > 3
    assert set(found) <= known


def test_every_picture_is_there_and_described():
    pictures = re.findall(r"!\[(.*)\]\((.*)\)", PAGE)
    taken = {path.name for path in (FOLDER / ".." / "pictures").iterdir()}
    assert {Path(path).name for _, path in pictures} == taken
    for words, path in pictures:
        assert words
        assert (FOLDER / path).is_file()


def test_what_a_file_holds_is_as_on_the_page():
    words = " ".join(PAGE.split())
    assert f"the newest {MOST_SAVED} stops of the last {SPAN.removesuffix('d')} days" in words
