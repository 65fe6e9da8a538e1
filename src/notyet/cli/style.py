"""Colour on a terminal, plain text everywhere else."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Style:
    """Paints words for one stream, if that stream shows colours and nobody minds."""

    def __init__(self, stream: TextIO) -> None:
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self._colours = stream.isatty() and not plain

    def paint(self, text: str, *names: str) -> str:
        """Return the text in these colours."""
        if not self._colours:
            return text
        codes = ";".join(_CODES[name] for name in names)
        return f"\x1b[{codes}m{text}\x1b[0m"
