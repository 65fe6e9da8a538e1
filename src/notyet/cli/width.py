"""How wide a text is on a terminal, where some letters take two columns and some take none."""

from __future__ import annotations


def columns_of(text: str) -> int:
    """Return how many columns a text takes; it is on one line, and has no escapes."""
    return len(text) if text.isascii() else sum(_column(letter) for letter in text)


def padded(text: str, columns: int) -> str:
    """Return a text with blanks behind it, so that it takes so many columns."""
    return text + " " * (columns - columns_of(text))


def cut(text: str, most: int) -> str:
    """Return what of a text fits into so many columns."""
    if text.isascii():
        return text[: max(0, most)]
    for at, letter in enumerate(text):
        most -= _column(letter)
        if most < 0:
            return text[:at]
    return text


def _column(letter: str) -> int:
    # Not at the top: a stop needs none of this, and nor does who has only plain letters.
    from unicodedata import category, east_asian_width

    if category(letter) in {"Mn", "Me", "Cf"}:  # it stands on, or joins, the one before
        return 0
    return 2 if east_asian_width(letter) in {"W", "F"} else 1
