"""Build the site of the documentation with Zensical, and check every link in it: `make docs-site`.

The site is built from a copy of docs/, to which what it links to outside of docs/ is added.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
SOURCE, SITE = ROOT / "build" / "site-source", ROOT / "build" / "site"
# Pages and files beside docs/, by their paths in the repository, with where the site has them.
BESIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "examples/fleet/compose.yaml": "examples/compose.yaml",
    "LICENSE": "license.txt",
    "README.md": "index.md",  # docs/index.md stands for it
}
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ZENSICAL = Path(sys.executable).parent / "zensical"


def main() -> int:
    """Build the site anew; exit 1 if the builder warns or a link leads nowhere."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    argv = [str(_ZENSICAL), "build", "--strict", "--clean"]
    done = subprocess.run(argv, cwd=ROOT, check=False)
    if done.returncode:
        return 1
    pages = {path: Page(path) for path in sorted(SITE.rglob("*.html"))}
    broken = [words for page in pages.values() for words in page.broken(pages)]
    print(*broken, f"{len(pages)} pages, {len(broken)} broken links", sep="\n")
    return int(bool(broken) or not pages)


def stage() -> None:
    """Copy docs/ and what it links to, so that every link leads to something in the site."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "docs", SOURCE)
    for name, there in BESIDE.items():
        if name != "README.md":
            (SOURCE / there).parent.mkdir(exist_ok=True)
            shutil.copyfile(ROOT / name, SOURCE / there)
    for path in SOURCE.rglob("*.md"):
        inside = path.relative_to(SOURCE).as_posix()
        origin = {there: name for name, there in BESIDE.items() if name != "README.md"}
        at = ROOT / origin.get(inside, f"docs/{inside}")
        text = path.read_text(encoding="utf-8")
        path.write_text(_LINK.sub(partial(_moved, at=at, path=path), text), encoding="utf-8")


def _moved(link: re.Match[str], *, at: Path, path: Path) -> str:
    """Return a link of a page, changed if it leads out of docs/ or the page was moved."""
    target, mark, anchor = link[1].partition("#")
    if not target or ":" in target:
        return link[0]
    found = (at.parent / target).resolve()
    if not found.is_relative_to(ROOT):
        return link[0]
    name = found.relative_to(ROOT).as_posix()
    there = SOURCE / BESIDE.get(name, name.removeprefix("docs/"))
    ups = len(path.parent.relative_to(SOURCE).parts)
    return f"]({'../' * ups}{there.relative_to(SOURCE).as_posix()}{mark}{anchor})"


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.anchors: set[str] = set()
        self._links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what this tag names and leads to."""
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in {"href", "src"} and value and tag != "base":
                self._links.append(value)

    def broken(self, pages: dict[Path, Page]) -> list[str]:
        """Return a line for each link that leads nowhere."""
        return [
            f"{self._path.relative_to(SITE)}: {link}"
            for link in dict.fromkeys(self._links)
            if not self._is_fine(link, pages)
        ]

    def _is_fine(self, link: str, pages: dict[Path, Page]) -> bool:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return True  # elsewhere
        folder = SITE if parts.path.startswith("/") else self._path.parent
        target = (folder / unquote(parts.path).lstrip("/")).resolve()
        target = target if parts.path else self._path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            return False
        return not parts.fragment or target not in pages or parts.fragment in pages[target].anchors


if __name__ == "__main__":
    sys.exit(main())
