"""Pages that a reader works through begin with what he will have at their end.

Only the form is checked here: whether a page keeps its promise, its other tests and people see.
"""

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
FOLDERS = ("how-to", "gates", "coming-from")
PAGES = [DOCS / "tutorial.md", *sorted(page for name in FOLDERS for page in DOCS.glob(f"{name}/*"))]
MOST_WORDS = 60


def opening(text: str) -> str:
    """Return what stands between the title of a page and its next empty line."""
    title, paragraph, *_ = text.split("\n\n")
    assert title.startswith("# ")
    assert "\n" not in title
    return paragraph


def test_every_folder_has_pages():
    assert {page.parent.name for page in PAGES} == {"docs", *FOLDERS}
    assert {page.suffix for page in PAGES} == {".md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page_begins_with_what_its_reader_will_have(page):
    first = opening(page.read_text(encoding="utf-8"))
    assert first.startswith("By the end, ")
    assert len(first.split()) <= MOST_WORDS
