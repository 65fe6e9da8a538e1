"""The pictures in the documentation are of the screens as they are now.

A screen is compared with its picture by size, and with its outline (headings, heads of tables and
how many rows, fields and buttons) by every line: letters and times differ between two machines.
`make record` takes both anew; `PICTURES=write pytest tests/browser/test_pictures.py` nothing else.
"""

import io
import os
from pathlib import Path

import pytest

OUTLINES = Path(__file__).parent / "outlines"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
IS_WRITTEN = os.environ.get("PICTURES") == "write"
WIDTH, MOST_HEIGHT = 1280, 1100
MOST_BYTES = 150_000
TOLERANCE = 0.15  # of the height: fonts differ
COLOURS = 256
SCREENS = {
    "now": "/",
    "stops": "/stops",
    "stop": "/stops/4",
    "session": "/session?host=claude&id=4a232a7e",
    "tasks": "/tasks",
    "gates": "/gates",
    "setup": "/setup",
}
DARK = "now"
# What is there once a screen has come to rest.
SETTLED = {"setup": ".verdict", "now": "canvas"}
_OUTLINE = """
() => {
  const lines = [];
  const text = (node) => {
    const copy = node.cloneNode(true);
    copy.querySelectorAll("small").forEach((part) => part.remove()); // where ids and numbers are
    return copy.textContent.replace(/\\s+/g, " ").replace(/[0-9]+/g, "N").trim();
  };
  const known = "h1, h2, h3, table:has(thead), ul, ol, label, button, summary, [role=img]";
  for (const node of document.querySelectorAll(known)) {
    if (!node.checkVisibility()) continue;
    const kind = node.tagName.toLowerCase();
    if (kind === "table") {
      const heads = [...node.tHead.rows[0].cells].map(text).join(" | ");
      lines.push(`table ${heads} (${node.tBodies[0].rows.length} rows)`);
    } else if (kind === "ol" || kind === "ul") lines.push(`list (${node.children.length} items)`);
    else if (kind === "label") lines.push(`field ${text(node.querySelector("span"))}`);
    else if (node.getAttribute("role") === "img") lines.push("picture");
    else if (kind !== "summary") lines.push(`${kind} ${text(node)}`);
    else if (!lines.at(-1).startsWith("summary")) lines.push("summary");
  }
  return lines.join("\\n") + "\\n";
}
"""


_HEIGHT = "Math.ceil(document.getElementById('main').getBoundingClientRect().bottom + scrollY)"
# The folder of a test says nothing to a reader.
_RENAME = """
([folder, name]) => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data.replaceAll(folder, name);
}
"""


@pytest.fixture
def check(filled):
    """Compare what a tab shows with the picture and the outline of a name, or write them."""

    def check(tab, name, *, has_outline=True):
        tab.wait_for_selector(SETTLED.get(name.removesuffix("-dark"), "h1"), state="attached")
        if name != "saved":
            tab.wait_for_selector("#connection.live")
        shown = tab.evaluate(_OUTLINE)
        tab.evaluate(_RENAME, [str(filled.folder), "/home/anna"])
        height = min(tab.evaluate(_HEIGHT), MOST_HEIGHT)
        tab.set_viewport_size({"width": WIDTH, "height": height})
        picture, outline = PICTURES / f"{name}.png", OUTLINES / f"{name}.txt"
        if IS_WRITTEN:
            PICTURES.mkdir(exist_ok=True)
            OUTLINES.mkdir(exist_ok=True)
            picture.write_bytes(shrunk(tab.screenshot()))
            if has_outline:
                outline.write_text(shown, encoding="utf-8")
        if has_outline:
            assert shown == outline.read_text(encoding="utf-8")
        content = picture.read_bytes()
        assert len(content) < MOST_BYTES
        assert image_of(content).width == WIDTH
        assert image_of(content).height == pytest.approx(height, rel=TOLERANCE)

    return check


def image_of(content):
    from PIL import Image  # in requirements/browser.txt

    return Image.open(io.BytesIO(content))


def shrunk(content):
    """Return a picture with few colours, which is all that a screen has."""
    from PIL.Image import Dither, Quantize

    smaller = io.BytesIO()
    drawn = image_of(content).convert("RGB")
    # The other methods mix colours that cover little, such as those of words.
    few = drawn.quantize(COLOURS, method=Quantize.MAXCOVERAGE, dither=Dither.NONE)
    few.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_on_its_picture(filled_page, tab, check, name):
    filled_page.open(tab, SCREENS[name])
    check(tab, name)


def test_a_task_is_as_on_its_picture(filled_page, filled, tab, check):
    ((task,),) = filled.rows("SELECT id FROM tasks WHERE ended_at IS NULL")
    filled_page.open(tab, f"/tasks/{task}")
    check(tab, "task")


def test_a_fleet_is_as_on_its_picture(fleet_page, tab, check):
    fleet_page.open(tab, "/fleet")
    check(tab, "fleet")


def test_the_dark_screen_is_as_on_its_picture(filled_page, new_tab, check):
    tab = filled_page.open(new_tab(dark=True), SCREENS[DARK])
    check(tab, f"{DARK}-dark", has_outline=False)


def test_a_saved_page_is_as_on_its_picture(saved, tab, check):
    tab.goto(saved.as_uri())
    check(tab, "saved")


def test_every_picture_is_of_a_screen():
    names = {*SCREENS, "task", "fleet", f"{DARK}-dark", "saved"}
    assert {path.stem for path in PICTURES.glob("*.png")} == names
    assert {path.stem for path in OUTLINES.iterdir()} == names - {f"{DARK}-dark"}
