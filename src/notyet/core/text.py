"""What a text can hide: escapes that a terminal obeys, and characters that show nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ESC = "\x1b"
_BEL = "\x07"
# After an ESC: what begins a string for the terminal, and what stands before a final byte.
_STRINGS = frozenset("]PX^_")
_PARAMETERS = " !\"#$%&'()*+,-./0123456789:;<=>?"
_BETWEEN = " !\"#$%&'()*+,-./"
_HIDDEN: dict[int, str | None] = {}  # made at its first need


def hidden() -> dict[int, str | None]:
    """Return what `clean` replaces, and by what."""
    if not _HIDDEN:
        spans = (
            (0x00, 0x08),
            (0x0B, 0x1F),
            (0x7F, 0x9F),
            (0xAD, 0xAD),
            (0x61C, 0x61C),
            (0x115F, 0x1160),
            (0x180E, 0x180E),
            (0x200B, 0x200F),
            (0x202A, 0x202E),
            (0x2060, 0x2069),
            (0xD800, 0xDFFF),
            (0x3164, 0x3164),
            (0xFEFF, 0xFEFF),
            (0xFFF9, 0xFFFB),
            (0xE0000, 0xE007F),
        )
        for first, last in spans:
            _HIDDEN.update(dict.fromkeys(range(first, last + 1)))
        _HIDDEN.update(dict.fromkeys((0x2028, 0x2029), "\n"))  # which part lines and paragraphs
    return _HIDDEN


def without_escapes(text: str) -> str:
    """Return a text without what a terminal obeys instead of showing it."""
    # Each part is looked at once, so that the whole costs no more than its length.
    first, *parts = text.split(_ESC)
    kept = [first]
    for part, following in zip(parts, (*parts[1:], ""), strict=True):
        if part:
            kept.append(_after_escape(part, following))
    return "".join(kept)


def _after_escape(part: str, following: str) -> str:
    """Return what is left of the text after an ESC, up to the next ESC and what follows that."""
    if part[0] in _STRINGS:  # closed by BEL, or ESC and a backslash; never closed, it is text
        _, bell, rest = part.partition(_BEL)
        if bell:
            return rest
        return "" if following.startswith("\\") else part
    if part[0] == "[":  # a control sequence: parameters, then one final byte
        rest, lowest = part[1:].lstrip(_PARAMETERS), "@"
    else:  # e.g. the choice of a charset
        rest, lowest = part.lstrip(_BETWEEN), "0"
    return rest[1:] if lowest <= rest[:1] <= "~" else rest


_LONGEST_LINE = 160


def clean(text: str) -> str:
    """Return the text without terminal escapes, and without characters that show nothing.

    Those are control characters, lone surrogates, zero-width ones, and those that turn the
    direction of what follows: with them a text reads differently from what it says.
    """
    if _ESC in text:
        text = without_escapes(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isprintable() or (text.isascii() and text.replace("\n", "").isprintable()):
        return text
    return text.translate(hidden())


def bounded(text: str, limit: int) -> str:
    """Return at most `limit` characters: a third from the head, the rest from the tail."""
    if len(text) <= limit:
        return text
    mark = f"\n... {len(text) - limit} characters left out ...\n"
    room = limit - len(mark)
    if room <= 0:
        return text[: max(0, limit)]
    head = room // 3
    return text[:head] + mark + text[len(text) - (room - head) :]


# How runners mark that they did not keep all of an output; one on another machine counts nothing.
LEFT_OUT = " bytes) left out ..."
LEFT_OUT_THERE = "... more was printed here, and left out ..."


def lines_of(kept: Sequence[str]) -> int:
    """Return how many lines of an output these are, with those that were not kept.

    The mark of a runner stands within a line, which it parts into two.
    """
    count = len(kept)
    for line in kept:
        if line.endswith(LEFT_OUT):
            number = line.split()[1]
            count += int(number) - 2 if number.isdecimal() else 0
    return count


def shortened(text: str, most: int) -> str:
    """Return the beginning of a text in at most so many bytes of UTF-8."""
    content = text.encode("utf-8", "replace")
    if len(content) <= most:
        return text
    return content[: max(0, most - 3)].decode("utf-8", "ignore") + "..."[: max(0, most)]


def first_line(text: str) -> str:
    """Return the first line of a text, bounded, and whether there is more."""
    lines = text.strip().splitlines() or [""]
    more = " ..." if len(lines) > 1 else ""
    return shortened(lines[0], _LONGEST_LINE) + more


def listed(names: Sequence[str], most: int = 3) -> str:
    """Return some names with commas between, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def visible(text: str) -> str:
    """Return a text in which nothing can hide: a terminal obeys escapes instead of showing them."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def joined(parts: list[str]) -> str:
    """Join what several gates said, with a blank line between (A4)."""
    return "\n\n".join(part.strip() for part in parts)


_UNITS = ("ns", "us", "µs", "ms", "s", "sec", "secs", "seconds", "second", "m", "min", "h")
_HEX = frozenset("0123456789abcdefABCDEF")
_SHORTEST_HEX = 7  # as git abbreviates


def masked(text: str) -> str:
    """Return a failure's text with what differs between two runs of it masked.

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
    """Return True if a dot, comma or colon stands inside a number or a time."""
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
