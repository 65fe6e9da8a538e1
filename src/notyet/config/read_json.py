"""Reads JSON with positions, and says in plain words what is wrong with a text that is none."""

from __future__ import annotations

import re
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in its stubs

from notyet.config.document import DEEPEST, TOO_DEEP, BadSyntax, Document, Finding, Lines
from notyet.config.scalars import name_of, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from notyet.config.document import Path

_BLANK = re.compile(r"[ \t\n\r]*+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<rest>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*+")
_WORDS = {"true": True, "false": False, "null": None}
_TEXT_PROBLEMS = {
    "Unterminated": "this text is never closed",
    "Invalid control": "a line break or control character stands in a text",
}
_LONGEST_NUMBER = 400
_NO_COMMENTS = "JSON has no comments"


def read(text: str) -> Document:
    """Return what a JSON text says, and where. Raises BadSyntax."""
    text = text.removeprefix("\ufeff")
    return _Reader(text).document()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines = Lines(text)
        self._offsets: dict[Path, int] = {}
        self._findings: list[Finding] = []

    def document(self) -> Document:
        self._skip()
        value = self._value(())
        self._skip()
        if self._at < len(self._text):
            raise self._bad(f"after the end of the value comes {self._shown()}")
        places = {path: self._lines.place(offset) for path, offset in self._offsets.items()}
        return Document(value=value, places=places, findings=tuple(self._findings))

    def _bad(self, message: str, hint: str = "", at: int | None = None) -> BadSyntax:
        line, column = self._lines.place(self._at if at is None else at)
        return BadSyntax(f"this is not JSON: {message}", line, column, hint)

    def _shown(self) -> str:
        word = _WORD.match(self._text, self._at)
        if word:
            return quoted(word[0])
        return quoted(self._text[self._at]) if self._at < len(self._text) else "the end of the file"

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match
        self._at = match.end()
        if self._text.startswith(("//", "/*", "#"), self._at):
            raise self._bad(_NO_COMMENTS, "remove the comment")

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _value(self, path: Path) -> Any:
        if len(path) > DEEPEST:
            raise self._bad(TOO_DEEP)
        start = self._next()
        if start == "{":
            return self._table(path)
        if start == "[":
            return self._list(path)
        if start == '"':
            return self._string()
        word = _WORD.match(self._text, self._at)
        if word and word[0] in _WORDS:
            self._at = word.end()
            return _WORDS[word[0]]
        return self._number()

    def _number(self) -> int | float:
        match = _NUMBER.match(self._text, self._at)
        if not match:
            hint = "texts stand in double quotes" if self._next() == "'" else ""
            raise self._bad(f"a value should stand here, not {self._shown()}", hint)
        if len(match[0]) > _LONGEST_NUMBER:
            raise self._bad("this number is too long")
        self._at = match.end()
        return float(match[0]) if match["rest"] or match["exponent"] else int(match[0])

    def _string(self) -> str:
        try:
            text: str
            text, self._at = scanstring(self._text, self._at + 1, True)
        except JSONDecodeError as error:
            message = "a backslash stands before something it cannot stand before"
            for start, words in _TEXT_PROBLEMS.items():
                message = words if error.msg.startswith(start) else message
            raise self._bad(message, at=error.pos) from None
        return text

    def _table(self, path: Path) -> dict[str, Any]:
        table: dict[str, Any] = {}
        self._at += 1
        self._skip()
        while self._next() != "}":
            start = self._at
            if self._next() != '"':
                hint = "keys stand in double quotes"
                raise self._bad(f"a key should stand here, not {self._shown()}", hint)
            key = self._string()
            inner = (*path, key)
            if key in table:
                self._twice(inner, start)
            self._offsets[inner] = start
            self._skip()
            if self._next() != ":":
                raise self._bad(f"a colon should follow the key {quoted(key)}, not {self._shown()}")
            self._at += 1
            self._skip()
            table[key] = self._value(inner)
            self._separator("}")
        self._at += 1
        return table

    def _twice(self, path: Path, start: int) -> None:
        """Note a key's second time, whose places then take those of the first."""
        message = f"{name_of(path)} is written twice; the last one counts"
        self._findings.append(Finding(*self._lines.place(start), message, "remove one of them"))

    def _list(self, path: Path) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        self._skip()
        while self._next() != "]":
            inner = (*path, len(items))
            self._offsets[inner] = self._at
            items.append(self._value(inner))
            self._separator("]")
        self._at += 1
        return items

    def _separator(self, end: str) -> None:
        self._skip()
        if self._next() == end:
            return
        if self._next() != ",":
            raise self._bad(f'a comma or "{end}" should stand here, not {self._shown()}')
        comma = self._at
        self._at += 1
        self._skip()
        if self._next() == end:
            message = f'a comma stands before "{end}"'
            raise self._bad(message, "remove the last comma", at=comma)
