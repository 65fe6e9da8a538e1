"""Every Python block of the documentation runs, page by page, in order."""

import re
import textwrap
from pathlib import Path

import pytest

from conftest import git

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/how-to/embed.md",
    "docs/how-to/mux.md",
    "docs/how-to/supervise.md",
]


def blocks(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    parts = text.split("```python\n")[1:]
    return [part.split("```")[0] for part in parts]


@pytest.mark.parametrize("where", ["a folder", "a git repository"])
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_run(page, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if where == "a git repository":
        git(tmp_path, "init", "--quiet")
    names = {"__name__": "example"}
    found = blocks(page)
    assert found
    for number, block in enumerate(found, 1):
        exec(compile(block, f"{page} block {number}", "exec"), names)


def test_the_example_of_the_package_runs():
    import notyet

    _, example = notyet.__doc__.split("\n\n", 1)
    names = {}
    exec(textwrap.dedent(example), names)
    assert names["decision"].outcome == "blocked"


def headings(page):
    """Return the places in a page that a link can name."""
    lines = page.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w -]", "", title).replace(" ", "-") for title in titles}


def test_links_between_pages_lead_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for page in pages:
        for part in page.read_text(encoding="utf-8").split("](")[1:]:
            target = part.split(")")[0]
            if not target.startswith("http"):
                file, _, place = target.partition("#")
                there = page.parent / file if file else page
                assert there.exists(), f"{page}: {target}"
                assert not place or place in headings(there), f"{page}: {target}"
