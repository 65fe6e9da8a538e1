"""Text that people and agents read: clean, bounded, and comparable."""

from __future__ import annotations

_UNITS = ("ns", "us", "µs", "ms", "s", "sec", "secs", "seconds", "second", "m", "min", "h")
_HEX = frozenset("0123456789abcdefABCDEF")
_SHORTEST_HEX = 7  # as git abbreviates
_LONGEST_LINE = 160
_KEPT = frozenset("\n\t")
_ESC = "\x1b"
_BEL = "\x07"


def clean(text: str) -> str:
    """Return the text without terminal escapes, control characters and lone surrogates."""
    if _ESC in text:
        text = _without_escapes(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isprintable():
        return text
    return "".join(c for c in text if c in _KEPT or not (_is_control(c) or _is_surrogate(c)))


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f"


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _without_escapes(text: str) -> str:
    kept: list[str] = []
    at = 0
    last_close = max(text.rfind(_BEL), text.rfind(_ESC + "\\"))
    while True:
        start = text.find(_ESC, at)
        if start < 0:
            kept.append(text[at:])
            return "".join(kept)
        kept.append(text[at:start])
        at = _end_of_escape(text, start, last_close)


def _end_of_escape(text: str, start: int, last_close: int) -> int:
    """Return where the escape sequence that starts here is over."""
    kind = text[start + 1 : start + 2]
    at = start + 2
    if kind == "[":  # a control sequence: parameters, then one final byte
        while at < len(text) and not "@" <= text[at] <= "~":
            at += 1
        return at + 1
    if kind in ("]", "P", "^", "_"):  # a string that BEL or ESC \ closes
        if last_close < at:
            return start + 1
        bell = text.find(_BEL, at)
        closing = text.find(_ESC + "\\", at)
        ends = [end for end in (bell + 1, closing + 2 if closing >= 0 else 0) if end > 0]
        return min(ends)
    while at <= len(text) and " " <= text[at - 1 : at] <= "/":  # e.g. the choice of a charset
        at += 1
    return at


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
    return bounded(lines[0], _LONGEST_LINE).replace("\n", " ") + more


def joined(parts: list[str]) -> str:
    """Join what several gates said, with a blank line between (A4)."""
    return "\n\n".join(part.strip() for part in parts)


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
