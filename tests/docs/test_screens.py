"""The pictures of docs/screens and the outputs of the README show what notyet prints today."""

import html
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# What differs from run to run: ids, dates, times and how wide they make a column.
VARIES = (
    (re.compile(r"\bt[0-9a-z]{10}\b|\b[0-9a-f]{8,40}\b"), "ID"),
    (re.compile(r"\d+(?:[.:]\d+)*"), "0"),
    (re.compile(r"\s+"), ""),
)


@pytest.fixture(scope="module")
def picture():
    """The tool that draws."""
    for program in ("make", "git"):
        if shutil.which(program) is None:
            pytest.skip(f"the pictures need {program}")
    spec = importlib.util.spec_from_file_location("picture", ROOT / "tools" / "picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steady(text):
    """Return a text without what differs from run to run."""
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return text


def words(svg):
    """Return what a picture says, with the colour of each part."""
    parts = re.findall(r'<text class="notyet-(\w+)"[^>]*>(.*?)</text>', svg)
    return steady(" ".join(f"{colour}={html.unescape(text)}" for colour, text in parts))


def test_every_picture_is_what_a_run_shows(picture):
    drawn = picture.demo() | picture.screens()
    assert {path.name for path in picture.SCREENS.iterdir()} == set(drawn)
    for name, svg in drawn.items():
        kept = (picture.SCREENS / name).read_text(encoding="utf-8")
        assert words(kept) == words(svg), f"{name}; draw it anew with: make pictures"
        assert "http" not in re.sub(r'xmlns="[^"]*"|<!--.*?-->', "", kept), "it would be fetched"


def test_every_picture_is_on_a_page_and_described(picture):
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    text += README.read_text(encoding="utf-8")
    for path in picture.SCREENS.iterdir():
        assert f"screens/{path.name}" in text
    for described in re.findall(r"!\[(.*)\]\([./]*screens/", text):
        assert len(described.split()) > 3


def test_the_readme_shows_what_an_agent_reads(picture):
    text = README.read_text(encoding="utf-8")
    assert steady(picture.readme(text)) == steady(text), "make pictures"
    assert "FAILED tests (exit 1" in text


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
