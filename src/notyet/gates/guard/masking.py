"""Source text with comments and strings blanked out, so that brackets and words can be trusted.

The masked text has the length of the original: a position means the same in both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = {
    "ruby": re.compile(r"""[#"']"""),
    "php": re.compile(r"""//|/\*|[#"']"""),
    "rust": re.compile(r"""//|/\*|["']"""),
    "javascript": re.compile(r"""//|/\*|["'`/]"""),
    "go": re.compile(r"""//|/\*|["'`]"""),
}
_OTHERS = re.compile(r"""//|/\*|["']""")
_STRING = {
    '"': re.compile(r'"(?:[^"\\\n]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\\n]|\\.)*+'", re.DOTALL),
    "`": re.compile(r"`[^`]*+`"),
}
_CHARACTER = re.compile(r"'(?:[^'\\\n]|\\[^\n]{1,10}?)'")  # in Rust `'a` is a lifetime
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*+\])++/[a-z]*+")
_BEFORE_REGEX = frozenset("(,=:[!&|?{};+-*%~^<>\n")
_WORD_BEFORE_REGEX = re.compile(r"(?:\b(?:return|typeof|case|of|in|await|void))$")
_TEMPLATE = re.compile(r"\\.|`|\$\{|[{}]", re.DOTALL)
_BRACKET = re.compile(r"[()\[\]{}]")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass
class Masked:
    """One source text with its comments and strings blanked out."""

    text: str  # the original
    masked: str
    strings: dict[int, int] = field(default_factory=dict)  # where a string begins and ends
    pairs: dict[int, int] = field(default_factory=dict)  # where a bracket opens and closes

    def line_of(self, position: int) -> int:
        """Return the number of the line at a position, from 1."""
        return self.text.count("\n", 0, position) + 1

    def without_comments(self) -> str:
        """Return the text with comments blanked out and strings kept."""
        kept: list[str] = []
        at = 0
        for start, end in self.strings.items():
            kept += [self.masked[at:start], self.text[start:end]]
            at = end
        return "".join((*kept, self.masked[at:]))


def mask(text: str, language: str) -> Masked:
    """Return a text with comments and strings replaced by spaces; line breaks stay."""
    token = _TOKEN.get(language, _OTHERS)
    kept: list[str] = []
    strings: dict[int, int] = {}
    at = 0
    while match := token.search(text, at):
        start = match.start()
        kept.append(text[at:start])
        end, is_string = _token_end(text, start, match[0], language)
        if is_string:
            strings[start] = end
            kept.append(text[start] + _blank(text[start + 1 : end - 1]) + text[end - 1])
        else:
            kept.append(_blank(text[start:end]) if end - start > 1 else text[start:end])
        at = end
    kept.append(text[at:])
    masked = "".join(kept)
    return Masked(text, masked, strings, _pairs(masked))


def _token_end(text: str, start: int, mark: str, language: str) -> tuple[int, bool]:
    """Return where a comment or string ends, and whether it is a string."""
    if mark in {"//", "#"}:
        if mark == "#" and language == "php" and text.startswith("#[", start):
            return start + 1, False  # an attribute
        end = text.find("\n", start)
        return (len(text) if end < 0 else end), False
    if mark == "/*":
        end = text.find("*/", start + 2)
        return (start + 1 if end < 0 else end + 2), False
    if mark == "/":
        match = _REGEX.match(text, start) if _may_be_regex(text, start) else None
        return (match.end(), True) if match else (start + 1, False)
    if mark == "`" and language == "javascript":
        end = _template_end(text, start)
        return (end, True) if end else (start + 1, False)
    pattern = _CHARACTER if mark == "'" and language == "rust" else _STRING[mark]
    match = pattern.match(text, start)
    # A quote without its partner is no string: nothing after it may vanish.
    return (match.end(), True) if match else (start + 1, False)


def _may_be_regex(text: str, at: int) -> bool:
    before = text[max(0, at - 80) : at].rstrip(" \t")
    return not before or before[-1] in _BEFORE_REGEX or bool(_WORD_BEFORE_REGEX.search(before))


def _template_end(text: str, start: int) -> int:
    """Return where a template literal ends, with the expressions inside; 0 if it never does."""
    depths = [0]  # of braces, for each template around the current place; 0 is template text
    for match in _TEMPLATE.finditer(text, start + 1):
        sign, depth = match[0], depths[-1]
        if depth == 0:
            if sign == "`":
                depths.pop()
                if not depths:
                    return match.end()
            elif sign == "${":
                depths[-1] = 1
        elif sign == "`":
            depths.append(0)
        elif sign in {"{", "${"}:
            depths[-1] += 1
        elif sign == "}":
            depths[-1] -= 1
    return 0


def _blank(text: str) -> str:
    if "\n" not in text:
        return " " * len(text)
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _pairs(masked: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for match in _BRACKET.finditer(masked):
        if match[0] in _CLOSING:
            stack.append((_CLOSING[match[0]], match.start()))
            continue
        # A bracket that fits nothing is left out; one that was never closed is dropped.
        for back in range(1, min(len(stack), 8) + 1):
            if stack[-back][0] == match[0]:
                pairs[stack[-back][1]] = match.start()
                del stack[-back:]
                break
    return pairs
