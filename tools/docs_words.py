"""Counts the hand-written words of docs/: `python tools/docs_words.py` lists the pages by length.

Code blocks, and all that a program writes into docs/, do not count.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 50_000
# Pages that a program writes, but for the text of performance.md, which has a template.
GENERATED = re.compile(r"Generated (?:from|by)|performance/run\.json: change those")
WRITTEN = re.compile(
    r"<!-- ((?:recorded|generated)[^\n]*): begin -->.*?<!-- \1: end -->", re.DOTALL
)
CODE = re.compile(r"^( *)(`{3,})(?s:.*?)^\1\2 *$|^(?:    .*\n)+", re.MULTILINE)
WORD = re.compile(r"\S*\w\S*")


def main() -> int:
    """Print how many words each page has; return 1 if there are more than the limit in all."""
    counts = {str(page.relative_to(ROOT)): words(page.read_text("utf-8")) for page in pages()}
    for name, count in sorted(counts.items(), key=lambda item: item[1]):
        print(f"{count:6,}  {name}")
    total = sum(counts.values())
    print(f"{total:6,}  of at most {LIMIT:,}")
    return 1 if total > LIMIT else 0


def pages() -> list[Path]:
    """Return the files with hand-written text of the documentation."""
    files = sorted((ROOT / "docs").rglob("*.md"))
    own = [page for page in files if not GENERATED.search(page.read_text("utf-8")[:600])]
    return [*own, ROOT / "bench" / "performance.template.md"]


def words(text: str) -> int:
    """Return the number of words in a page that a person wrote as sentences, tables and titles."""
    return len(WORD.findall(CODE.sub("", WRITTEN.sub("", text))))


if __name__ == "__main__":
    sys.exit(main())
