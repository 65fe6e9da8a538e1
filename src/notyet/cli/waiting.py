"""One line on a terminal that says what is waited for, and goes when it is there."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager

from notyet.cli.style import Style
from notyet.cli.table import width
from notyet.cli.width import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WIPED = "\r\x1b[K"


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show the words on standard error while the block runs, if somebody looks at it."""
    is_seen = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    if is_seen:
        words = cut(words, width(sys.stderr) - 1)  # of two rows only one would go
        print(Style(sys.stderr).paint(words, "dim"), end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if is_seen:
            print(_WIPED, end="", file=sys.stderr, flush=True)
