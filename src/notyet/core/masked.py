"""Failures that can be compared: two runs of the same failure differ in times and addresses."""

from __future__ import annotations

_UNITS = ("ns", "us", "µs", "ms", "s", "sec", "secs", "seconds", "second", "m", "min", "h")
_HEX = frozenset("0123456789abcdefABCDEF")
_SHORTEST_HEX = 7  # as git abbreviates


def masked(text: str) -> str:
    """Return the text with what differs between two runs of the same failure blotted out.

    Numbers, durations ("1.2s", "900 ms") and hexadecimal words (hashes, addresses) become "#".
    """
    out: list[str] = []
    at = 0
    while at < len(text):
        if not _is_word(text[at]):
            out.append(text[at])
            at += 1
            continue
        end = at
        while end < len(text) and (_is_word(text[end]) or _joins_digits(text, end)):
            end += 1
        out.append(_mask_word(text[at:end]))
        at = end
    return _without_units("".join(out))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _joins_digits(text: str, at: int) -> bool:
    """Tell whether a dot, comma or colon stands inside a number or a time."""
    return text[at] in ".,:" and text[at - 1].isdigit() and text[at + 1 : at + 2].isdigit()


def _mask_word(word: str) -> str:
    if not any(character.isdigit() for character in word):
        return word
    digits = word.removeprefix("0x").removeprefix("0X")
    if len(digits) >= _SHORTEST_HEX and _HEX.issuperset(digits):
        return "#"
    if digits != word and _HEX.issuperset(digits):
        return "#"
    out: list[str] = []
    for character in word:
        shown = "#" if character.isdigit() or character in ".,:" else character
        if shown != "#" or out[-1:] != ["#"]:
            out.append(shown)
    return "".join(out)


def _without_units(text: str) -> str:
    """Make "#s", "#ms" and "# seconds" alike: the unit grows with the number."""
    words = text.split(" ")
    out: list[str] = []
    for word in words:
        bare = word.strip("()[]{},.;:")
        if bare.startswith("#") and bare[1:] in _UNITS:
            out.append(word.replace(bare, "#", 1))
        elif bare in _UNITS and out and out[-1].endswith("#"):
            out[-1] += word.replace(bare, "", 1)
        else:
            out.append(word)
    return " ".join(out)
