"""The site of the documentation: every page is in its navigation, once."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ADDED = {"changelog.md", "contributing.md", "security.md"}  # by tools/docs_site.py


def pages(nav: list[dict[str, Any]]) -> Iterator[str]:
    for entry in nav:
        for inside in entry.values():
            if isinstance(inside, str):
                yield inside
            else:
                yield from pages(inside)


def test_every_page_is_in_the_navigation_of_the_site_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text())
    named = [*pages(site["project"]["nav"])]
    docs = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert len(named) == len(set(named))
    assert set(named) == docs | ADDED
